"""The environment of the grid in one step, as one array `env` [P] of numbers; see grid.py.

Its entries, in order: gravity [dim], wall friction, then positions, rotations, velocities, spins and frictions of all
colliders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from simphys.autograd import Tensor, ops

if TYPE_CHECKING:
    from .model import MPM, Params, State

FIELDS = (
    "gravity",
    "wall_friction",
    "collider_position",
    "collider_rotation",
    "collider_velocity",
    "collider_spin",
    "collider_friction",
)
"""Fields of Params and State that make up `env`, in order."""


def size(model: MPM) -> int:
    """Compute P, the length of `env`."""
    return model.dim + 1 + len(model.colliders) * (2 * model.dim + model.rotations + model.spins + 1)


def parts(model: MPM) -> dict[str, slice]:
    """Return the slice of each field in `env`."""
    shapes = {**model.param_shapes(), **model.state_shapes()}
    ends = np.cumsum([0, *[int(np.prod(shapes[name], dtype=int)) for name in FIELDS]]).tolist()
    return {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(FIELDS)}


def control_parts(model: MPM) -> dict[str, slice]:
    """Return the slices of a step's control: signals of actuators, and additions to colliders' velocities and spins."""
    A, K = model.actuators, len(model.colliders)
    moved = A + K * model.dim
    return {
        "actuators": slice(0, A),
        "collider_velocity": slice(A, moved),
        "collider_spin": slice(moved, moved + K * model.spins),
    }


def environment(model: MPM, params: Params, state: State, control: Tensor | None) -> Tensor:
    """Concatenate the environment of a step, [P]."""
    velocity, spin = steered(model, params, control)
    fields = (
        params.gravity,
        params.wall_friction,
        state.collider_position,
        state.collider_rotation,
        velocity,
        spin,
        params.collider_friction,
    )
    return ops.concatenate([ops.reshape(field, (-1,)) for field in fields if field.size])


def steered(model: MPM, params: Params, control: Tensor | None) -> tuple[Tensor, Tensor]:
    """Compute velocity [K, dim] and spin [K, 1 or 3] of the colliders in a step, with the control's additions."""
    if control is None or not model.colliders:
        return params.collider_velocity, params.collider_spin
    where = control_parts(model)
    velocity = params.collider_velocity + ops.reshape(
        control[where["collider_velocity"]], params.collider_velocity.shape
    )
    spin = params.collider_spin + ops.reshape(control[where["collider_spin"]], params.collider_spin.shape)
    return velocity, spin
