"""Places r on rigid bodies, in the frame of the body: p = x + R (r - c), dp/dt = v + w x R (r - c).

c is the centre of mass there, the origin unless it is a parameter (joints/joint_constraints.py).

R turns by the angle in the plane. In space it follows from the quaternion (s, u), which interpolation between steps
leaves a little shorter than 1:

    R r = ((s^2 - u.u) r + 2 (u.r) u + 2 s u x r) / (s^2 + u.u)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simphys.autograd import Tensor, ops
from simphys.simulator.markers import (
    ENERGIES,
    KINETIC,
    Energetic,
    Markers,
    Needs,
    Place,
    Values,
    Vector,
    Whole,
    list_components,
)

from .joints.joint import WORLD, Spring


@dataclass(frozen=True)
class RigidMarkers(Energetic, Markers):
    """Places on n bodies, by default their centres of mass."""

    nodes: int
    dim: int
    free: tuple[int, ...] | None = None
    """Bodies that move; None: all."""
    springs: tuple[Spring, ...] = ()
    conservative: bool = True
    """False if contacts store energy, of which nothing is known here."""

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
        return [centre + part for centre, part in zip(state["velocity"], sweep(spin, arm), strict=True)]

    @property
    def energies(self) -> tuple[str, ...]:
        return ENERGIES if self.conservative else (KINETIC,)

    def kinetic_energy(self, params: Any, state: Whole) -> Tensor:
        """Compute m v^2 / 2 + w.(A w) / 2 of all bodies that move."""
        v, w, q = state["velocity"], state["angular_velocity"], state["orientation"]
        spin = [w[:, :, k] for k in range(w.shape[2])]
        if self.dim == 3:
            spin = turn([q[:, :, 0], *[-q[:, :, k] for k in (1, 2, 3)]], spin)
        J = [params.inertia[:, k] for k in range(params.inertia.shape[1])]
        turned = sum([J[k] * each * each for k, each in enumerate(spin)][1:], J[0] * spin[0] * spin[0])
        for k, (i, j) in enumerate(((1, 2), (0, 2), (0, 1)) if len(J) == 6 else ()):
            turned = turned + 2.0 * J[3 + k] * spin[i] * spin[j]
        every = params.mass * ops.sum(v * v, axis=2) + turned
        found: Tensor = 0.5 * ops.sum(every[:, self._moving], axis=1)
        return found

    def potential_energy(self, params: Any, state: Whole) -> Tensor:
        """Compute -m g.x of all bodies that move, from the origin, and k (d - L)^2 / 2 of all springs."""
        x = state["position"]
        weights = params.mass * ops.sum(x * params.gravity, axis=2)
        found: Tensor = -ops.sum(weights[:, self._moving], axis=1)
        for number, spring in enumerate(self.springs):
            anchors = [list(spring.anchor_a), list(spring.anchor_b)]
            if params.spring_anchor_a.ndim == 2:
                both = params.spring_anchor_a[number], params.spring_anchor_b[number]
                anchors = [[each[axis] for axis in range(self.dim)] for each in both]
            ends = [
                self._locate(params, state, body, anchor)
                for body, anchor in zip((spring.a, spring.b), anchors, strict=True)
            ]
            apart = ops.stack([one - other for one, other in zip(*ends, strict=True)], axis=1)
            stretch = ops.norm(apart, axis=1) - params.spring_length[number]
            found = found + 0.5 * params.spring_stiffness[number] * stretch * stretch
        return found

    @property
    def _moving(self) -> list[int]:
        return list(range(self.nodes) if self.free is None else self.free)

    def _locate(self, params: Any, state: Whole, body: int, anchor: Vector) -> Vector:
        """Compute where the end of a spring is, on a body or in the world."""
        if body == WORLD:
            return list(anchor)
        x, q = state["position"], state["orientation"]
        arm = turn([q[:, body, k] for k in range(q.shape[2])], self._from_centre(params, body, anchor))
        return [x[:, body, k] + each for k, each in enumerate(arm)]

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


def sweep(spin: Vector, arm: Vector) -> Vector:
    """Return the velocity of the end of an arm that turns."""
    return [-(spin[0] * arm[1]), spin[0] * arm[0]] if len(arm) == 2 else cross(spin, arm)


def cross(a: Vector, b: Vector) -> Vector:
    """Return the vector product in space."""
    return [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]


def _dot(a: Vector, b: Vector) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
