"""Motions that blow up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .autograd.errors import InputError

if TYPE_CHECKING:
    from .scene import Scene

HUGE = np.float64(1e100)
"""Beyond it a motion has blown up, though its numbers are finite still: squares overflow. f64, to compare f32 with."""


def require_sound(scene: Scene, trajectory: Any, *, who: str, remedy: str) -> None:
    """Raise InputError where the motion leaves the finite numbers; `remedy` follows the advice about the time step."""
    final = vars(trajectory.final)
    if all((np.abs(value.data) < HUGE).all() for value in final.values()):  # what has blown up stays so
        return
    values = [getattr(trajectory, name).data for name in final]
    sound = [(np.abs(value) < HUGE).reshape(len(value), -1).all(axis=1) for value in values]
    step = int(np.flatnonzero(~np.logical_and.reduce(sound))[0])  # not below HUGE: NaN, too
    raise InputError(
        who,
        "the motion must stay finite",
        f"a blow-up at step {step} (t = {step * scene.dt:g} s), with dt = {scene.dt:g} s",
        f"Lower time.dt, or begin with less motion. {remedy}".strip(),
    )
