"""A bound of the time step of springs and joints in closed form, beyond which the tangent of a step decides.

Forces are explicit: a step of length h is v' = v - h (K x + C v), x' = x + h v' in coordinates x in which the kinetic
energy is |v|^2 / 2. It is stable if h^2 K + 2 h C < 4 for the largest eigenvalues (`bound_step`). To the forms of K and
C, each spring-damper and each joint adds squares (w_a . x_a + w_b . x_b)^2, with a vector for each of its two bodies.
With B the matrix of the lengths |w|, a row for each link and a column for each body, the largest eigenvalue is at most
|B|^2: it is that of B B^T, whose entries are not less than the products of the vectors. With k and c stiffness and
damping, r the arm of an end, A the inertia, F the force, L the length at rest and l the present one,

    |w|^2 <= k max(1, 1 - L/l) W + |F| |r| |A^-1|, c W      W = 1/m + |r|^2 |A^-1|

where k (1 - L/l) acts across a spring, and F on an arm that turns. A joint has its damping c, with W = |A^-1| if it
turns. Dry friction F with the transition rate w damps it at rest with 2 F / (pi w). Joints forbid motions, which makes
no eigenvalue larger: the limit of a light body on a heavy one may be far above the bound.
Source: Perron and Frobenius, for B B^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simphys.numerics.dry_friction import PER_RIGHT_ANGLE
from simphys.numerics.orientation import matrices
from simphys.simulator import Array, Arrays, StepLimit
from simphys.simulator.step_limit import bound_step

from .joints.joint import Spring
from .joints.joint_tables import LINE
from .pseudo_inertia import as_matrix

if TYPE_CHECKING:
    from .model import RigidBodies


class Link(NamedTuple):
    """A spring-damper with its values."""

    spring: Spring
    stiffness: float
    damping: float
    length: float


class System(NamedTuple):
    """Springs and joints of bodies at rest without contacts, with anchors that are constants."""

    model: RigidBodies
    params: Arrays
    state: Arrays

    def add(self, links: Sequence[Link]) -> System:
        """Return the system with more spring-dampers."""
        springs, *values = zip(*links, strict=True)
        names = ("spring_stiffness", "spring_damping", "spring_length")
        longer = {name: np.append(self.params[name], each) for name, each in zip(names, values, strict=True)}
        model = replace(self.model, springs=(*self.model.springs, *springs))
        return self._replace(model=model, params={**self.params, **longer})

    def limit(self, cause: str, remedy: str) -> StepLimit:
        """Limit the time step by the bound, beyond which the tangent of a step decides."""
        dt = bound_step(*[_bound_eigenvalue(each) for each in self._squares()])
        return StepLimit(dt, cause, remedy, (self,) if dt < self.model.dt else ())

    def name_links(self) -> str:
        """Name springs and joints, and the one that would limit the model's time step most without constraints."""
        stiffness, damping = self._squares()
        names = [f"spring {index}" for index in range(len(self.model.springs))]
        names += [f"joint {joint}" for joint in self.model.free_rows.joint]
        shares = (self.model.dt * stiffness + 2 * damping).sum(axis=1)
        return f"springs and joints, the fastest on free bodies being {names[int(np.argmax(shares))]}" if names else ""

    @np.errstate(over="ignore")
    def _squares(self) -> tuple[Array, Array]:
        """Return |w|^2 of stiffness [1/s^2] and of damping [1/s], [links, n + 1], the last column of the world."""
        model, params = self.model, self.params
        springs, table, joints = model.spring_ends, model.free_rows, model.joint_ends
        mass = np.append(model.free / params["mass"], 0.0)
        spin = np.append(model.free / np.linalg.eigvalsh(as_matrix(params["inertia"]))[:, 0], 0.0)
        k, c, L = params["spring_stiffness"], params["spring_damping"], params["spring_length"]
        d = self._locate(springs.b, springs.anchor_b) - self._locate(springs.a, springs.anchor_a)
        length = np.linalg.norm(d, axis=1)
        across = np.maximum(1.0, 1 - np.divide(L, length, out=np.zeros_like(L), where=length > 0))
        rate = params["joint_damping"]
        if model.joint_friction:
            rate = rate + PER_RIGHT_ANGLE * params["joint_dry_friction"] / params["joint_transition_rate"]
        none, rows = np.zeros(len(table.a)), np.arange(len(k) + len(table.a))
        k, F, c = np.append(k * across, none), np.append(k * np.abs(length - L), none), np.append(c, rate[table.joint])
        turns = np.append(np.zeros(len(L), bool), table.kind != LINE)
        stiffness, damping = np.zeros((2, len(rows), model.bodies + 1))
        for own, other, anchor, joint_anchor in zip(springs[:2], table[:2], springs[2:4], joints[2:4], strict=True):
            body = np.append(own, other)
            arm = np.where(turns, 1.0, np.linalg.norm(np.vstack([anchor, joint_anchor[table.joint]]), axis=1))
            W = np.where(turns, 0.0, mass[body]) + arm**2 * spin[body]
            stiffness[rows, body], damping[rows, body] = k * W + F * arm * spin[body], c * W
        return stiffness, damping

    def _locate(self, bodies: Array, anchors: Array) -> Array:
        """Return where points of bodies, or of the world, are."""
        dim = self.model.dim
        x = np.vstack([self.state["position"], np.zeros(dim)])
        R = np.concatenate([matrices(self.state["orientation"]), np.eye(dim)[None]])
        found: Array = x[bodies] + np.einsum("kij,kj->ki", R[bodies], anchors)
        return found


def rest(model: RigidBodies, params: Arrays, state: Arrays) -> System:
    """Stop all bodies, leave their contacts and gravity out, and take present anchors for constants."""
    still = {**state, **{name: 0 * state[name] for name in ("velocity", "angular_velocity")}}
    if model.free_anchors:
        centres = np.vstack([params["centre_of_mass"], np.zeros((1, model.dim))])  # the last one is the world's
        joints = _hold(model.joints, params["joint_anchor_a"], params["joint_anchor_b"], centres)
        springs = _hold(model.springs, params["spring_anchor_a"], params["spring_anchor_b"], centres)
        model = replace(model, joints=joints, springs=springs, free_anchors=False)
    alone = replace(model, shapes=((),) * model.bodies, planes=())
    return System(alone, {**params, "gravity": np.zeros(model.dim)}, still)


def _hold(links: Sequence[Any], a: Array, b: Array, centres: Array) -> tuple[Any, ...]:
    """Give joints or springs these anchors, as seen from centres of mass."""
    return tuple(
        [
            replace(link, anchor_a=tuple(one - centres[link.a]), anchor_b=tuple(other - centres[link.b]))
            for link, one, other in zip(links, a, b, strict=True)
        ]
    )


def _bound_eigenvalue(squares: Array) -> float:
    """Return |B|^2 for the squares of its entries; negative ones, as a fit may try, only make eigenvalues smaller."""
    if not np.isfinite(squares).all():
        return np.inf
    return float(np.linalg.norm(np.sqrt(np.maximum(squares, 0.0)), 2) ** 2) if squares.size else 0.0
