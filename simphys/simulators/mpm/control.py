"""The control of a step: signals of actuators, then additions to the colliders' velocities, then to their spins."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from simphys.substep import part

if TYPE_CHECKING:
    from .model import MPM, Params


def control_slices(model: MPM) -> dict[str, slice]:
    """Return the slices of a step's control."""
    A, K = model.actuators, len(model.colliders)
    spins_at = A + K * model.dim
    return {
        "actuators": slice(0, A),
        "collider_velocity": slice(A, spins_at),
        "collider_spin": slice(spins_at, spins_at + K * model.spins),
    }


def controlled_motion(model: MPM, params: Params, control: Any) -> tuple[Any, Any]:
    """Compute velocity [K, dim] and spin [K, 1 or 3] of the colliders in a step, with the control's additions."""
    velocity, spin = params.collider_velocity, params.collider_spin
    if control is None or not model.colliders:
        return velocity, spin
    begin, K = control_slices(model), len(model.colliders)
    return (
        velocity + _signals(begin["collider_velocity"].start, K, model.dim).apply(model, control),
        spin + _signals(begin["collider_spin"].start, K, model.spins).apply(model, control),
    )


@functools.cache
def _signals(begin: int, count: int, width: int) -> Any:
    return part("control", begin=begin, shape=(count, width), over="colliders", result="signals")
