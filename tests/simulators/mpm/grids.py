"""Small grids with colliders, shared by the tests of the mpm package."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.model import MPM

from . import substeps


def grid(cells: tuple[int, ...], *colliders: Collider, **options: Any) -> MPM:
    """Build a model with one particle, of which only the grid and the colliders matter."""
    return MPM(cells=cells, spacing=0.1, dt=0.02, particles=1, colliders=colliders, **options)


def build_env(
    model: MPM,
    *,
    gravity: Any = None,
    wall_friction: float = 0.0,
    position: Any = 0.0,
    rotation: Any = None,
    velocity: Any = 0.0,
    spin: Any = 0.0,
    friction: Any = 0.0,
) -> Tensor:
    """Build `env` of one step, by default with colliders at rest."""
    dim, K = model.dim, len(model.colliders)
    upright = np.zeros(1) if dim == 2 else np.array([1.0, 0.0, 0.0, 0.0])
    parts = (
        (np.zeros(dim) if gravity is None else gravity, (dim,)),
        (wall_friction, (1,)),
        (position, (K, dim)),
        (upright if rotation is None else rotation, (K, model.rotations)),
        (velocity, (K, dim)),
        (spin, (K, model.spins)),
        (friction, (K,)),
    )
    flatten = [np.broadcast_to(np.asarray(part, np.float64), shape).ravel() for part, shape in parts]
    return tensor(np.concatenate(flatten), requires_grad=True)


def grid_velocity(model: MPM, u: Any, env: Tensor) -> np.ndarray[Any, Any]:
    """Compute the new velocity [*cells, dim] of nodes of unit mass with velocity u."""
    mass = tensor(np.ones(model.nodes) - model.mass_floor)
    momentum = tensor(np.ascontiguousarray(np.broadcast_to(u, (*model.cells, model.dim)).reshape(-1, model.dim)))
    return substeps.grid_velocity(model, mass, momentum, env.detach()).data.reshape(*model.cells, model.dim)
