"""Time steps that are stable, and the mean distance of the fluid from a wall."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.simulator import Arrays, StepLimit
from simphys.simulator.neighbours import advise_room

COURANT = 0.4
"""Longest stable step in times of sound through a smoothing length."""
VISCOUS = 0.125
"""Longest stable step in times of viscosity through a smoothing length (Morris et al. 1997)."""


def find_wall_distance(spacing: float, smoothing: float, dim: int) -> float:
    """Find the mean distance of the fluid that meets a plane wall from it, weighted by the slope of the kernel.

    With it, the total friction of a linear shear flow on a lattice is exact for each slip length.
    """
    reach = math.ceil(2 * smoothing / spacing)
    across = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * (dim - 1)), axis=-1).reshape(-1, dim - 1)
    rows = np.arange(reach) + 0.5
    apart = (rows[:, None] + rows).reshape(-1, 1)
    r = spacing * np.sqrt(apart**2 + (across**2).sum(axis=1))
    weight = np.clip(1 - r / (2 * smoothing), 0, None) ** 3
    height = np.repeat(rows, reach)[:, None]
    return float(spacing * (weight * height).sum() / weight.sum())


def step_limits(model: Any, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step by the sound and by the viscosity, for particles however dense they come to lie."""
    h, c, mu = model.smoothing, params["sound_speed"], params["viscosity"]
    fastest = float(np.sqrt((np.asarray(state["velocity"], np.float64) ** 2).sum(axis=-1)).max())
    sound = StepLimit(COURANT * h / (float(c) + fastest), "sound speed", "lower it")
    viscous = VISCOUS * h * h * float(params["rest_density"] / mu) if mu > 0 else np.inf
    return sound, StepLimit(viscous, "viscosity", "lower it")


def advise(model: Any, params: Arrays, state: Arrays) -> str:
    """Name a list of neighbours that is full, or other remedies."""
    other = "Lower dt, or raise the sound speed where the density changes by more than a few percent."
    return advise_room(model, state["position"], "A particle") or other
