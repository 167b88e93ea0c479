"""Places on the link of a spherical pendulum: a distance s from the support, p = s d, dp/dt = s w x d."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simphys.autograd import Tensor, ops
from simphys.simulator.markers import Energetic, Markers, Needs, Place, Values, Vector, Whole


@dataclass(frozen=True)
class SphericalMarkers(Energetic, Markers):
    """Places on the link, by default the mass. The link may turn about itself, so it has no axes of its own."""

    nodes = 1
    dim = 3

    @property
    def place_sizes(self) -> tuple[int, ...]:
        return (1,)

    def kinetic_energy(self, params: Any, state: Whole) -> Tensor:
        swept = params.length * params.length * ops.sum(state["rate"] * state["rate"], axis=1)
        found: Tensor = 0.5 * params.mass * swept
        return found

    def potential_energy(self, params: Any, state: Whole) -> Tensor:
        """Compute the weight times the height above the support."""
        found: Tensor = -(params.mass * params.length * ops.sum(state["direction"] * params.gravity, axis=1))
        return found

    def needs(self, node: int, *, moving: bool = False) -> Needs:
        fields = ("direction", "rate") if moving else ("direction",)
        return tuple([(field, (axis,)) for field in fields for axis in range(3)])

    def position(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        distance = params.length if place is None else place[0]
        return [each * distance for each in state["direction"]]

    def velocity(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        distance = params.length if place is None else place[0]
        (x, y, z), (a, b, c) = state["direction"], state["rate"]
        return [each * distance for each in (b * z - c * y, c * x - a * z, a * y - b * x)]
