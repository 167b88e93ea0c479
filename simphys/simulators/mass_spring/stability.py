"""A bound of the time step of a mass-spring system in closed form, beyond which the tangent of a step decides.

The step is explicit in the stiffness K and the damping C of the free nodes, divided by the masses. Their largest
eigenvalues are at most the largest row sum of the norms of their blocks, here of a node and its neighbours: a spring
adds k (n n^T + (1 - L/l) (I - n n^T)) to K and c n n^T to C of either end, n its direction, and the opposite between
them (Gershgorin). Compressed springs, L > l, push to the side, which makes no eigenvalue larger. With positive weights
of the nodes, the norms weighted, it holds as well (Collatz and Wielandt), and a few products find good weights.

Velocity Verlet predicts a velocity (integrate.py). Let K be h^2 times the stiffness, C h times the damping, and w the
velocity after drag. A step without drag multiplies x and w by z if

    (K + 2 (z - 1)) x = (2 - C) w      2 (z - 1) (2 (1 - z) - 2 C + C^2) x = (4 z - (1 + z) C) K x

- z = 1 takes C w = 2 w, and z = -1 takes K x = (3 + (1 - C)^2) x.
- Other z = e^(i t), with c = cos t/2 and s = sin t/2, do not occur for C < 2. They take K x = g(C) x, where for each
  eigenvalue of C, and q = C (2 - C), Im g has the sign of -s c ((4 - q) s^2 C / 2 + q (1 - c^2 C / 2)): it is negative,
  or 0 for C = 0. But x* K x is real.

So a step is stable if C < 2 and K < 3, or if K + 2 C < 4, for the largest eigenvalues. For one oscillator the limits
are C = 2 and K = 3 + (1 - C)^2. With drag, D = exp(drag h), z = 1 takes C w = (1 + D) w, and z = -1 takes an x* K x of
at least 3 |x|^2 and (4 - 2 C) |x|^2, so these bounds hold; random matrices show no other z beyond the unit circle.

At C = 2 the velocity grows without a change of sign, which is no overshoot. There the tangent of semi-implicit Euler
with dashpots alone decides: its v' = (1 - C) v has the same limit. Drag would allow somewhat more.

Every node is taken to touch the ground, as it may do so later. Its friction limits semi-implicit Euler alone, and is
that at the start; in velocity Verlet it acts like drag.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simphys.simulator import Array, Arrays, StepLimit
from simphys.simulator.step_limit import bound_step

from .model import MassSpring

PRODUCTS = 30
"""Products for good weights; the bound of the stiffness then is within a third of the largest eigenvalue."""


def step_limits(model: MassSpring, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Bound the time step by the stiffness and the damping of all springs and of the ground."""
    params = {name: np.asarray(value, np.float64) for name, value in params.items()}
    position = np.asarray(state["position"], np.float64)
    other = "lower the largest stiffness or damping"
    verlet = model.integrator == "velocity_verlet"
    for close in (False, True):
        stiffness, damping = _bound_rates(model, params, position, close)
        if verlet:
            dashpots = 2 / damping if damping else np.inf
            dt = max(bound_step(stiffness, damping), min(np.sqrt(3 / stiffness) if stiffness else np.inf, dashpots))
        else:  # exp(-drag dt) >= 1 - drag dt
            dt = bound_step(stiffness, damping + params["drag"][~model.pinned].max(initial=0.0))
        if dt >= model.dt:
            break
    systems = [(model, params, state)]
    if params["ground_stiffness"] > 0:
        above = position[:, -1].max() + 1.0
        touched = {**params, "ground_height": np.array(above), "ground_friction": np.array(0.0)}
        rubs = not verlet and params["ground_friction"] > 0 and (position[:, -1] < params["ground_height"]).any()
        systems = [*systems[: int(rubs)], (model, touched, state)]
    together = StepLimit(float(dt), f"springs and ground ({model.integrator})", other, tuple(systems))
    if not verlet or not damping:
        return (together,)
    alone = {name: 0 * params[name] for name in ("stiffness", "drag", "ground_stiffness")}
    twin = replace(model, integrator="semi_implicit_euler"), {**params, **alone}, state
    return StepLimit(dashpots, "dashpots", other, (twin,)), together


def _bound_rates(model: MassSpring, params: Arrays, position: Array, close: bool) -> tuple[float, float]:
    """Bound the largest eigenvalues of K [1/s^2] and C [1/s], with the norms of springs by themselves or closely."""
    a, b = model.ends.T
    d = position[b] - position[a]
    length = np.linalg.norm(d, axis=1)
    inverse = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    across = np.maximum(0.0, 1 - params["rest_length"] * inverse)
    touching, rubbing = np.zeros_like(position), np.zeros_like(position)
    touching[:, -1] = params["ground_stiffness"]
    depth = np.maximum(0.0, params["ground_height"] - position[:, -1:])
    if model.integrator != "velocity_verlet":
        rubbing[:, :-1] = params["ground_friction"] * params["ground_stiffness"] * depth
    if not close:
        stiff = _largest(model, params["mass"], params["stiffness"] * np.maximum(1.0, across), touching)
        return stiff, _largest(model, params["mass"], params["damping"], rubbing)
    along = np.einsum("si,sj->sij", d, d) * (inverse**2)[:, None, None]
    both = along + across[:, None, None] * (np.eye(model.dim) - along)
    stiff = _largest(model, params["mass"], params["stiffness"], touching, both)
    return stiff, _largest(model, params["mass"], params["damping"], rubbing, along)


def _largest(model: MassSpring, mass: Array, rate: Array, own: Array, blocks: Array | None = None) -> float:
    """Bound the largest eigenvalue of springs, whose blocks have norms of at most |rate|, and the nodes' diagonals."""
    free, (a, b) = ~model.pinned, model.ends.T
    if not free.any() or not (rate.any() or own.any()):
        return 0.0
    if blocks is None:
        between = np.abs(rate)  # a search may try a rate below 0
        norm = np.abs(own).max(axis=1) + np.bincount(model.ends.ravel(), np.repeat(between, 2), len(mass))
    else:
        blocks = rate[:, None, None] * blocks
        diagonal = own[:, :, None] * np.eye(model.dim)
        np.add.at(diagonal, a, blocks)
        np.add.at(diagonal, b, blocks)
        norm, between = (np.abs(np.linalg.eigvalsh(each)).max(axis=1, initial=0.0) for each in (diagonal, blocks))
    weight, best = np.where(free, 1.0, 0.0), np.inf
    for _ in range(1 if blocks is None else PRODUCTS):
        row = norm * weight
        row += np.bincount(a, between * weight[b], len(mass)) + np.bincount(b, between * weight[a], len(mass))
        row = np.where(free, row / mass, 0.0)
        best = min(best, float((row[free] / weight[free]).max()))
        if best == 0:
            break
        weight = np.where(free, row / row.max() + 1e-3, 0.0)  # the scale does not matter, but it could overflow
    return best
