"""The largest stable time step of a mass-spring system, linearised at its start positions.

Symbols, all scaled by the masses (M^-1/2 .. M^-1/2) and for free nodes only:

    K  stiffness [1/s^2]: a spring adds k (n n^T + (1 - L/l) (I - n n^T)), n its direction; k I where L = 0.
       Every node is taken to touch the ground, since it may do so later.
    C  dashpots along n [1/s], and the ground's friction at the start positions
    S  decay exp(-drag h) of the velocity in a kick of duration h

A kick is v' = (S - h C) v - h K x. For velocity Verlet, drag is left out: S = I. A decay between two half impulses, or
around them, only lowers the quadratic form v.v + x.K (I - dt^2 K / 4) x, which the undamped step conserves. So drag
never makes a step unstable. (With dashpots as well, the resulting limit is conservative.)

An eigenvector x of the linear step with eigenvalue z satisfies z^2 - (1 + p - w) z + p = 0. Here p and w are real, as
they are quotients of symmetric forms in x; so C need not share its eigenvectors with K:

    semi-implicit Euler     kick dt, drift dt            p = <S - dt C>    w = dt^2 <K>
    velocity Verlet         kick dt/2, drift dt, kick    with Q = S - dt/2 C, in the norm of 2 (I + Q)^-1 (the step is
                            similar to drift and a double kick, which decays by Q^2): p = <Q^2>, w = dt^2 <K>

Jury's conditions |p| < 1 and 2 + 2 p - w > 0 then require a positive definite N(dt):

    semi-implicit Euler     N = 2 (I + S) - 2 dt C - dt^2 K
    velocity Verlet         N = 4 (I + Q^2) (I + Q) - dt^2 (I + Q) K (I + Q)

Without damping both reduce to dt < 2 / sqrt(largest eigenvalue of K). Damping shortens this limit. Dashpots that are
strong enough to reverse the velocity would lengthen it for velocity Verlet; then the undamped limit is used.
Sources: E. I. Jury, Theory and Application of the z-Transform Method (1964); the forms N are derived here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.numerics.finite import finite
from simphys.simulator import Arrays
from simphys.simulators.mass_spring.model import MassSpring, Params, State, check_params

_DENSE = 300  # degrees of freedom up to which a dense eigenvalue solver is faster
_TOLERANCE = 1e-3  # relative, of dt, for the larger systems
# Minimum of 4 (1 + q^2) / (1 + q) for q in [-1, 1].
_VERLET_MARGIN = 8 * (np.sqrt(2.0) - 1)


def require_stable(model: MassSpring, params: Params, state: State) -> None:
    """Raise InputError if the dt of a model exceeds its limit, and UnphysicalValue if a mass is not positive."""
    check_params({"mass": params.mass.data})
    _require_stable(
        model.dt,
        ends=model.ends,
        pinned=model.pinned,
        position=np.asarray(state.position.data, np.float64),
        params={name: np.asarray(values, np.float64) for name, values in params.arrays().items()},
        integrator=model.integrator,
    )


def _require_stable(dt: float, *, integrator: str, **system: Any) -> None:
    if _is_surely_stable(dt, integrator=integrator, **system):
        return
    largest = largest_stable_dt(integrator=integrator, **system)
    if dt >= largest:
        constraint = f"the largest stable time step of this scene is {largest:.4g} s ({integrator})"
        remedy = f"Set time.dt to {0.9 * largest:.2g} or less, or lower the largest stiffness or damping."
        raise InputError("time.dt", constraint, f"{dt:g} s", remedy)


def largest_stable_dt(
    *,
    ends: np.ndarray,
    pinned: np.ndarray,
    position: np.ndarray,
    params: Mapping[str, np.ndarray],
    integrator: str,
) -> float:
    """Compute the time step [s] below which motion near the start positions stays bounded; inf if nothing limits it.

    Args:
        ends: node indices of springs [S, 2].
        pinned: nodes that never move [n].
        position: start positions [n, dim] [m].
        params: parameter fields by name, see the model.
        integrator: semi_implicit_euler or velocity_verlet.

    Exact to rounding for small systems, and to 1e-3 (conservatively) for large ones. 0 if a value is not finite.
    """
    if not all(np.isfinite(values).all() for values in (position, *params.values())):
        return 0.0
    system = _linearise(ends, pinned, position, params)
    if not len(system.drag):
        return np.inf
    largest_stiffness, stiffest = _largest_of_sparse(system.stiffness)
    largest_damping, _ = _largest_of_sparse(system.damping)
    limits = [2 / np.sqrt(largest_stiffness)] if largest_stiffness > 0 else []
    if largest_damping > 0:
        limits.append((2 if integrator == "semi_implicit_euler" else 4) / largest_damping)
    if not limits:
        return np.inf
    upper = min(limits)
    if largest_damping > 0 or system.drag.any():
        upper = _first_unstable(system, upper, integrator, stiffest)
    return float(upper * (1 - _TOLERANCE) if len(system.drag) > _DENSE else upper)


@dataclass(frozen=True)
class _System:
    stiffness: Any  # sparse [d, d] of the d free degrees of freedom
    damping: Any
    drag: np.ndarray  # [d]


def _linearise(ends: np.ndarray, pinned: np.ndarray, position: np.ndarray, params: Mapping[str, np.ndarray]) -> _System:
    from scipy import sparse

    nodes, dim = position.shape
    springs = len(ends)
    direction, slackness = _directions(ends, position, params["rest_length"])
    longitudinal = direction[:, :, None] * direction[:, None, :]
    transverse = slackness[:, None, None] * (np.eye(dim) - longitudinal)
    # A spring force depends on the difference of its ends: K = G^T diag(blocks) G.
    rows = np.arange(springs)
    difference = sparse.coo_array((np.full(springs, 1.0), (rows, ends[:, 1])), shape=(springs, nodes))
    difference -= sparse.coo_array((np.full(springs, 1.0), (rows, ends[:, 0])), shape=(springs, nodes))
    gather = sparse.kron(difference, np.eye(dim), format="csr")

    def assemble(blocks: np.ndarray, diagonal: np.ndarray) -> Any:
        middle = sparse.bsr_array((blocks, rows, np.arange(springs + 1)), shape=(springs * dim, springs * dim))
        scale = sparse.diags_array(np.repeat(1 / np.sqrt(params["mass"]), dim))
        full = scale @ (gather.T @ middle @ gather + sparse.diags_array(diagonal)) @ scale
        return full.tocsr()[free][:, free]

    free = np.flatnonzero(np.repeat(~pinned, dim))
    normal, friction = _ground(position, params)
    return _System(
        stiffness=assemble(params["stiffness"][:, None, None] * (longitudinal + transverse), normal.reshape(-1)),
        damping=assemble(params["damping"][:, None, None] * longitudinal, friction.reshape(-1)),
        drag=np.repeat(params["drag"], dim)[free],
    )


def _directions(ends: np.ndarray, position: np.ndarray, rest_length: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors [S, dim] along springs, 0 for a spring of length 0, and 1 - L/l [S], 1 where L or l is 0."""
    d = position[ends[:, 1]] - position[ends[:, 0]]
    length = np.linalg.norm(d, axis=1)
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return d * inverse[:, None], 1 - rest_length * inverse


def _ground(position: np.ndarray, params: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Stiffness along the last axis and friction along the others, [n, dim] each, not yet divided by the masses."""
    stiffness = float(params["ground_stiffness"])
    depth = np.maximum(0.0, float(params["ground_height"]) - position[:, -1])
    normal, friction = np.zeros_like(position), np.zeros_like(position)
    normal[:, -1] = stiffness
    friction[:, :-1] = (float(params["ground_friction"]) * stiffness * depth)[:, None]
    return normal, friction


def _first_unstable(system: _System, upper: float, integrator: str, near: np.ndarray | None) -> float:
    """Find the dt at which N(dt) ceases to be positive definite, at most `upper`; `near` is the stiffest direction.

    The eigenvector x of the smallest eigenvalue gives an upper bound, at which x.N(dt)x = 0. The eigenvector at this dt
    gives a better one. Like Newton's method, this converges in a few iterations.
    """

    def bound(dt: float) -> float:
        nonlocal near
        # 16 exceeds the largest eigenvalue of N: with this shift, a relative tolerance is not too strict near 0.
        _, x = _largest_eigenpair(lambda y: 16 * y - _multiply_n(system, dt, integrator, y), len(system.drag), near)
        near = x
        return _bisect(lambda smaller: x @ _multiply_n(system, smaller, integrator, x) > 0, dt)

    while True:
        lower = bound(upper)
        if upper - lower <= (1e-9 if len(system.drag) <= _DENSE else _TOLERANCE / 4) * upper:
            return lower
        upper = lower


def _multiply_n(system: _System, dt: float, integrator: str, x: np.ndarray) -> np.ndarray:
    """Multiply N(dt) by a vector, or by the columns of a matrix."""
    euler = integrator == "semi_implicit_euler"
    kick, drag = (dt, system.drag) if euler else (dt / 2, np.zeros_like(system.drag))
    decay = np.exp(-kick * drag).reshape(-1, *[1] * (x.ndim - 1))

    def kick_velocity(y: np.ndarray) -> np.ndarray:
        return decay * y - kick * (system.damping @ y)

    y = x + kick_velocity(x)
    if euler:
        return 2 * y - dt**2 * (system.stiffness @ x)
    force = system.stiffness @ y
    return 4 * (y + kick_velocity(kick_velocity(y))) - dt**2 * (force + kick_velocity(force))


def _largest_eigenpair(
    times: Callable[[np.ndarray], np.ndarray], size: int, near: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Largest eigenvalue and its eigenvector, for a symmetric matrix given as a function that multiplies by it.

    `near` is the eigenvector of a similar matrix, from which few iterations are needed.
    """
    if size <= _DENSE:
        values, vectors = np.linalg.eigh(finite(times(np.eye(size))))
        return float(values[-1]), vectors[:, -1]
    from scipy.sparse import linalg

    operator = linalg.LinearOperator((size, size), matvec=times, dtype=float)
    start = np.random.default_rng(0).standard_normal(size)
    if near is not None:
        start = near + 0.01 * start / np.linalg.norm(start)  # near itself could be an eigenvector of a smaller one
    values, vectors = linalg.eigsh(operator, k=1, which="LA", tol=_TOLERANCE, v0=start)
    return float(values[0]), vectors[:, 0]


def _largest_of_sparse(matrix: Any) -> tuple[float, np.ndarray | None]:
    """Largest eigenvalue of a sparse matrix, or 0 if it is negative, since it then limits nothing; its eigenvector."""
    if not matrix.count_nonzero():
        return 0.0, None
    value, vector = _largest_eigenpair(lambda x: matrix @ x, matrix.shape[0])
    return max(value, 0.0), vector


def _bisect(condition: Callable[[float], bool], upper: float) -> float:
    """Largest number up to `upper`, to 1e-10, at which a condition holds that holds at all smaller ones."""
    if condition(upper):
        return upper
    lower, limit = 0.0, upper
    while limit - lower > 1e-10 * upper:
        middle = 0.5 * (lower + limit)
        lower, limit = (middle, limit) if condition(middle) else (lower, middle)
    return lower


def _is_surely_stable(
    dt: float,
    *,
    ends: np.ndarray,
    pinned: np.ndarray,
    position: np.ndarray,
    params: Mapping[str, np.ndarray],
    integrator: str,
) -> bool:
    """True if Gershgorin's bounds on K and C, which cost next to nothing, already prove that dt is stable."""
    _, slackness = _directions(ends, position, params["rest_length"])
    normal, friction = _ground(position, params)
    nodes = len(position)

    def bound(springs: np.ndarray, diagonal: np.ndarray) -> float:
        both = np.bincount(ends.reshape(-1), weights=np.repeat(2 * springs, 2), minlength=nodes)
        rate = (both + diagonal.max(axis=1)) / params["mass"]
        return float(rate[~pinned].max(initial=0.0))

    # Compressed springs (slackness below 0) push to the side, which makes no eigenvalue larger.
    stiffness = bound(params["stiffness"] * np.maximum(1.0, slackness), normal)
    damping = bound(params["damping"], friction)
    if integrator == "velocity_verlet":
        return dt**2 * stiffness < _VERLET_MARGIN and dt * damping / 2 < 1
    decay = np.exp(-dt * params["drag"][~pinned].max(initial=0.0))
    return bool(2 + 2 * decay - 2 * dt * damping - dt**2 * stiffness > 0)


def advice(model: MassSpring, params: Arrays, state: Arrays) -> str:
    """Name a time step that is stable at the last finite state of a diverging motion."""
    # A large motion may be stiffer than the initial state, for which the scene's dt was checked.
    stable = largest_stable_dt(
        ends=model.ends,
        pinned=model.pinned,
        position=np.asarray(state["position"], np.float64),
        params={name: np.asarray(value, np.float64) for name, value in params.items()},
        integrator=model.integrator,
    )
    limit = f"below {stable:.3g} s, the stable limit in the state it had reached" if stable < model.dt else "further"
    return f"Lower time.dt {limit}, or begin with less motion."
