"""Largest stable time step of rigid bodies, linearised at the start, and largest distance that they may move in a step.

Forces are explicit: a step of length h is v' = v - h (K x + C v), x' = x + h v' in coordinates x of the free motions,
in which the kinetic energy is |v|^2 / 2 (linearised.py). A unit eigenvector x with eigenvalue z gives, with the numbers
k = x.K x [1/s^2] and c = x.C x [1/s], z^2 - (2 - h c - h^2 k) z + 1 - h c = 0. By Jury's conditions steps are stable if

    N(h) = 4 - 2 h C - h^2 K

is positive definite. For one spring-damper h^2 k W + 2 h c W < 4, for damping alone h c W < 2. W [1/kg] is the change
of the relative speed of its ends by a unit impulse: 1/m_a + 1/m_b plus the contribution of their arms. This is exact
for springs and joints at the start; the limit changes as bodies rotate. Dry friction F of a joint with the transition
rate w damps it at rest with c = 2 F / (pi w); beyond its limit, a joint at rest trembles. The compliant law adds limits
for

    rest        h^2 k W + 2 h N c W < 4     with the body's own weight N: each body alone, on its contacts with a plane,
    friction    2 h mu N W / v_s < 4        and everything that touches planes at the start, together
    impacts     h^2 k (1 + c v) W <= 2      each body with each plane, and each pair of bodies

W is 1/m for a ball on a floor, 7/(2 m) for its friction, 3/m for that of a disc. Beyond the second limit, friction that
should hold trembles. As friction is bounded, the amplitude of the slip is +-((h mu N W / 2)^2 - v_s^2)^(1/2). The third
limit concerns impacts at a speed v, the initial speed plus that of the fall on a plane. A depth of h v gives an impulse
h^2 k (1 + c v) v in one step, and features separate at h^2 k (1 + c v) W - 1 times their speed. Beyond 2, bodies can
rebound faster than they came, and the more so the harder the impact: a motion with impacts eventually blows up, all the
more with damping. Up to the limit, rebounds can be 1.25 times as fast without damping, 1.06 times for half the time
step, depending on when within a step bodies meet. Harder impacts, or several contacts of one body, may need shorter
steps. Motors, networks, and residuals of `sweeps` are not considered.

Bodies that fly straight at each other must not approach by more than the sum of their half thicknesses in one step:
otherwise they may be found on each other's far sides. The impulse law looks ahead (time_of_impact.py) and finds impacts
at any speed.
Source: E. I. Jury, Theory and Application of the z-Transform Method (1964); the third limit is derived here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simphys.autograd.errors import InputError
from simphys.numerics.finite import finite
from simphys.simulator import Array, Arrays, StepLimit

from .checks import COMPLIANT
from .linearised import ContactGroup, LinearisedStart, Term
from .shapes import Box, Shape

if TYPE_CHECKING:
    from .model import RigidBodies


def step_limits(model: RigidBodies, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step by springs, joints and, under the compliant law, contacts that are still to come.

    The tangent of a step at the start sees none of those, and the derivatives of impacts instead.
    """
    limit, limiting = largest_stable_dt(model, params, state)
    other = "soften or damp less what limits it"
    if limiting.startswith("friction"):
        other = "raise simulator.slip_speed"
    elif limiting.startswith("dry"):
        other = "raise its transition_rate"
    return (StepLimit(limit, f"the {limiting}", other),) if limiting else ()


def largest_stable_dt(model: RigidBodies, params: Arrays, state: Arrays) -> tuple[float, str]:
    """Return the largest stable time step [s], at most the model's, to 1e-6, and the limiting term ('': none)."""
    params, state = _to_float64(params), _to_float64(state)
    if not all(np.isfinite(values).all() for values in (*params.values(), *state.values())):
        return 0.0, "value that is not finite"
    start = LinearisedStart(model, params, state)
    if not start.freedom:
        return model.dt, ""
    permanent, contact_groups = list(start.permanent_terms()), list(start.contact_groups())
    groups = [each.at_rest for each in contact_groups]
    groups.append([term for each in contact_groups if each.touches for term in each.at_rest])
    highest, impact = _limit_impacts(contact_groups, params)
    largest, limiting = (highest, impact) if highest < model.dt else (model.dt, "")
    found = _find_instability(largest, start.freedom, permanent, groups)
    lower, upper, limiting = (0.0, largest, found) if found else (largest, largest, limiting)
    while upper - lower > max(1e-6 * upper, 1e-300):  # half of less may be flushed to 0, without end
        middle = (lower + upper) / 2
        if found := _find_instability(middle, start.freedom, permanent, groups):
            upper, limiting = middle, found
        else:
            lower = middle
    return lower, limiting


@np.errstate(over="ignore", invalid="ignore")
def _find_instability(h: float, freedom: int, permanent: Sequence[Term], groups: Sequence[Sequence[Term]]) -> str:
    """Return the term that contributes most to an indefinite N(h), of `always` and one group; '' if N is definite."""
    N = 4 * np.eye(freedom)
    for term in permanent:
        N -= term.rows.T @ (_weight(term, h)[:, None] * term.rows)
    if not np.isfinite(N).all():
        return permanent[0].name
    values, vectors = np.linalg.eigh(N)
    if values[0] <= 0:
        return max(permanent, key=lambda term: float(_weight(term, h) @ (term.rows @ vectors[:, 0]) ** 2)).name
    # N - rows^T weight rows is positive definite if weight^(1/2) rows N^-1 rows^T weight^(1/2) < 1.
    for group in filter(None, groups):
        weights = [np.maximum(_weight(term, h), 0) for term in group]
        roots = [(w[:, None] / values) ** 0.5 * (t.rows @ vectors) for t, w in zip(group, weights, strict=True)]
        both = np.concatenate(roots)
        taken, shares = np.linalg.eigh(finite(both @ both.T))
        if taken[-1] >= 1:
            parts = np.split(shares[:, -1], np.cumsum([len(root) for root in roots])[:-1])
            return group[int(np.argmax([part @ part for part in parts]))].name
    return ""


def _limit_impacts(contact_groups: Sequence[ContactGroup], params: Arrays) -> tuple[float, str]:
    """Return the largest time step for which no rebound is faster than its impact, and the limiting impact.

    Features may meet one by one, or all at once.
    """
    least, limiting = np.inf, ""
    for contact_group in contact_groups:
        mobility = contact_group.normal @ contact_group.normal.T
        rate = max(np.diag(mobility).max(), mobility.sum() / len(mobility))
        rate *= params["contact_stiffness"] * (1 + max(0.0, float(params["contact_damping"]) * contact_group.speed))
        if rate > 0 and (2 / rate) ** 0.5 < least:
            least, limiting = float((2 / rate) ** 0.5), f"impact of {contact_group.name}"
    return least, limiting


def _weight(term: Term, h: float) -> Array:
    return 2 * h * term.damping + h * h * term.stiffness


def require_slow(model: RigidBodies, fields: Arrays) -> None:
    """Raise InputError if bodies approach each other so fast that they could be found on each other's far sides."""
    if model.law != COMPLIANT:
        return
    state = _to_float64(fields)
    for a, b in model.pairs:
        offset, velocity = state["position"][a] - state["position"][b], state["velocity"][a] - state["velocity"][b]
        speed, thick = float(np.linalg.norm(velocity)), _half_thickness(model.shapes[a], model.shapes[b])
        if model.dt * speed <= thick or not (model.shapes[a] and model.shapes[b]):
            continue
        ahead = -float(offset @ velocity) / speed
        if ahead > 0 and float(offset @ offset) < ahead**2 + thick**2:
            constraint = f"bodies that meet approach in a step by at most both half thicknesses, here {thick:.3g}"
            found = f"{model.dt:g}, in which bodies {a} and {b} come {model.dt * speed:.3g} closer"
            raise InputError("time.dt", constraint, found, f"Set time.dt to {0.9 * thick / speed:.2g} or less.")


def _half_thickness(*bodies: Sequence[Shape]) -> float:
    """Return the sum of the bodies' half thicknesses: for each, that of its thickest shape at its thinnest [m]."""
    own = [[min(each.half) if isinstance(each, Box) else each.radius for each in shapes] for shapes in bodies]
    return sum([max(each, default=0.0) for each in own])


def _to_float64(fields: Arrays) -> dict[str, Array]:
    return {name: np.asarray(values, np.float64) for name, values in fields.items()}
