"""Memory of a generated engine: which array holds each slot of a pass, and at which offset."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from simphys.autograd.errors import InputError
from simphys.simulator import Shape
from simphys.substep.action import Slot
from simphys.substep.expressions import element_name
from simphys.substep.place import Offset, Place, Position
from simphys.substep.program import Program, Value
from simphys.substep.schedule import find_locals

from .carry import Carried
from .passes import Pass

ARRAY = "m_"
"""Prefix of the names of arrays in the text, which no other names have."""
LAUNCH = {"first": "i32", "begin": "i32", "end": "i32"}
"""Arguments that change from launch to launch: the step of the segment's first row, and the rows to go through."""


FINISHED = "finished"
"""Array with the row that each batch member has come to."""
PROBE = "probe"
"""Rounds of a loop that shows whether the driver still lets loops go to their ends."""
ONCE = "once"
"""The number 1, which the compiler does not know: what stands in a loop of so many rounds is a step by itself."""
COUNTS = ("rows", "dense_rows", "steps", "members", "tasks", "pieces", PROBE, ONCE)
"""Numbers that an engine gives its kernels."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Choices on which the text of a pass depends, besides the program."""

    batched: bool
    """True if there are several batch members."""
    own: frozenset[str]
    """Names of the parameters, and "control", that each batch member has its own values of."""
    alike: bool = False
    """True if results do not depend on the number of threads, not even by rounding."""
    pieces: int = 1
    """Number of pieces that particles are divided into, each with a grid of its own, see pieces.py."""
    gathers: bool
    """True if loops run in parallel, in launches for steps; False for a loop over time by one thread of each member."""
    lanes: int = 0
    """Threads of a GPU, in one block, that go through the loops of a member together, and through time; 0 for none."""


NO_OFFSET = Offset(lambda row: "0")


@dataclass(eq=False)
class Layout:
    """Places of all slots of a pass."""

    places: dict[Slot, Place]
    offsets: dict[str, Offset]
    """Offsets that the places name."""
    elements: dict[str, Shape] = field(default_factory=dict)
    """Shape of the elements of each array."""
    parts: dict[str, int] = field(default_factory=dict)
    """Elements of each array of the workspace, or of adjoint sums, for each batch member."""
    starts: dict[str, int] = field(default_factory=dict)
    """First element of each slot there, by the name of the kernel's argument."""
    sums: dict[Slot, tuple[str, int]] = field(default_factory=dict)
    """Array of each adjoint sum, and its first element there."""
    rows: dict[str, Value] = field(default_factory=dict)
    """Arrays of the adjoint pass with a row for each step, by name."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Elements of an array for each batch member, by the name of the kernel's argument."""
    in_loops: set[str] = field(default_factory=set)
    """Names of the arrays that kernels take. Others, which operations of the host alone take, stay there."""

    def place(self, slot: Slot, array: str, offset: str) -> None:
        """Place a slot in an array of its elements."""
        self.places[slot] = Place(f"{ARRAY}{array}", offset, slot.by_component, slot.value.is_flat)
        self.elements[array] = slot.memory_element

    def offset(self, place: Place) -> Offset:
        """Return the offset of a place."""
        return self.offsets.get(place.offset, NO_OFFSET)

    @property
    def integers(self) -> dict[str, int]:
        """Numbers of elements, and positions, by the name of the kernel's argument."""
        return self.sizes | self.starts | {f"size_{array}": size for array, size in self.parts.items()}

    def part_numbers(self, kind: str) -> int:
        """Count the numbers of the workspace, or of the adjoint sums, for each batch member."""
        return sum([n * math.prod(self.elements[name]) for name, n in self.parts.items() if name.startswith(kind)])


def lay_out(
    program: Program,
    run: Pass,
    variant: Variant,
    *,
    stored: Collection[Value],
    carried: Collection[Carried] = (),
    history: bool = False,
    tangents: bool = False,
) -> Layout:
    """Give each slot that leaves its loop a place in memory: with a `history`, what is carried over has many rows."""
    layout = Layout({}, {})
    for name, value in program.state.items():
        _place_row(layout, Slot("value", value), name, next_row=False)
        _place_row(layout, Slot("value", program.result[name]), name, next_row=True)
        if tangents:
            _place_row(layout, Slot("tangent", value), f"d{name}", next_row=False)
            _place_row(layout, Slot("tangent", program.result[name]), f"d{name}", next_row=True)
        else:
            _place_member(layout, Slot("adjoint", program.result[name]), f"adj_{name}", variant.batched)
            if Slot("adjoint", value) in run.aliases:  # else it is copied at the end of the step
                layout.places[Slot("adjoint", value)] = layout.places[Slot("adjoint", program.result[name])]
        if name in run.dense:
            _place_row(layout, run.dense[name], f"dense_{name}", next_row=True, rows="dense_rows")
    for value in stored:
        _place_row(layout, Slot("value", value), value.name, next_row=False, less=1)
    for each in carried:
        old, new = Slot("value", each.old), Slot("value", each.new)
        if history:
            _place_row(layout, old, each.name, next_row=False)
            _place_row(layout, new, each.name, next_row=True)
        else:
            _place_member(layout, old, each.name, variant.batched)
            _place_member(layout, new, each.name, variant.batched)
    for name, value in program.params.items():
        own = variant.batched and name in variant.own
        _place_member(layout, Slot("value", value), name, own)
        _place_member(layout, Slot("tangent", value), f"d{name}", own)
    for value in program.constants():
        layout.place(Slot("value", value), value.name, "0")
    if program.control is not None:
        _place_control(layout, program.control, own=variant.batched and "control" in variant.own)
    place_rest(layout, run, variant)
    return layout


def require_names(layout: Layout, others: Collection[str]) -> None:
    """Raise InputError if an array has the name of another argument of kernels: of a count, or one of these."""
    for name in layout.elements:
        if name in others or name in COUNTS or name == FINISHED:
            raise _refuse_name(name)


def _refuse_name(name: str) -> InputError:
    constraint = "fields and results of sub-steps have other names than the arguments of a generated engine"
    return InputError(f"step, `{name}`", constraint, name, "Rename the field, or the result.")


def _size(layout: Layout, name: str, slot: Slot) -> str:
    layout.sizes[f"size_{name}"] = slot.memory_count
    return f"size_{name}"


def _place_row(layout: Layout, slot: Slot, name: str, *, next_row: bool, rows: str = "rows", less: int = 0) -> None:
    """Place an array that has a row for each step, [B, rows, *shape], or `less` rows than that."""
    size, offset = _size(layout, name, slot), f"{name}_{'next' if next_row else 'now'}"
    count, ahead = f"({rows} - {less})" if less else rows, " + 1" if next_row else ""

    def find(known: Mapping[str, int]) -> Position:
        return Position(known[size] * next_row, known[size] * (known[rows] - less), known[size])

    layout.place(slot, name, offset)
    layout.offsets[offset] = Offset(lambda row: f"(member * {count} + {row}{ahead}) * {size}", find, moves=True)


def _place_member(layout: Layout, slot: Slot, name: str, own: bool) -> None:
    """Place an array of each batch member, [B, *shape], or one that all share."""
    if not own:
        layout.place(slot, name, "0")
        return
    layout.place(slot, name, f"{name}_own")
    size = _size(layout, name, slot)
    layout.offsets[f"{name}_own"] = Offset(lambda row: f"member * {size}", lambda known: Position(0, known[size]))


def _place_control(layout: Layout, control: Value, *, own: bool) -> None:
    size = _size(layout, "control", Slot("value", control))

    def make_offset(*, own: bool) -> Offset:
        def find(known: Mapping[str, int]) -> Position:
            return Position(0, known[size] * known["steps"] * own, known[size], known[size])

        members = "member * steps + " if own else ""
        return Offset(lambda row: f"({members}first + {row}) * {size}", find, moves=True, by_step=True)

    layout.offsets |= {"control_now": make_offset(own=own), "adj_control_now": make_offset(own=True)}
    layout.place(Slot("value", control), "control", "control_now")
    layout.place(Slot("tangent", control), "dcontrol", "control_now")
    layout.place(Slot("sum", control), "adj_control", "adj_control_now")


def _place_part(layout: Layout, slot: Slot, array: str, name: str, *, batched: bool) -> None:
    """Place a slot in the part of a batch member of an array, from the element `name` on."""

    def find(known: Mapping[str, int]) -> Position:
        return Position(known[name], known[f"size_{array}"] * batched)

    text = f"member * size_{array} + {name}" if batched else name
    layout.offsets[f"{name}_at"] = Offset(lambda row: text, find)
    layout.place(slot, array, f"{name}_at")


def place_rest(layout: Layout, run: Pass, variant: Variant) -> None:
    """Place adjoint sums, and what goes from loop to loop, in the parts of the batch members of two arrays."""
    known = {run.aliases.get(slot, slot) for slot in layout.places}
    inside = find_locals(run.all_groups, known)
    looped = {slot for group in run.all_groups if group.on_device for slot in group.slots()}
    for group in run.all_groups:
        for slot in sorted(group.slots(), key=str):
            if slot in layout.places or slot in inside:
                continue
            if slot.kind == "row":
                layout.rows[str(slot)] = slot.value
                _place_row(layout, slot, str(slot), next_row=False, less=1)
                continue
            count = slot.memory_count
            if slot.over:
                count *= next(g.domain.size for g in run.groups if g.domain.name == slot.over)
            kind = "sums" if slot.kind == "sum" else "work"
            array = "_".join([kind, *([] if slot in looped else ["host"]), element_name(slot.memory_element)])
            if array in layout.elements and array not in layout.parts:
                raise _refuse_name(array)
            start = layout.parts.get(array, 0)
            name = _unused_name(str(slot), layout)
            layout.parts[array], layout.starts[name] = start + count, start
            _place_part(layout, slot, array, name, batched=variant.batched)
            if kind == "sums":
                layout.sums[slot] = array, start
    layout.in_loops |= {layout.places[slot].array.removeprefix(ARRAY) for slot in looped & layout.places.keys()}


def _unused_name(wanted: str, layout: Layout) -> str:
    """Make a name that no other slot has: a sub-step may add to one array in two ways."""
    name, count = wanted, 1
    while name in layout.starts:
        count += 1
        name = f"{wanted}_{count}"
    return name
