"""What surrounds the grid in a step, as one array of numbers: see grid.py.

Its entries, in order: gravity [dim], wall friction, and of all colliders positions, rotations, velocities, spins and
friction.
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
"""Of Params and State, in order."""


def size(model: MPM) -> int:
    """Numbers of a step."""
    return model.dim + 1 + len(model.colliders) * (2 * model.dim + model.rotations + model.spins + 1)


def parts(model: MPM) -> dict[str, slice]:
    """Where each field lies."""
    shapes = {**model.param_shapes(), **model.state_shapes()}
    ends = np.cumsum([0, *[int(np.prod(shapes[name], dtype=int)) for name in FIELDS]]).tolist()
    return {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(FIELDS)}


def control_parts(model: MPM) -> dict[str, slice]:
    """Where in the control of a step the signals of actuators lie, and what adds to velocities and spins."""
    A, K = model.actuators, len(model.colliders)
    moved = A + K * model.dim
    return {
        "actuators": slice(0, A),
        "collider_velocity": slice(A, moved),
        "collider_spin": slice(moved, moved + K * model.spins),
    }


def environment(model: MPM, params: Params, state: State, control: Tensor | None) -> Tensor:
    """The numbers of a step, [P]."""
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
    """Velocity [K, dim] and spin [K, 1 or 3] of the colliders in a step."""
    if control is None or not model.colliders:
        return params.collider_velocity, params.collider_spin
    where = control_parts(model)
    velocity = params.collider_velocity + ops.reshape(
        control[where["collider_velocity"]], params.collider_velocity.shape
    )
    spin = params.collider_spin + ops.reshape(control[where["collider_spin"]], params.collider_spin.shape)
    return velocity, spin
