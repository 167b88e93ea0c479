"""Places r on rigid bodies, in the frame of the body: p = x + R (r - c), dp/dt = v + w x R (r - c).

c is the centre of mass there, the origin unless it is a parameter (joints/arms.py).

R turns by the angle in the plane. In space it follows from the quaternion (s, u), which interpolation between steps
leaves a little shorter than 1:

    R r = ((s^2 - u.u) r + 2 (u.r) u + 2 s u x r) / (s^2 + u.u)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simphys.autograd import ops
from simphys.simulator.markers import Markers, Needs, Place, Values, Vector, list_components


@dataclass(frozen=True)
class RigidMarkers(Markers):
    """Places on n bodies, by default their centres of mass."""

    nodes: int
    dim: int

    @property
    def place_sizes(self) -> tuple[int, ...]:
        return (self.dim,)

    def needs(self, node: int, *, moving: bool = False) -> Needs:
        spins, rotations = (1, 1) if self.dim == 2 else (3, 4)
        sizes = {"position": self.dim, "orientation": rotations}
        if moving:
            sizes = {"orientation": rotations, "velocity": self.dim, "angular_velocity": spins}
        return tuple([need for field, size in sizes.items() for need in list_components(field, node, size)])

    def position(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        if place is None:
            return list(state["position"])
        arm = turn(list(state["orientation"]), self._from_centre(params, node, place))
        return [centre + part for centre, part in zip(state["position"], arm, strict=True)]

    def velocity(self, params: Any, node: int, place: Place, state: Values) -> Vector:
        if place is None:
            return list(state["velocity"])
        arm = turn(list(state["orientation"]), self._from_centre(params, node, place))
        spin = list(state["angular_velocity"])
        swept = [-(spin[0] * arm[1]), spin[0] * arm[0]] if self.dim == 2 else cross(spin, arm)
        return [centre + part for centre, part in zip(state["velocity"], swept, strict=True)]

    def _from_centre(self, params: Any, node: int, place: Vector | tuple[float, ...]) -> Vector:
        """Return a place counted from the centre of mass."""
        centre = params.centre_of_mass
        if centre.ndim < 2:
            return list(place)
        return [each - centre[node, axis] for axis, each in enumerate(place)]

    def turn_into(self, state: Values, vector: Vector) -> Vector:
        angle, *rest = state["orientation"]
        reverse = [angle, *[-each for each in rest]] if rest else [-angle]
        return turn(reverse, vector)


def turn(orientation: Vector, vector: Vector) -> Vector:
    """Turn a vector by an angle, or by a quaternion of any length."""
    if len(orientation) == 1:
        cosine, sine = ops.cos(orientation[0]), ops.sin(orientation[0])
        x, y = vector
        return [cosine * x - sine * y, sine * x + cosine * y]
    s, *u = orientation
    length = _dot(u, u)
    own, along, size = s * s - length, 2.0 * _dot(u, vector), s * s + length
    turned = cross(u, vector)
    return [
        (own * each + along * axis + 2.0 * (s * part)) / size
        for each, axis, part in zip(vector, u, turned, strict=True)
    ]


def cross(a: Vector, b: Vector) -> Vector:
    """Return the vector product in space."""
    return [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]


def _dot(a: Vector, b: Vector) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
