"""Channels: which components of the state a measured column sees, and as what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from simphys.scenefile.body_names import NODES, BodyNames
from simphys.scenefile.fit_sections import component_index
from simphys.scenefile.section import DERIVED
from simphys.simulator import Markers
from simphys.simulator.markers import ENERGIES

AXIS_NAMES = "xyz"
BODY_FIELDS = ("position", "angle")
"""Fields of the state that have an entry for each body, one of which a scene of bodies has."""


class ChannelSection(Protocol):
    """The data of a channel that `read` needs, as the scene file's section has them."""

    @property
    def column(self) -> int | str: ...
    @property
    def field(self) -> str: ...
    @property
    def node(self) -> int | list[int]: ...
    @property
    def axis(self) -> int: ...
    @property
    def place(self) -> list[float] | None: ...
    @property
    def unit(self) -> str: ...
    @property
    def sigma(self) -> float | str | None: ...
    @property
    def relative(self) -> float: ...
    @property
    def weights(self) -> int | str | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def to(self) -> int | None: ...
    @property
    def point(self) -> list[float] | None: ...
    @property
    def gain(self) -> float: ...
    @property
    def modulo(self) -> float | None: ...
    @property
    def correlation_time(self) -> float | str | None: ...


OF_TWO = {"difference": "-", "sum": "+"}
"""Kinds of channels that see a component of two nodes, with their signs."""


@dataclass(frozen=True)
class Need:
    """A component of the state that a channel needs."""

    field: str
    index: tuple[int, ...]
    shift: float = 0.0
    """Time at which it is needed, counted from that of the sample [time steps]."""


class Mark(NamedTuple):
    """A place on a body."""

    node: int
    place: tuple[float, ...] | None
    needs: tuple[Need, ...]


@dataclass(frozen=True)
class Channel:
    """A column of measured values: a component of `field`, by its index, in `unit`."""

    label: str
    field: str
    component: tuple[int, ...]
    unit: str
    kind: str = "component"
    others: tuple[tuple[int, ...], ...] = ()
    """Further components that it needs, of the node's vector and of that to which it is compared."""
    marks: tuple[Mark, ...] = ()
    """The place that it sees if its field is no field of the state, and that to which it is compared."""
    energy: tuple[Need, ...] = ()
    """All components of the state, or of that of `member`, if its field is an energy."""
    member: int | None = None
    """Member whose energy it is; None in a scene of one."""
    dim: int = 1
    """Number of components of the node's vector that it sees."""
    point: tuple[float, ...] | None = None
    """Point to which the node is compared; None: another node."""
    axis: int = 0
    """Column or row of a pixel, or component of what is no field of the state."""
    modulo: float | None = None
    """Period of an angle."""
    correlation_time: float | None = None
    """Time in which the noise forgets [s]; None: at once, or before it is estimated."""
    correlation_error: float | None = None
    """Standard error of the logarithm of an estimated correlation time, inf before; None: it is not estimated."""

    @property
    def is_derived(self) -> bool:
        """True if it sees no field of the state, but what follows from some, and from parameters."""
        return bool(self.marks or self.energy)

    @property
    def has_memory(self) -> bool:
        """True if its noise is alike in neighbouring samples."""
        return self.correlation_time is not None or self.correlation_error is not None

    @property
    def needs(self) -> tuple[Need, ...]:
        """All components that it needs."""
        if self.energy:
            return self.energy
        if self.marks:
            return tuple([need for mark in self.marks for need in mark.needs])
        return tuple([Need(self.field, index) for index in (self.component, *self.others)])


def make_channel(
    section: ChannelSection,
    label: str | None,
    shapes: Mapping[str, tuple[int, ...]],
    markers: Markers | None = None,
    names: BodyNames = NODES,
) -> Channel:
    """Make a channel of a section that fits the state; label: the name of its column, if it has one."""
    if section.field in ENERGIES:
        return _make_energy(section, label, shapes)
    is_derived = section.field in DERIVED
    where = _name_place(section)
    shape = (markers.nodes, markers.dim) if is_derived and markers else shapes[section.field]
    entries = names if is_derived or _has_entry_for_each_body(section.field, shapes) else None
    if section.kind == "component":
        index = component_index(section.node, section.axis, shape)
        return Channel(
            label or component_name(section.field, index, shape, entries) + where,
            section.field,
            index,
            section.unit,
            marks=_list_marks(section, markers, index[:1]) if is_derived else (),
            axis=index[-1] if is_derived else 0,
            modulo=section.modulo,
            **_read_memory(section),
        )
    assert isinstance(section.node, int), "checked on loading the scene"
    if section.kind in OF_TWO:
        return _make_pair(section, label, shape, markers, names)
    dim = shape[1]
    nodes = (section.node,) if section.to is None else (section.node, section.to)
    (first, *others) = [(node, axis) for node in nodes for axis in range(dim)]
    point = None
    if section.kind != "pixel" and section.to is None:
        point = tuple(section.point or [0.0] * dim)
    period = 2 * math.pi * abs(section.gain) if section.kind == "angle" else None
    seen = f"pixel {'uv'[section.axis]}" if section.kind == "pixel" else f"{section.kind} of {section.field}"
    return Channel(
        label or f"{seen} of {names.of(section.node)}{where}",
        section.field,
        first,
        section.unit,
        kind=section.kind,
        others=() if is_derived else tuple(others),
        marks=_list_marks(section, markers, nodes) if is_derived else (),
        dim=dim,
        point=point,
        axis=section.axis,
        modulo=section.modulo or period,
        **_read_memory(section),
    )


def _make_energy(section: ChannelSection, label: str | None, shapes: Mapping[str, tuple[int, ...]]) -> Channel:
    """Make a channel of an energy: that of all bodies, or of those of the member that is in the place of a node."""
    member = section.node if isinstance(section.node, int) else None
    lead = () if member is None else (member,)
    needs = [
        Need(field, (*lead, *index)) for field, shape in shapes.items() for index in np.ndindex(*shape[len(lead) :])
    ]
    label = label or section.field.replace("_", " ") + ("" if member is None else f" of member {member}")
    own = {"energy": tuple(needs), "member": member, **_read_memory(section)}
    return Channel(label, section.field, (), section.unit, **own)


def _read_memory(section: ChannelSection) -> dict[str, Any]:
    """Read the memory of the noise, which may be unknown."""
    if isinstance(section.correlation_time, str):
        return {"correlation_error": math.inf}
    return {"correlation_time": section.correlation_time}


def _name_place(section: ChannelSection) -> str:
    """Name the place on a body that a channel sees, if it states one."""
    return "" if section.place is None else f" at {', '.join(f'{each:g}' for each in section.place)}"


def _make_pair(
    section: ChannelSection,
    label: str | None,
    shape: tuple[int, ...],
    markers: Markers | None,
    names: BodyNames,
) -> Channel:
    """Make a channel of a component of two nodes."""
    assert isinstance(section.node, int) and section.to is not None, "checked on loading the scene"
    is_derived = section.field in DERIVED
    first, other = [component_index(node, section.axis, shape) for node in (section.node, section.to)]
    shown = [component_name(section.field, index, shape, names) for index in (first, other)]
    return Channel(
        label or f"{shown[0]}{_name_place(section)} {OF_TWO[section.kind]} {shown[1]}",
        section.field,
        first,
        section.unit,
        kind=section.kind,
        others=() if is_derived else (other,),
        marks=_list_marks(section, markers, (section.node, section.to)) if is_derived else (),
        axis=first[-1] if is_derived else 0,
        modulo=section.modulo,
        **_read_memory(section),
    )


def _list_marks(section: ChannelSection, markers: Markers | None, nodes: tuple[int, ...]) -> tuple[Mark, ...]:
    """List the places that a channel sees: that of the node, and the default one of the node that it is compared to.

    An acceleration needs the velocity half a step later and earlier, and the pose.
    """
    assert markers is not None, "checked on loading the scene"
    made = []
    for place, node in zip((section.place, None), nodes, strict=False):
        pose = [Need(field, index) for field, index in markers.needs(node)]
        motion = markers.needs(node, moving=True)
        shifted = [Need(field, index, shift) for shift in (0.5, -0.5) for field, index in motion]
        needs = [*shifted, *pose] if section.field == "acceleration" else pose
        made.append(Mark(node, None if place is None else tuple(place), tuple(needs)))
    return tuple(made)


def _has_entry_for_each_body(field: str, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """True for a field of bodies, unlike a histogram of their distances, and for any of a scene without bodies."""
    bodies = next((shapes[name] for name in BODY_FIELDS if name in shapes), shapes[field])
    return shapes[field][:1] == bodies[:1]


def component_name(field: str, index: tuple[int, ...], shape: tuple[int, ...], names: BodyNames | None = NODES) -> str:
    """Name a component of a field of this shape, for measurements without names; names: None for a field of no bodies.

    Axes have letters where there are two or three of them; an angle, or a place along a line, is a number. The field's
    own name is written in words: 'angular velocity of trunk'.
    """
    field = field.replace("_", " ")
    if len(shape) == 2 and shape[1] == 1:
        index = index[:1]
    elif len(shape) == 2 and shape[1] <= len(AXIS_NAMES) and names is not None:
        return f"{field} {AXIS_NAMES[index[1]]} of {names.of(index[0])}"
    if len(index) == 1 and names is not None:
        return f"{field} of {names.of(index[0])}"
    at = ", ".join(map(str, index))
    return f"{field} at {at}" if index else field
