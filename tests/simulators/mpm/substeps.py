"""Chains of sub-steps, as the nested step applies them, for arrays of nodes [nodes, ...]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.autograd import Tensor, ops
from simphys.simulators.mpm.actuate import FibreStress
from simphys.simulators.mpm.collider_motion import MoveColliders
from simphys.simulators.mpm.deformation import Deform
from simphys.simulators.mpm.g2p import GridToParticle, Move
from simphys.simulators.mpm.grid import FreeVelocity, constrain
from simphys.simulators.mpm.model import MPM
from simphys.simulators.mpm.p2g import Momentum, ParticleToGrid

FIELDS = (
    "gravity",
    "wall_friction",
    "collider_position",
    "collider_rotation",
    "collider_velocity",
    "collider_spin",
    "collider_friction",
)
"""Fields of Params and State that act on the nodes, in the order of an environment."""


def as_list(model: MPM, values: Tensor) -> Tensor:
    """Number the nodes, with the last axis fastest."""
    return ops.reshape(values, (model.nodes, *values.shape[model.dim :]))


def as_grid(model: MPM, values: Tensor) -> Tensor:
    return ops.reshape(values, (*model.cells, *values.shape[1:]))


def deform(model: MPM, affine: Tensor, deformation: Tensor) -> Any:
    return Deform.apply(model, affine, deformation, model.dt)


def actuate(model: MPM, stress: Tensor, deformation: Tensor, control: Tensor) -> Any:
    return stress + FibreStress.apply(model, deformation, model.fibres, control)


def to_grid(model: MPM, x: Tensor, v: Tensor, C: Tensor, tau: Tensor, m: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """Scatter mass [nodes] and momentum [nodes, dim]."""
    share = Momentum.apply(model, v, C, tau, m, V, model.dt, model.spacing)
    mass, momentum = ParticleToGrid.apply(model, x, m, *share)
    return as_list(model, mass), as_list(model, momentum)


def to_particles(model: MPM, x: Tensor, u: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the new x, v and C from the velocities of the nodes [nodes, dim]."""
    v, M = GridToParticle.apply(model, x, as_grid(model, u))
    moved, C = Move.apply(model, x, v, M, model.dt, model.spacing, *model.ends, math.nan)
    return moved, v, C


def environment_shapes(model: MPM) -> dict[str, tuple[int, ...]]:
    shapes = {**model.param_shapes(), **model.state_shapes()}
    return {name: shapes[name] for name in FIELDS}


def grid_velocity(model: MPM, mass: Tensor, momentum: Tensor, env: Tensor) -> Tensor:
    """Compute the velocity of the nodes [nodes, dim] in an environment: all FIELDS in one array."""
    fields, begin = [], 0
    for shape in environment_shapes(model).values():
        end = begin + int(np.prod(shape, dtype=int))
        fields.append(ops.reshape(env[begin:end], shape))
        begin = end
    gravity, friction, *colliders = fields
    p = as_grid(model, momentum)
    free = FreeVelocity.apply(model, as_grid(model, mass), p, gravity, model.mass_floor, model.dt)
    return as_list(model, constrain(model, free, friction, tuple(colliders)))


def move_colliders(model: MPM, *inputs: Tensor) -> Any:
    return MoveColliders.apply(model, *inputs, model.dt)
