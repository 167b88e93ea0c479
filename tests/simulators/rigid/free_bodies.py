"""Bodies without contacts, and random inputs of their sub-steps; quaternions have any length."""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulator import Array
from simphys.simulators.rigid import Joint, RigidBodies, Spring

MOMENTS = np.array([0.5, 0.7, 1.0])


def bodies(
    dim: int,
    count: int = 3,
    *,
    dt: float = 0.3,
    fixed: tuple[int, ...] = (),
    joints: tuple[Joint, ...] = (),
    springs: tuple[Spring, ...] = (),
    full: bool = False,
) -> RigidBodies:
    """Return a model of bodies without shapes."""
    shapes: tuple[tuple[()], ...] = ((),) * count
    return RigidBodies(dim, dt, shapes, joints=joints, springs=springs, fixed=fixed, full_inertia=full)


def leaf(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> Tensor:
    """Return uniform random numbers that require a gradient."""
    return tensor(np.random.default_rng(seed).uniform(low, high, shape), requires_grad=True)


def inertia(model: RigidBodies) -> Tensor:
    """Return moments of inertia of bodies without symmetry, or full tensors."""
    moments = MOMENTS[: model.spins] * np.random.default_rng(1).uniform(1, 1.3, (model.bodies, model.spins))
    if model.full_inertia:
        products = np.random.default_rng(2).uniform(-0.1, 0.1, (model.bodies, 3))
        moments = np.concatenate([moments, products], axis=1)
    return tensor(moments, requires_grad=True)


def kick_inputs(model: RigidBodies) -> dict[str, Tensor]:
    """Return inputs in the order of Kick."""
    n, dim, spins = model.bodies, model.dim, model.spins
    return {
        "velocity": leaf(n, dim, seed=2),
        "angular_velocity": leaf(n, spins, seed=3),
        "orientation": leaf(n, model.rotations, seed=4),
        "wrench": leaf(n, dim + spins, seed=5),
        "mass": leaf(n, seed=6, low=0.5, high=2),
        "inertia": inertia(model),
        "gravity": leaf(dim, seed=7),
    }


def drift_inputs(model: RigidBodies) -> dict[str, Tensor]:
    """Return inputs in the order of Drift."""
    n, dim, spins = model.bodies, model.dim, model.spins
    return {
        "position": leaf(n, dim, seed=8),
        "orientation": leaf(n, model.rotations, seed=9),
        "twist": leaf(n, dim + spins, seed=10),
        "shift": leaf(n, dim + spins, seed=11),
        "inertia": inertia(model),
    }


def free_drift_inputs(model: RigidBodies) -> dict[str, Tensor]:
    """Return inputs in the order of FreeDrift."""
    given, n, dim = drift_inputs(model), model.bodies, model.dim
    motion = {"velocity": leaf(n, dim, seed=10), "angular_velocity": leaf(n, model.spins, seed=11)}
    return {"position": given["position"], "orientation": given["orientation"], **motion, "inertia": given["inertia"]}


def state(model: RigidBodies) -> tuple[Tensor, ...]:
    """Return the fields of a random state, in order."""
    return tuple([leaf(*shape, seed=20 + i) for i, shape in enumerate(model.state_shapes().values())])


def arms(model: RigidBodies) -> Tensor:
    """Return the arms of the model's joints."""
    return tensor(model.joint_ends.arms, requires_grad=True)


def about_origin(x: Array, wrench: Array) -> Array:
    """Return the sum of all torques about the origin, including those of the forces."""
    dim = x.shape[1]
    f, torque = wrench[:, :dim], wrench[:, dim:]
    of_forces = (x[:, :1] * f[:, 1:] - x[:, 1:] * f[:, :1]) if dim == 2 else np.cross(x, f)
    total: Array = (torque + of_forces).sum(axis=0)
    return total
