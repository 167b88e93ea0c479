"""The largest stable time step: closed bounds of the simulator and, where these are not sharp, the tangent of a step.

Let z be the eigenvalues of the tangent J of one step with respect to the state. A motion that a step resolves has z
near 1, and grows by a real z > 1 like a pendulum that falls over. A mode that is too fast for the step overshoots
instead and changes its sign at every step: it passes z = -1. Hence a step is stable while

    f(dt) = max Re (1 - z) / 2 <= 1

Let s be the ratio of dt to the limit. For an oscillator that a symplectic step takes, z^2 - (2 - 4 s^2) z + 1 = 0, thus
f = s^2 up to the limit and s = f / (2 f - 1)^(1/2) beyond it. For decay by explicit steps f = s. So each f tells
about where the limit is, and a few trials find it; where damping bends f, bisection helps. Eigenvalues 0, of pinned
nodes or of velocities that joints do not allow, give f = 1/2, which only says that the limit is not near.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from ..autograd import Tensor, enable_grad, tensor
from ..autograd.compose.functional import linearize
from ..autograd.errors import InputError, MissingJvp
from ..simulator import Array, Arrays, Model
from ..simulator.step_limit import StepLimit

DENSE = 64
"""Largest number of values of a state for which all columns of J take no longer than an iteration."""
FINE, COARSE = 1e-4, 5e-3
"""Relative error of the largest time step, for few values and for more; the one returned is stable."""
TRIALS = 60
"""Most time steps to try; five to fifteen suffice."""
HUGE = 1e100
"""Largest f that counts, where numbers overflow."""
OTHERS = 0.1
"""Share of other modes in the vector that a search begins with: another one may be the fastest at another time step."""
FAR = 100.0
"""A limit so many times shorter than the time step is not sought: a bound serves as well, or the state has blown up."""


def require_stable_step(model: Model, params: Any, state: Any) -> None:
    """Raise InputError, naming the largest stable time step from this start, if the model's time step exceeds it.

    The tangent of a step is computed only where the simulator's own bound neither accepts nor refuses the time step.
    """
    found, limit = _find_least(model, params.arrays(), state.arrays(), None, trust=True)
    if found < model.dt:
        sought = not limit.systems or model.dt <= FAR * found
        what = "the largest stable time step of this scene is" if sought else "a stable time step of this scene is"
        constraint = f"{what} {found:.4g}{limit.by}"
        remedy = f"Set time.dt to {0.9 * found:.2g} or less{limit.instead}."
        raise InputError("time.dt", constraint, f"{model.dt:g}", remedy)


def advise_step(model: Model, params: Arrays, states: dict[str, Arrays], control: Array | None) -> str:
    """Name the largest stable time step in the first of these states that the model's exceeds; '' if there is none.

    states: the start and other states, by what they are called. The bounds of the simulator have not prevented that
    a motion from the start blew up: where they are not sharp, the tangent of a step decides.
    """
    for name, values in states.items():
        found, limit = _find_least(model, params, values, control, trust=False)
        if 0 < found < model.dt:
            return f"Lower time.dt below {found:.3g}, the largest stable step {name}{limit.by}{limit.instead}."
    return ""


def _find_least(
    model: Model, params: Arrays, state: Arrays, control: Array | None, *, trust: bool
) -> tuple[float, StepLimit]:
    """Find the least of the model's limits, inf if it does not exceed any; `trust` takes bounds for sufficient."""
    least = np.inf, StepLimit(np.inf)
    for limit in model.step_limits(params, state):
        found, dt = limit.dt, min(model.dt, least[0])
        if dt <= limit.dt * (1 + 1e-6) and (trust or not limit.systems):
            continue  # the limit itself is stable; the margin allows for rounded input
        if limit.systems and dt > 0:
            known = limit.dt if trust else 0.0
            found = min([
                find_largest_dt(replace(own, dt=dt), values, start, control, least=known, most=FAR)
                for own, values, start in limit.systems
            ])  # fmt: skip
            found = max(found, known)  # which serves as well where the time step is far beyond both
        least = min(least, (found, limit), key=lambda each: each[0])
    return least


def find_largest_dt(
    model: Model,
    params: Arrays,
    state: Arrays,
    control: Array | None = None,
    *,
    least: float = 0.0,
    most: float = np.inf,
) -> float:
    """Find the largest stable time step [s] in this state, if it is below that of the model; inf if it is not.

    least: a time step that is known to be stable. most: the largest s of interest. inf if a sub-step has no tangent; 0
    if a value is not finite, or s is larger.
    """
    if not all(np.isfinite(values).all() for values in (*params.values(), *state.values())):
        return 0.0
    record = model.Params(**{name: tensor(np.array(values)) for name, values in params.items()})
    start = model.State(**{name: tensor(np.array(values)) for name, values in state.items()})
    force = None if control is None else tensor(np.array(control))

    modes: list[Array] = []
    precise = COARSE if sum([values.size for values in state.values()]) > DENSE else FINE

    def measure(dt: float) -> float:
        f = min(compute_overshoot(replace(model, dt=dt), record, start, force, modes), HUGE)  # type: ignore[type-var]
        return np.sqrt(max(f, 0.0)) if f <= 1 else f / np.sqrt(2 * f - 1)

    try:
        lower, upper = least, model.dt
        at, ratio = upper, measure(upper)
        if not 1 < ratio <= most:
            return np.inf if ratio <= 1 else 0.0
        for trial in range(TRIALS):
            if upper - lower <= max(precise * upper, 1e-300):  # half of less may be flushed to 0
                break
            guess = at / max(ratio, 0.1) * (1 + np.copysign(precise / 3, 1 - ratio))
            at = guess if trial % 3 < 2 and lower < guess < upper else (lower + upper) / 2
            ratio = measure(at)
            lower, upper = (at, upper) if ratio <= 1 else (lower, at)
    except MissingJvp:
        return np.inf
    return lower


def compute_overshoot(
    model: Model, params: Any, state: Any, control: Tensor | None = None, modes: list[Array] | None = None
) -> float:
    """Compute f = max Re (1 - z) / 2 of the eigenvalues z of a step's tangent: above 1 where it overshoots.

    modes: the mode that the search begins near, if any, replaced by that of this eigenvalue if the state is large.
    Rounding does not count: values up to 1 + 1e-6, 1 + 1e-3 in f32, are returned as 1. inf if J is not finite.
    Errors: MissingJvp.
    """
    times, sizes = _difference(model, params, state, control)
    size = sum(sizes)
    with np.errstate(all="ignore"):
        if size <= DENSE:
            columns = np.array([times(unit) for unit in np.eye(size)]).reshape(size, size)
            found = np.linalg.eigvals(columns).real.max(initial=0.0) if np.isfinite(columns).all() else np.inf
        else:
            found = _iterate(*_balance(times, sizes), [] if modes is None else modes)
    rounding = 1e-6 if state.tensors()[0].dtype == np.float64 else 1e-3
    return 1.0 if 1 < found <= 1 + rounding else float(found)


def _difference(
    model: Model, params: Any, state: Any, control: Tensor | None
) -> tuple[Callable[[Array], Array], list[int]]:
    """Return the product with (I - J) / 2, and the number of values of each field of the state that has any."""
    names = [name for name, values in state.arrays().items() if values.size]
    before = state.replace(**{name: tensor(getattr(state, name).data, requires_grad=True) for name in names})
    with enable_grad():
        after = model.step(params, before, control)
    inputs = [getattr(before, name) for name in names]
    push = linearize([getattr(after, name) for name in names], inputs)
    sizes = [x.size for x in inputs]

    def times(vector: Array) -> Array:
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        tangents = push(*[part.astype(x.dtype).reshape(x.shape) for part, x in zip(parts, inputs, strict=True)])
        return np.asarray((vector - np.concatenate([dx.ravel() for dx in tangents])) / 2, np.float64)

    return times, sizes


def _balance(times: Callable[[Array], Array], sizes: list[int]) -> tuple[Callable[[Array], Array], Array]:
    """Scale fields of different units, for which Arnoldi's residuals say little about eigenvalues.

    Returns the product with the scaled matrix, and the scale of each value.
    """
    from scipy.linalg import matrix_balance

    random, ends = np.random.default_rng(0), np.cumsum(sizes)
    norms = np.zeros((len(sizes), len(sizes)))
    for column, (size, end) in enumerate(zip(sizes, ends, strict=True)):
        probe = np.zeros(ends[-1])
        probe[end - size : end] = random.standard_normal(size) / np.sqrt(size)
        norms[:, column] = [np.linalg.norm(part) for part in np.split(times(probe), ends[:-1])]
    if not np.isfinite(norms).all():
        return times, np.ones(ends[-1])
    _, (scale, _) = matrix_balance(norms, permute=False, separate=True)
    scale = np.repeat(scale, sizes)
    return lambda vector: times(vector * scale) / scale, scale


def _iterate(times: Callable[[Array], Array], scale: Array, modes: list[Array]) -> float:
    """Find the largest real part of an eigenvalue by Arnoldi's method; 1, which is no overshoot, if it finds none.

    It begins near the mode that is given, if any, and replaces it by its own. Many modes of nearly one frequency
    take more vectors.
    """
    from scipy.sparse import linalg

    size = len(scale)
    first = times(np.random.default_rng(1).standard_normal(size))
    if not np.isfinite(first).all() or not first.any():
        return np.inf if first.any() else 0.0
    if modes:
        last = modes[0] / scale
        first = last / np.linalg.norm(last) + OTHERS * first / np.linalg.norm(first)
    operator = linalg.LinearOperator((size, size), matvec=times, dtype=np.float64)
    for vectors in (20, 60):
        with suppress(linalg.ArpackError):
            (value, *_), mode = linalg.eigs(operator, 1, which="LR", v0=first, ncv=vectors, tol=COARSE, maxiter=10)
            modes[:] = [mode[:, 0].real * scale]
            return float(value.real)
    return 1.0
