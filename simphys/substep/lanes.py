"""Text of a loop over elements with long bodies, in blocks: compute first, add to other elements, then store.

A loop that stores to arrays is not vectorized, as any of these may alias its inputs. So the first loop over the lanes
of a block computes alone, and holds results in local vectors. A second loop adds what goes to other elements, in order,
and a third one stores what belongs to the elements themselves, and sets what the second one has read, such as a
workspace that is cleared for the next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .action import Action, Slot
from .expressions import build_element, split_element
from .place import Place
from .program import ElementView
from .schedule import Group
from .site import Site

LANES = 16
"""Elements of a block."""


class LaneSite(Site):
    """The body of the second or third loop: what the first one has computed comes from the vectors that hold it."""

    def __init__(self, places: Mapping[Slot, Place], index: str, first: Site) -> None:
        super().__init__(places, index, "_then")
        self._first = first
        self.held: dict[Slot, ElementView] = {}

    def load(self, slot: Slot, view: ElementView) -> str:
        if slot not in self._known and self._first.has_set(slot):
            self.held[slot] = view
            self._known[slot] = self.assign(slot.value.name, build_element(lane_parts(slot, view), view.element))
        return super().load(slot, view)


def lane_parts(slot: Slot, view: ElementView) -> list[str]:
    """Expressions of the components that are held for a lane."""
    return [f"held_{slot}[{LANES * c} + lane]" for c in range(view.components)]


def lane_lines(group: Group, places: Mapping[Slot, Place], begin: str, end: str) -> list[str] | None:
    """Write the loop from element `begin` to `end`; None for a body that stores elsewhere, which has no such form."""
    parts = _divide(group.actions)
    if parts is None:
        return None
    first = Site(places, "i")
    then, last = LaneSite(places, "i", first), LaneSite(places, "i", first)
    for action in parts[0]:
        action.emit(first)
    if first.stores:
        return None
    own = first.pending()
    for action in parts[1]:
        action.emit(then)
    for slot, view in own.items():
        last.store(slot, view, build_element(lane_parts(slot, view), view.element))
    for action in parts[2]:
        action.emit(last)
    last.flush()
    held = {**own, **then.held, **last.held}
    lines = [
        f"begin_i, end_i = {begin}, {end}",
        f"for block in range((end_i - begin_i + {LANES - 1}) // {LANES}):",
        f"    low = begin_i + block * {LANES}",
        f"    lanes = ti.min({LANES}, end_i - low)",
        *[f"    held_{slot} = vector_{LANES * view.components}(0.0)" for slot, view in held.items()],
    ]
    for slot, view in held.items():
        pairs = zip(lane_parts(slot, view), split_element(first.load(slot, view), view.element), strict=True)
        first.compute += [f"{held_part} = {part}" for held_part, part in pairs]
    for body in (first.compute, then.compute, [*last.compute, *last.stores]):
        if body:
            lines += ["    for lane in range(lanes):", "        i = low + lane"]
            lines += [f"        {line}" for line in body]
    return lines


def _divide(actions: Sequence[Action]) -> tuple[list[Action], list[Action], list[Action]] | None:
    """Divide actions among the three loops; None where one that adds in order must come after one of the third loop."""
    first: list[Action] = []
    then: list[Action] = []
    last: list[Action] = []
    taken: set[Slot] = set()
    written: set[Slot] = set()
    after: set[Slot] = set()
    for action in actions:
        if action.in_order:
            if not after.isdisjoint(action.slots()):
                return None
            then.append(action)
        elif taken.isdisjoint(action.writes) and written.isdisjoint(action.reads):
            first.append(action)
            continue
        else:
            last.append(action)
            after |= action.writes.keys()
        taken |= action.slots()
        written |= action.writes.keys()
    return first, then, last
