"""Markers: places on bodies or links, whose positions and velocities follow from the state.

A camera sees a dot on a link, an accelerometer is screwed to a body. A simulator says how such a place moves, and which
energies its bodies have; its functions are made of operations on Tensors, which bring their adjoints and tangents.
Values are Tensors [N] along time, vectors lists of these. Energies take whole fields, [N, *shape].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..autograd import Tensor
from .arrays import Shape

Vector = list[Any]
"""Components of a vector: Tensors, or numbers."""
Place = tuple[float, ...] | None
"""Coordinates of a place in the frame of its body [m]; None for the default one."""
Values = Mapping[str, Sequence[Tensor]]
"""Components of fields of the state, in the order in which a marker needs them."""
Whole = Mapping[str, Tensor]
"""Fields of the state along time, [N, *shape]."""
ENERGIES = (KINETIC, POTENTIAL, TOTAL) = ("kinetic_energy", "potential_energy", "energy")
"""Names of what channels see of all bodies together."""
Needs = tuple[tuple[str, tuple[int, ...]], ...]
"""Fields of the state, and the indices of components in them."""


class Markers(ABC):
    """Places on the bodies, or links, of a simulator."""

    nodes: int
    """Number of bodies."""
    dim: int
    """Number of coordinates."""
    in_moving_frame: bool = False
    """True if places are relative to a frame whose acceleration [dim] is the control of the simulator."""

    @property
    def place_sizes(self) -> tuple[int, ...]:
        """Numbers of coordinates that a place may have; none if it is always the body's own position."""
        return ()

    @property
    def energies(self) -> tuple[str, ...]:
        """Names of the energies that the simulator knows, of ENERGIES."""
        return ()

    @abstractmethod
    def needs(self, node: int, *, moving: bool = False) -> Needs:
        """List the components of the state that a position depends on; those of a velocity if `moving`."""

    @abstractmethod
    def position(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        """Compute the position of a place on a body [m]."""

    @abstractmethod
    def velocity(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        """Compute the velocity of a place on a body [m/s]."""

    def turn_into(self, state: Values, vector: Vector) -> Vector:
        """Return the components of a vector along the axes of a body, which turn with it; `state`: see `needs`."""
        return vector

    def gravity(self, params: Any) -> Vector:
        """Return the gravitational acceleration [m/s^2]."""
        found = getattr(params, "gravity", None)
        return [0.0 if found is None else found[axis] for axis in range(self.dim)]


class Energetic(ABC):
    """Part of markers that tell the energies of their bodies: before Markers, a base of these."""

    @property
    def energies(self) -> tuple[str, ...]:
        """Names of the energies that are known, of ENERGIES."""
        return ENERGIES

    def energy(self, params: Any, name: str, state: Whole) -> Tensor:
        """Compute an energy of all bodies together [J], [N]."""
        assert name in self.energies, "checked on loading the scene"
        if name == KINETIC:
            return self.kinetic_energy(params, state)
        if name == POTENTIAL:
            return self.potential_energy(params, state)
        return self.kinetic_energy(params, state) + self.potential_energy(params, state)

    @abstractmethod
    def kinetic_energy(self, params: Any, state: Whole) -> Tensor:
        """Compute the energy of the motion of all bodies [J], [N]."""

    @abstractmethod
    def potential_energy(self, params: Any, state: Whole) -> Tensor:
        """Compute the energy of all forces that have a potential [J], [N]."""


@dataclass(frozen=True)
class NodeMarkers(Markers):
    """The nodes themselves, which have no extent and do not turn."""

    nodes: int
    dim: int

    def needs(self, node: int, *, moving: bool = False) -> Needs:
        return list_components("velocity" if moving else "position", node, self.dim)

    def position(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        return list(state["position"])

    def velocity(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        return list(state["velocity"])


def list_components(field: str, node: int, count: int) -> Needs:
    """List the components of a node's vector."""
    return tuple([(field, (node, axis)) for axis in range(count)])


def mark_nodes(state_shapes: Mapping[str, Shape]) -> Markers | None:
    """Return the markers of a state of bodies with positions and velocities; None for others."""
    shape = state_shapes.get("position", ())
    if len(shape) != 2 or state_shapes.get("velocity") != shape:
        return None
    return NodeMarkers(*shape)
