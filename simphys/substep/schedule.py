"""Order of loops: neighbouring actions over one index set share a loop where no element needs another's result."""

from __future__ import annotations

from collections.abc import Collection, KeysView, Sequence
from dataclasses import dataclass

from .action import Access, Action, Slot
from .program import Domain


@dataclass(eq=False)
class Group:
    """Actions that share a loop."""

    domain: Domain
    actions: list[Action]
    reads: dict[Slot, Access]
    writes: dict[Slot, Access]

    @property
    def width(self) -> int:
        return max([action.width for action in self.actions])

    @property
    def margin(self) -> int:
        return max([action.margin for action in self.actions])

    @property
    def heavy(self) -> bool:
        return any([action.heavy for action in self.actions])

    @property
    def is_call(self) -> bool:
        """True for an operation on whole arrays, which is no loop."""
        return self.actions[0].is_call

    @property
    def on_device(self) -> bool:
        """True if kernels take its arrays, rather than an operation of the host."""
        return self.actions[0].call is None

    @property
    def in_order(self) -> bool:
        return any([action.in_order for action in self.actions])

    def slots(self) -> KeysView[Slot]:
        return dict.fromkeys([*self.writes, *self.reads]).keys()

    def append(self, action: Action) -> None:
        self.actions.append(action)
        for target, new in ((self.reads, action.reads), (self.writes, action.writes)):
            for slot, access in new.items():
                target[slot] = "other" if "other" in (access, target.get(slot)) else "own"


def schedule(actions: Sequence[Action]) -> list[Group]:
    """Merge actions into loops, each as early or each as late as it can be: whichever moves less memory."""
    ordered = _recycle_clears(actions)
    early = _merge(ordered)
    late = _merge_late(ordered)
    return min((early, late), key=_traffic)


def _merge(actions: Sequence[Action]) -> list[Group]:
    """Let each action join the last loop that it can, past loops that it does not depend on."""
    groups: list[Group] = []
    for action in actions:
        home = _home(list(reversed(groups)), action)
        if home is None:
            home = Group(action.domain, [], {}, {})
            groups.append(home)
        home.append(action)
    return groups


def _merge_late(actions: Sequence[Action]) -> list[Group]:
    """Let each action join the first loop that it can, from the last action to the first."""
    groups: list[Group] = []
    for action in reversed(actions):
        home = _home(groups, action)
        if home is None:
            home = Group(action.domain, [], {}, {})
            groups.insert(0, home)
        home.append(action)
    for group in groups:
        group.actions.reverse()
    return groups


def _home(groups: Sequence[Group], action: Action) -> Group | None:
    """Find the first of these loops that an action can join, before one that it depends on."""
    for group in groups:
        if group.domain == action.domain and _fits(group, action):
            return group
        if _depends(group, action):
            return None
    return None


def _traffic(groups: Sequence[Group]) -> int:
    """Count the elements that loops read from memory and write to it."""
    inside = find_locals(groups, ())
    return sum([group.domain.size * len((group.reads.keys() | group.writes.keys()) - inside) for group in groups])


def _recycle_clears(actions: Sequence[Action]) -> list[Action]:
    """Clear a slot right after its last use, for the next step, where it is cleared before each step's sum.

    The memory is zero at first, so that the slot is always clear when a step begins.
    """
    ordered = list(actions)
    for action in actions:
        slot = action.clears
        if slot is None:
            continue
        users = [number for number, other in enumerate(ordered) if other is not action and slot in other.slots()]
        first, last = ordered.index(action), max(users, default=-1)
        if last > first and ordered[last].domain == action.domain and ordered[last].reads.get(slot) == "own":
            ordered.insert(last + 1, action)
            del ordered[first]
    return ordered


def find_locals(groups: Sequence[Group], memory: Collection[Slot]) -> set[Slot]:
    """Find the slots that need no memory: those of one loop's own index alone, apart from slots in `memory`."""
    uses: dict[Slot, int] = {}
    for group in groups:
        for slot in group.slots():
            uses[slot] = uses.get(slot, 0) + (1 if _access(group, slot) == "own" and not group.is_call else 2)
    return {slot for slot, count in uses.items() if count == 1 and slot not in memory and slot.kind != "sum"}


def _shared(group: Group, action: Action) -> list[tuple[Access, Access]]:
    """Accesses (of the group, of the action) to each slot that both use and one writes."""
    found = []
    for slot in group.slots() & action.slots():
        if slot in group.writes or slot in action.writes:
            found.append((_access(group, slot), _access(action, slot)))
    return found


def _access(user: Group | Action, slot: Slot) -> Access:
    return "other" if "other" in (user.reads.get(slot), user.writes.get(slot)) else "own"


def _fits(group: Group, action: Action) -> bool:
    if group.is_call or action.is_call:
        return False
    return all([pair == ("own", "own") for pair in _shared(group, action)])


def _depends(group: Group, action: Action) -> bool:
    return bool(_shared(group, action))
