"""The largest stable time step of rigid bodies, linearised at the start, and how far they may go in a step.

Forces are explicit: a step of length h is v' = v - h (K x + C v), x' = x + h v' in coordinates x of what joints leave
free, in which the kinetic energy is |v|^2 / 2 (linearised.py). An eigenvector x of length 1 with eigenvalue z gives,
with the numbers k = x.K x [1/s^2] and c = x.C x [1/s], z^2 - (2 - h c - h^2 k) z + 1 - h c = 0. By Jury's conditions
steps are stable where

    N(h) = 4 - 2 h C - h^2 K

is positive definite: for one spring with a damper h^2 k W + 2 h c W < 4, for damping alone h c W < 2, where W [1/kg] is
the change of the speed of its ends by a unit impulse, 1/m_a + 1/m_b and what their arms add. This is exact for springs
and joints; bodies turn, and it with them. Under the compliant law there are, besides,

    rest        h^2 k W + 2 h N c W < 4     with the body's own weight N: each body alone, on what is next to a plane,
    friction    2 h mu N W / v_s < 4        and all that touches planes at the start together
    impacts     h^2 k (1 + c v) W <= 2      of each body with each plane, and of each two bodies

W is 1/m for a ball on a floor, for its friction 7/(2 m), of a disc 3/m. Beyond the second limit, what friction should
hold trembles, as that is bounded: with a slip of +-((h mu N W / 2)^2 - v_s^2)^(1/2). The third is that of impacts at a
speed v, that of the start with the fall on a plane: a depth of h v gives an impulse h^2 k (1 + c v) v in one step, and
features part at h^2 k (1 + c v) W - 1 times their speed. Beyond 2 they can come back faster than they came, and the
more the harder they hit: a motion with impacts takes off, sooner or later the more they are damped. Up to it they can
be 1.25 times as fast without damping, 1.06 times in half as long steps, by when in a step they meet. Where impacts turn
out harder, or several contacts share a body, shorter steps may be needed. Motors, networks, and what `sweeps` leave
unsolved, are not looked at.

Nor must bodies that fly straight at each other come farther in a step than both are half thick: else they may be found
on each other's far sides. The impulse law looks ahead (meeting.py): there they meet at any speed.
Source: E. I. Jury, Theory and Application of the z-Transform Method (1964); the third limit is derived here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays

from .checks import COMPLIANT, check_params
from .linearised import Landing, Start, Term
from .shapes import Box, Shape

if TYPE_CHECKING:
    from .model import Params, RigidBodies, State


def require_stable(model: RigidBodies, params: Params, state: State) -> None:
    """Raise InputError where the time step is beyond the largest stable one, or bodies that approach are too fast."""
    check_params(params.arrays())
    limit, what = largest_stable_dt(model, params.arrays(), state.arrays())
    if what:
        constraint = f"the largest stable time step of this scene is {limit:.4g} s"
        other = "raise simulator.slip_speed" if what.startswith("friction") else "soften or damp less what limits it"
        remedy = f"Set time.dt to {0.9 * limit:.2g} or less, or {other}."
        raise InputError("time.dt", constraint, f"{model.dt:g} s; the {what} limits it", remedy)
    if model.law == COMPLIANT:
        _require_slow(model, _doubles(state.arrays()))


def largest_stable_dt(model: RigidBodies, params: Arrays, state: Arrays) -> tuple[float, str]:
    """The largest time step [s], at most the model's, that is stable, to 1e-6, and what limits it ('': nothing)."""
    params, state = _doubles(params), _doubles(state)
    if not all(np.isfinite(values).all() for values in (*params.values(), *state.values())):
        return 0.0, "value that is not finite"
    start = Start(model, params, state)
    if not start.freedom:
        return model.dt, ""
    always, landings = list(start.always()), list(start.landings())
    groups = [each.at_rest for each in landings]
    groups.append([term for each in landings if each.touches for term in each.at_rest])
    highest, hit = _impacts(landings, params)
    largest, what = (highest, hit) if highest < model.dt else (model.dt, "")
    found = _unstable(largest, start.freedom, always, groups)
    lower, upper, what = (0.0, largest, found) if found else (largest, largest, what)
    while upper - lower > 1e-6 * upper:
        middle = (lower + upper) / 2
        if found := _unstable(middle, start.freedom, always, groups):
            upper, what = middle, found
        else:
            lower = middle
    return lower, what


def _unstable(h: float, freedom: int, always: Sequence[Term], groups: Sequence[Sequence[Term]]) -> str:
    """What most makes N(h) not positive, of what always acts and each one of the groups; '' where it is positive."""
    N = 4 * np.eye(freedom)
    for term in always:
        N -= term.rows.T @ (_weight(term, h)[:, None] * term.rows)
    values, vectors = np.linalg.eigh(N)
    if values[0] <= 0:
        return max(always, key=lambda term: float(_weight(term, h) @ (term.rows @ vectors[:, 0]) ** 2)).name
    # N - rows^T weight rows is positive where weight^(1/2) rows N^-1 rows^T weight^(1/2) < 1.
    for group in filter(None, groups):
        weights = [np.maximum(_weight(term, h), 0) for term in group]
        roots = [(w[:, None] / values) ** 0.5 * (t.rows @ vectors) for t, w in zip(group, weights, strict=True)]
        both = np.concatenate(roots)
        taken, shares = np.linalg.eigh(both @ both.T)
        if taken[-1] >= 1:
            parts = np.split(shares[:, -1], np.cumsum([len(root) for root in roots])[:-1])
            return group[int(np.argmax([part @ part for part in parts]))].name
    return ""


def _impacts(landings: Sequence[Landing], params: Arrays) -> tuple[float, str]:
    """The time step up to which impacts are no faster after one step than before, and which they are.

    Of features that meet one by one, or all at once.
    """
    least, what = np.inf, ""
    for landing in landings:
        mobility = landing.normal @ landing.normal.T
        rate = max(np.diag(mobility).max(), mobility.sum() / len(mobility))
        rate *= params["contact_stiffness"] * (1 + max(0.0, float(params["contact_damping"]) * landing.speed))
        if rate > 0 and (2 / rate) ** 0.5 < least:
            least, what = float((2 / rate) ** 0.5), f"impact of {landing.name}"
    return least, what


def _weight(term: Term, h: float) -> Array:
    return 2 * h * term.damping + h * h * term.stiffness


def _require_slow(model: RigidBodies, state: Arrays) -> None:
    for a, b in model.pairs:
        apart, velocity = state["position"][a] - state["position"][b], state["velocity"][a] - state["velocity"][b]
        speed, thick = float(np.linalg.norm(velocity)), _half_thickness(model.shapes[a], model.shapes[b])
        if model.dt * speed <= thick or not (model.shapes[a] and model.shapes[b]):
            continue
        ahead = -float(apart @ velocity) / speed
        if ahead > 0 and float(apart @ apart) < ahead**2 + thick**2:
            constraint = f"bodies that meet move no more in a step than both are half thick, here {thick:.3g} m"
            found = f"{model.dt:g} s, in which bodies {a} and {b} come {model.dt * speed:.3g} m closer"
            raise InputError("time.dt", constraint, found, f"Set time.dt to {0.9 * thick / speed:.2g} or less.")


def _half_thickness(*bodies: Sequence[Shape]) -> float:
    """The sum, of each body that of its thickest shape where it is thinnest [m]."""
    own = [[min(each.half) if isinstance(each, Box) else each.radius for each in shapes] for shapes in bodies]
    return sum([max(each, default=0.0) for each in own])


def _doubles(fields: Arrays) -> dict[str, Array]:
    return {name: np.asarray(values, np.float64) for name, values in fields.items()}
