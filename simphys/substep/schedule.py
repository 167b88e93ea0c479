"""Order of loops: neighbouring actions over one index set share a loop where no element needs another's result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    def heavy(self) -> bool:
        return any([action.heavy for action in self.actions])

    def slots(self) -> set[Slot]:
        return {*self.reads, *self.writes}

    def append(self, action: Action) -> None:
        self.actions.append(action)
        for target, new in ((self.reads, action.reads), (self.writes, action.writes)):
            for slot, access in new.items():
                target[slot] = "other" if "other" in (access, target.get(slot)) else "own"


def schedule(actions: Sequence[Action]) -> list[Group]:
    """Merge actions into loops. Each joins the last loop that it can, past loops that it does not depend on."""
    groups: list[Group] = []
    for action in actions:
        home = None
        for group in reversed(groups):
            if group.domain == action.domain and _fits(group, action):
                home = group
                break
            if _depends(group, action):
                break
        if home is None:
            home = Group(action.domain, [], {}, {})
            groups.append(home)
        home.append(action)
    return groups


def find_locals(groups: Sequence[Group], memory: Collection[Slot]) -> set[Slot]:
    """Find the slots that need no memory: those of one loop alone, apart from slots that are in `memory`."""
    uses: dict[Slot, int] = {}
    for group in groups:
        for slot in group.slots():
            uses[slot] = uses.get(slot, 0) + 1
    return {slot for slot, count in uses.items() if count == 1 and slot not in memory and slot.kind != "sum"}


def _shared(group: Group, action: Action) -> list[tuple[Access | None, Access | None]]:
    """Accesses (of the group, of the action) to each slot that both use and one writes."""
    found = []
    for slot in group.slots() & action.slots():
        if slot in group.writes or slot in action.writes:
            found.append((_access(group, slot), _access(action, slot)))
    return found


def _access(user: Group | Action, slot: Slot) -> Access:
    return "other" if "other" in (user.reads.get(slot), user.writes.get(slot)) else "own"


def _fits(group: Group, action: Action) -> bool:
    return all([pair == ("own", "own") for pair in _shared(group, action)])


def _depends(group: Group, action: Action) -> bool:
    return bool(_shared(group, action))
