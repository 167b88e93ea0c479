"""Forces of rigid bodies linearised at the start: stiffness and damping of the motions that joints leave free.

With u the unit direction of a force and P = 1 - u u^T, the rates at which two ends separate have stiffness and damping

    spring      k (u u^T + (1 - L/l) P) and c u u^T (spring_damper.py). Its force f also acts on the rotating arms r of
                both bodies: their rotations have a stiffness +-(f.r - (f r^T + r f^T) / 2), in the plane +-f.r
    joint       its damping, for the rate that it leaves free (motor.py)
    contact     under the compliant law: k u u^T and, with the normal force N, for slow slip
                N c u u^T + mu N/v_s P (compliant.py)

These are derivatives of the forces, and second derivatives of the spring's energy. stability.py uses them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simphys.numerics.dry_friction import PER_RIGHT_ANGLE
from simphys.numerics.finite import finite
from simphys.numerics.orientation import matrices
from simphys.simulator import Array, Arrays

from .checks import COMPLIANT
from .contacts.feature import PLANE
from .joints.joint import WORLD
from .joints.joint_tables import LINE, Table
from .pseudo_inertia import as_matrix

if TYPE_CHECKING:
    from .model import RigidBodies

TOUCH = 1e-9
"""Features touch a plane if they are this close [m], or closer than their weight would press them in."""


class Term(NamedTuple):
    """Forces -rows^T (stiffness rows x + damping rows v)."""

    name: str
    rows: Array
    """[r, d]"""
    stiffness: Array
    """[r]"""
    damping: Array
    """[r]"""


class ContactGroup(NamedTuple):
    """Contacts of a body and a plane, or of two bodies, that act simultaneously."""

    name: str
    normal: Array
    """Rate along the normal of each contact, [m, d]."""
    speed: float
    """Speed of impact if bodies fly, or fall, straight on from the start [m/s]."""
    at_rest: list[Term]
    """Stiffness and damping while the body's own weight rests on the plane."""
    touches: bool
    """True if they touch the plane at the start."""


class LinearisedStart:
    """Initial poses, and the d motions x that joints leave free, with kinetic energy |dx/dt|^2 / 2."""

    def __init__(self, model: RigidBodies, params: Arrays, state: Arrays) -> None:
        self.model, self.params, self.position = model, params, state["position"]
        self._twist = np.hstack([state["velocity"], state["angular_velocity"]])
        self.rotation = matrices(state["orientation"])
        n, dim, size = model.bodies, model.dim, model.dim + model.spins
        centres = params["centre_of_mass"] if model.free_anchors else np.zeros((n, dim))
        self._centres = np.vstack([centres, np.zeros((1, dim))])  # the last one is the world's
        self._arms = find_arms(model, params, self._centres)
        own = np.zeros((n, size, n, size))
        for body in range(n):
            own[body, :dim, body, :dim] = np.eye(dim) / np.sqrt(params["mass"][body])
            frame = self.rotation[body] if dim == 3 else np.eye(1)
            own[body, dim:, body, dim:] = frame @ _unit_spins(params["inertia"][body])
        self._twists = own.reshape(n * size, n * size)[:, model.free.repeat(size) == 1]
        if model.joints and self.freedom:
            _, found, across = np.linalg.svd(finite(self._joint_rates(model.constraints)))
            self._twists = self._twists @ across[np.count_nonzero(found > 1e-6 * found.max(initial=0)) :].T

    @property
    def freedom(self) -> int:
        """Number of free motions, d."""
        return int(self._twists.shape[1])

    def permanent_terms(self) -> Iterator[Term]:
        """Yield springs, and the damping of joints, which dry friction adds to most where they are at rest."""
        yield from self._springs()
        table = self.model.free_rows
        for joint, row in zip(table.joint.tolist(), self._joint_rates(table), strict=True):
            damping = self.params["joint_damping"][joint : joint + 1]
            yield Term(f"damping of joint {joint}", row[None], np.zeros(1), damping)
            if self.model.joint_friction:
                dry = PER_RIGHT_ANGLE * self.params["joint_dry_friction"] / self.params["joint_transition_rate"]
                yield Term(f"dry friction of joint {joint}", row[None], np.zeros(1), dry[joint : joint + 1])

    def contact_groups(self) -> Iterator[ContactGroup]:
        """Yield contacts under the compliant law: each body with its nearest features to each plane, and each pair of
        bodies along the line of centres."""
        if self.model.law != COMPLIANT or not self.params["contact_stiffness"] > 0:
            return
        for (body, _), features in self._features().items():
            yield self._contact_group(body, features)
        for a, b in self.model.pairs:
            line = self.position[a] - self.position[b]
            if self.model.shapes[a] and self.model.shapes[b] and line.any():
                u = np.concatenate([line / np.linalg.norm(line), np.zeros(self.model.spins)])
                row = self._rate(a, u[None], b, u[None])
                closing = float(u @ (self._twist[b] - self._twist[a]))
                yield ContactGroup(f"bodies {a} and {b}", row, closing, [], False)

    def _rate(self, a: int, map_a: Array, b: int, map_b: Array) -> Array:
        """Map map_a [r, D] times the twist of a, minus map_b times that of b, to the free motions: [r, d]."""
        twists = self._twists.reshape(self.model.bodies, -1, self.freedom)
        found: Array = map_a @ twists[a]
        return found if b == WORLD else found - map_b @ twists[b]

    def _locate(self, body: int, anchor: Array) -> tuple[Array, Array]:
        """Return the position of a body's (or the world's) point, and the arm from the body's centre [dim]."""
        arm = anchor if body == WORLD else self.rotation[body] @ anchor
        return arm if body == WORLD else self.position[body] + arm, arm

    def _joint_rates(self, table: Table) -> Array:
        """Return the rates of joint rows (joint_constraints.py), [m, d]."""
        dim, found = self.model.dim, [np.zeros((0, self.freedom))]
        arms = self._arms[table.joint].reshape(-1, 2, dim)
        links = zip(table.a.tolist(), table.b.tolist(), table.kind, table.parts, arms, strict=True)
        for a, b, kind, part, (anchor_a, anchor_b) in links:
            c = part[:dim]
            direction, (x_a, r_a), (x_b, r_b) = (
                self.rotation[a] @ c,
                self._locate(a, anchor_a),
                self._locate(b, anchor_b),
            )
            if kind == LINE:
                pulls = direction @ _velocity(r_a if b == WORLD else r_a + x_b - x_a), direction @ _velocity(r_b)
                found.append(self._rate(a, pulls[0][None], b, pulls[1][None]))
            else:
                turns = np.concatenate([np.zeros(dim), direction if dim == 3 else np.ones(1)])[None]
                found.append(self._rate(a, turns, b, turns))
        return np.concatenate(found)

    def _springs(self) -> Iterator[Term]:
        params, dim = self.params, self.model.dim
        turns = np.eye(dim + self.model.spins)[dim:]
        ends = self.model.spring_ends[2:4]
        if self.model.free_anchors:
            ends = params["spring_anchor_a"], params["spring_anchor_b"]
        for index, spring in enumerate(self.model.springs):
            k, c, L = (params[f"spring_{name}"][index] for name in ("stiffness", "damping", "length"))
            x_a, r_a = self._locate(spring.a, ends[0][index] - self._centres[spring.a])
            x_b, r_b = self._locate(spring.b, ends[1][index] - self._centres[spring.b])
            d = x_b - x_a
            length = float(np.linalg.norm(d))
            u, across = (d / length, k * (1 - L / length)) if length else (d, k)
            rows = [_split_directions(u, self._rate(spring.a, _velocity(r_a), spring.b, _velocity(r_b)))]
            stiffness = [np.array([k, *[across] * dim])]
            for body, r, sign in ((spring.a, r_a, 1), (spring.b, r_b, -1)):
                if body != WORLD:
                    values, vectors = np.linalg.eigh(finite(sign * _arm_stiffness(across * d, r)))
                    rows.append(self._rate(body, vectors.T @ turns, WORLD, turns))
                    stiffness.append(values)
            damping = np.zeros(sum([len(each) for each in stiffness]))
            damping[0] = c
            yield Term(f"spring {index}", np.concatenate(rows), np.concatenate(stiffness), damping)

    def _features(self) -> dict[tuple[int, tuple[float, ...]], list[Array]]:
        """Return, for each body and each plane's numbers, the features that may touch."""
        found, size = self.model.candidates, 3 * self.model.dim + 1
        features = defaultdict(list)
        for i in np.flatnonzero(found.kind == PLANE):
            features[int(found.body_a[i]), tuple(found.constants[i, size:].tolist())].append(found.constants[i])
        return features

    def _contact_group(self, body: int, features: list[Array]) -> ContactGroup:
        params, dim = self.params, self.model.dim
        k, c = float(params["contact_stiffness"]), float(params["contact_damping"])
        u, offset = features[0][3 * dim + 1 : 4 * dim + 1], features[0][-1]
        pull = max(0.0, -float(params["gravity"] @ u))
        arms = []
        for each in features:
            centre, half, signs = each[: 3 * dim].reshape(3, dim)
            arms.append(self._locate(body, centre - self._centres[body] + signs * half)[1] - each[3 * dim] * u)
        gaps = np.array([u @ (self.position[body] + arm) for arm in arms]) - offset
        weight = float(params["mass"][body]) * pull
        near = [arms[i] for i in np.flatnonzero((gaps - gaps.min() - TOUCH) * k <= weight)]
        force, slope = weight / len(near), float(params["friction"][body]) / self.model.slip_speed
        terms, direction = [], []
        for arm in near:
            middle = arm + force / (2 * k) * u  # of the overlap at rest
            rows = _split_directions(u, self._rate(body, _velocity(middle), WORLD, np.zeros(0)))
            terms.append(Term(f"contact of body {body}", rows[:1], np.array([k]), np.array([c * force])))
            terms.append(Term(f"friction of body {body}", rows[1:], np.zeros(dim), np.full(dim, slope * force)))
            direction.append(rows[0])
        closing = max([-float(u @ _velocity(arm) @ self._twist[body]) for arm in near])
        speed = (max(0.0, closing) ** 2 + 2 * pull * max(0.0, gaps.min())) ** 0.5
        return ContactGroup(f"body {body}", np.array(direction), speed, terms, bool((gaps.min() - TOUCH) * k <= weight))


def _unit_spins(inertia: Array) -> Array:
    """Return angular velocities in the frame of a body, as columns, whose energies are 1/2 each and add up."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(as_matrix(inertia))).T)


def find_arms(model: RigidBodies, params: Arrays, centres: Array) -> Array:
    """Return where each joint lies from the centres of mass of its bodies, [J, 2 dim]; `centres`: the world's last."""
    ends = model.joint_ends
    if not model.free_anchors:
        return ends.arms
    anchors = params["joint_anchor_a"] - centres[ends.a], params["joint_anchor_b"] - centres[ends.b]
    return np.hstack(anchors)


def _velocity(r: Array) -> Array:
    """Return the map from a body's twist to the velocity of its point r from the centre: [dim, D]."""
    return np.hstack([np.eye(len(r)), np.cross(np.eye(3), r).T if len(r) == 3 else np.array([[-r[1]], [r[0]]])])


def _split_directions(u: Array, rows: Array) -> Array:
    """Split rows [dim, d] into the component along u, then the remainder: [1 + dim, d]."""
    direction = u @ rows
    return np.concatenate([direction[None], rows - np.outer(u, direction)])


def _arm_stiffness(f: Array, r: Array) -> Array:
    """Return the change of the torque of a force f on an arm r by a rotation of the arm, [S, S]."""
    if len(r) == 2:
        return np.array([[f @ r]])
    return f @ r * np.eye(3) - (np.outer(f, r) + np.outer(r, f)) / 2
