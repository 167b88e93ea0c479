"""Places on the links of a chain: a distance along a link from its upper joint, and one across it.

With e_i = (sin a_i, -cos a_i) along link i, t_i = (cos a_i, sin a_i) across it, d e_i / dt = w_i t_i:

    p = sum_{j<i} l_j e_j + s e_i + c t_i,      dp/dt = sum_{j<i} l_j w_j t_j + s w_i t_i - c w_i e_i

Energies are those of the motion of the centres of mass and about them, and of gravity; that of the first joint is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simphys.autograd import Tensor, ops
from simphys.simulator.markers import ENERGIES, Energetic, Markers, Needs, Place, Values, Vector, Whole


@dataclass(frozen=True)
class ChainMarkers(Energetic, Markers):
    """Places on n links; the default is the end of a link, which moves if its length is unknown."""

    nodes: int
    in_moving_frame: bool = False
    """True if places are relative to a pivot that moves, in whose frame no energy is known."""
    dim = 2

    @property
    def place_sizes(self) -> tuple[int, ...]:
        return 1, 2

    def needs(self, node: int, *, moving: bool = False) -> Needs:
        fields = ("angle", "rate") if moving else ("angle",)
        return tuple([(field, (link,)) for field in fields for link in range(node + 1)])

    def position(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        found: Vector = [0.0, 0.0]
        for link, angle in enumerate(state["angle"]):
            along, across = _reach(params, link, node, place)
            sine, cosine = ops.sin(angle), ops.cos(angle)
            found = [found[0] + sine * along + cosine * across, found[1] - cosine * along + sine * across]
        return found

    def velocity(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        found: Vector = [0.0, 0.0]
        for link, (angle, rate) in enumerate(zip(state["angle"], state["rate"], strict=True)):
            along, across = _reach(params, link, node, place)
            sine, cosine = ops.sin(angle), ops.cos(angle)
            turned = [cosine * along - sine * across, sine * along + cosine * across]
            found = [total + rate * each for total, each in zip(found, turned, strict=True)]
        return found

    @property
    def energies(self) -> tuple[str, ...]:
        return () if self.in_moving_frame else ENERGIES

    def kinetic_energy(self, params: Any, state: Whole) -> Tensor:
        found: Any = 0.0
        x, y = 0.0, 0.0  # velocity of the upper joint
        for link in range(self.nodes):
            angle, rate = state["angle"][:, link], state["rate"][:, link]
            across, along = rate * ops.cos(angle), rate * ops.sin(angle)
            arm = params.length[link] * params.centre[link]
            v_x, v_y = x + across * arm, y + along * arm
            moved = params.mass[link] * (v_x * v_x + v_y * v_y)
            found = found + 0.5 * (moved + params.inertia[link] * (rate * rate))
            x, y = x + across * params.length[link], y + along * params.length[link]
        total: Tensor = found
        return total

    def potential_energy(self, params: Any, state: Whole) -> Tensor:
        """Compute the weight of all links times their height above the first joint."""
        found: Any = 0.0
        height: Any = 0.0  # of the upper joint, against gravity
        for link in range(self.nodes):
            rise = -ops.cos(state["angle"][:, link] - params.tilt)
            arm = params.length[link] * params.centre[link]
            found = found + params.gravity * params.mass[link] * (height + rise * arm)
            height = height + rise * params.length[link]
        total: Tensor = found
        return total

    def turn_into(self, state: Values, vector: Vector) -> Vector:
        """Return the components along a link, away from its upper joint, and across it."""
        sine, cosine = ops.sin(state["angle"][-1]), ops.cos(state["angle"][-1])
        return [sine * vector[0] - cosine * vector[1], cosine * vector[0] + sine * vector[1]]

    def gravity(self, params: Any) -> Vector:
        return [ops.sin(params.tilt) * params.gravity, -(ops.cos(params.tilt) * params.gravity)]


def _reach(params: Any, link: int, node: int, place: Place) -> tuple[Any, float]:
    """Return how far along a link, and across it, the way to a place goes [m]."""
    if link < node or place is None:
        return params.length[link], 0.0
    return place[0], place[1] if len(place) > 1 else 0.0
