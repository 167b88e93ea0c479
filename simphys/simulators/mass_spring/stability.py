"""A bound of the time step of a mass-spring system in closed form, beyond which the tangent of a step decides.

The step is explicit in the stiffness K and the damping C of the free nodes, divided by the masses. Their largest
eigenvalues are at most the largest row sum of the norms of their blocks, here of a node and its neighbours: a spring
adds k (n n^T + (1 - L/l) (I - n n^T)) to K and c n n^T to C of either end, n its direction, and the opposite between
them (Gershgorin). Compressed springs, L > l, push to the side, which makes no eigenvalue larger. With positive weights
of the nodes, the norms weighted, it holds as well (Collatz and Wielandt), and a few products find good weights.
Velocity Verlet kicks twice a step. Where dashpots reverse the velocity in either kick, both together change no sign:
the tangent of a step shows no overshoot, and the bound itself, dt C <= 4, decides.
Every node is taken to touch the ground, as it may do so later; its friction is that at the start.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simphys.simulator import Array, Arrays, StepLimit
from simphys.simulator.step_limit import bound_step

from .model import MassSpring

VERLET = 8 * (np.sqrt(2.0) - 1)
"""Largest dt^2 K that velocity Verlet allows whatever the damping is, for dt C <= 2; drag needs no shorter steps."""
PRODUCTS = 30
"""Products for good weights; the bound of the stiffness then is within a third of the largest eigenvalue."""


def step_limits(model: MassSpring, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Bound the time step by the stiffness and the damping of all springs and of the ground."""
    params = {name: np.asarray(value, np.float64) for name, value in params.items()}
    position = np.asarray(state["position"], np.float64)
    other = "lower the largest stiffness or damping"
    for close in (False, True):
        stiffness, damping = _bound_rates(model, params, position, close)
        if model.integrator == "velocity_verlet":
            dt = min(np.sqrt(VERLET / stiffness) if stiffness else np.inf, 2 / damping if damping else np.inf)
        else:  # exp(-drag dt) >= 1 - drag dt
            dt = bound_step(stiffness, damping + params["drag"][~model.pinned].max(initial=0.0))
        if dt >= model.dt:
            break
    dashpots = 4 / damping if model.integrator == "velocity_verlet" and damping else np.inf
    begun = replace(model, dt=min(model.dt, dashpots))
    systems = [(begun, params)]
    if params["ground_stiffness"] > 0:
        above = position[:, -1].max() + 1.0
        touched = {**params, "ground_height": np.array(above), "ground_friction": np.array(0.0)}
        rubs = params["ground_friction"] > 0 and (position[:, -1] < params["ground_height"]).any()
        systems = [*systems[: int(rubs)], (begun, touched)]
    together = StepLimit(float(dt), f"springs and ground ({model.integrator})", other, tuple(systems))
    return StepLimit(float(dashpots), "dashpots", other), together


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
    rubbing[:, :-1] = params["ground_friction"] * params["ground_stiffness"] * depth
    if not close:
        stiff = _largest(model, params["mass"], params["stiffness"] * np.maximum(1.0, across), touching)
        return stiff, _largest(model, params["mass"], params["damping"], rubbing)
    along = np.einsum("si,sj->sij", d, d) * (inverse**2)[:, None, None]
    both = along + across[:, None, None] * (np.eye(model.dim) - along)
    stiff = _largest(model, params["mass"], params["stiffness"], touching, both)
    return stiff, _largest(model, params["mass"], params["damping"], rubbing, along)


def _largest(model: MassSpring, mass: Array, rate: Array, own: Array, blocks: Array | None = None) -> float:
    """Bound the largest eigenvalue of springs, whose blocks have norms of at most `rate`, and the nodes' diagonals."""
    free, (a, b) = ~model.pinned, model.ends.T
    if not free.any() or not (rate.any() or own.any()):
        return 0.0
    if blocks is None:
        between, norm = rate, own.max(axis=1) + np.bincount(model.ends.ravel(), np.repeat(rate, 2), len(mass))
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
        weight = row + 1e-3 * row.max()
        weight[~free] = 0.0
    return best
