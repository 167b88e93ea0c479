"""Memory of a generated engine: which array holds each slot of a pass, and at which offset."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from simphys.substep.action import Place, Slot
from simphys.substep.program import Program, Value
from simphys.substep.schedule import find_locals

from .passes import Pass


ARRAY = "m_"
"""Prefix of the names of arrays in the text, which no other names have."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the text of a pass depends on, besides the program."""

    batched: bool
    """True if there are several batch members."""
    own: frozenset[str]
    """Names of the parameters, and "control", that each batch member has its own values of."""
    gathers: bool
    """True if each step is launched by itself, and loops run in parallel; False for a loop over time in a launch."""


@dataclass(eq=False)
class Layout:
    """Places of all slots of a pass."""

    places: dict[Slot, Place]
    offsets: dict[str, str]
    """Expression of each offset that the places name, from the batch member, the row t and sizes."""
    work: dict[str, int] = field(default_factory=dict)
    """Offset of each slot of the workspace within the part of a batch member, by the name of the kernel's argument."""
    work_size: int = 0
    """Numbers of the workspace for each batch member."""
    sums: dict[Slot, tuple[str, int]] = field(default_factory=dict)
    """Name of the kernel's argument with the offset of each adjoint sum within the part of a batch member, and it."""
    sums_size: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    """Numbers of an array for each batch member, by the name of the kernel's argument."""


def lay_out(program: Program, run: Pass, shape: Shape, *, stored: Collection[Value], tangents: bool = False) -> Layout:
    """Give each slot that leaves its loop a place in memory."""
    layout = Layout({}, {})
    for name, value in program.state.items():
        _place_row(layout, Slot("value", value), name, value, next_row=False)
        _place_row(layout, Slot("value", program.result[name]), name, value, next_row=True)
        if tangents:
            _place_row(layout, Slot("tangent", value), f"d{name}", value, next_row=False)
            _place_row(layout, Slot("tangent", program.result[name]), f"d{name}", value, next_row=True)
        else:
            _place_member(layout, Slot("adjoint", program.result[name]), f"adj_{name}", value, shape.batched)
            layout.places[Slot("adjoint", value)] = layout.places[Slot("adjoint", program.result[name])]
        if name in run.dense:
            _place_row(layout, run.dense[name], f"dense_{name}", value, next_row=True, rows="dense_rows")
    for value in stored:
        _place_row(layout, Slot("value", value), value.name, value, next_row=False, rows="(rows - 1)")
    for name, value in program.params.items():
        own = shape.batched and name in shape.own
        _place_member(layout, Slot("value", value), name, value, own)
        _place_member(layout, Slot("tangent", value), f"d{name}", value, own)
    for value in program.constants():
        layout.places[Slot("value", value)] = Place(f"{ARRAY}{value.name}", "0")
    if program.control is not None:
        _place_control(layout, program.control, own=shape.batched and "control" in shape.own)
    _place_rest(layout, run, shape, program)
    return layout


def _size(layout: Layout, name: str, value: Value) -> str:
    layout.sizes[f"size_{name}"] = value.size
    return f"size_{name}"


def _place_row(
    layout: Layout, slot: Slot, name: str, value: Value, *, next_row: bool, rows: str = "rows"
) -> None:
    """Place an array that has a row for each step: [B, rows, *shape]."""
    size = _size(layout, name, value)
    offset = f"{name}_{'next' if next_row else 'now'}"
    layout.places[slot] = Place(f"{ARRAY}{name}", offset)
    layout.offsets[offset] = f"(member * {rows} + t{' + 1' if next_row else ''}) * {size}"


def _place_member(layout: Layout, slot: Slot, name: str, value: Value, own: bool) -> None:
    """Place an array of each batch member, [B, *shape], or one that all share."""
    if not own:
        layout.places[slot] = Place(f"{ARRAY}{name}", "0")
        return
    layout.places[slot] = Place(f"{ARRAY}{name}", f"{name}_own")
    layout.offsets[f"{name}_own"] = f"member * {_size(layout, name, value)}"


def _place_control(layout: Layout, control: Value, *, own: bool) -> None:
    size = _size(layout, "control", control)
    time = "(first + t)"
    layout.offsets["control_now"] = f"(member * steps + first + t) * {size}" if own else f"{time} * {size}"
    layout.offsets["adj_control_now"] = f"(member * steps + first + t) * {size}"
    layout.places[Slot("value", control)] = Place(f"{ARRAY}control", "control_now")
    layout.places[Slot("tangent", control)] = Place(f"{ARRAY}dcontrol", "control_now")
    layout.places[Slot("sum", control)] = Place(f"{ARRAY}adj_control", "adj_control_now")


def _place_rest(layout: Layout, run: Pass, shape: Shape, program: Program) -> None:
    """Place adjoint sums, and what goes from loop to loop, in the parts of the batch members of two arrays."""
    known = {run.aliases.get(slot, slot) for slot in layout.places}
    inside = find_locals(run.groups, known)
    for group in run.groups:
        for slot in sorted(group.slots(), key=str):
            if slot in layout.places or slot in inside:
                continue
            name = str(slot)
            if slot.kind == "sum":
                count = _sum_size(slot, run)
                layout.sums[slot] = (name, layout.sums_size)
                _place_part(layout, slot, "sums", name, "sums_size", shape.batched)
                layout.sums_size += count
            else:
                layout.work[name] = layout.work_size
                _place_part(layout, slot, "work", name, "work_size", shape.batched)
                layout.work_size += slot.value.size


def _place_part(layout: Layout, slot: Slot, array: str, name: str, size: str, batched: bool) -> None:
    layout.places[slot] = Place(f"{ARRAY}{array}", f"{name}_at")
    layout.offsets[f"{name}_at"] = f"member * {size} + {name}" if batched else name


def _sum_size(slot: Slot, run: Pass) -> int:
    """Numbers of an adjoint sum: of the value itself, or of an element for each index of a loop."""
    if not slot.over:
        return slot.value.size
    sizes = {group.domain.name: group.domain.size for group in run.groups}
    return sizes[slot.over] * slot.value.size


def sum_names(layout: Layout) -> Mapping[str, int]:
    """Offsets of the adjoint sums by the name of the kernel's argument."""
    return dict(layout.sums.values())
