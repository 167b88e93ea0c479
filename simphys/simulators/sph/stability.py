"""Checks of a start: room in lists of neighbours, and time steps that are stable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.simulator import Array, Arrays, StepLimit

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


def build_tree(position: Array, box: tuple[float, ...]) -> Any:
    """Build a tree of positions in a box, for searches of neighbours."""
    from scipy.spatial import cKDTree  # only where it is used

    periodic = np.isfinite(box)
    lengths = np.where(periodic, box, 1.0)
    low = np.where(periodic, 0.0, position.min(axis=0))  # trees of boxes take no negative numbers
    inside = np.where(periodic, position - lengths * np.floor(position / lengths), position - low)
    inside = np.where(periodic & (inside >= lengths), 0.0, inside)  # by rounding
    return cKDTree(inside, boxsize=np.where(periodic, box, 0.0))


def count_most(position: Array, box: tuple[float, ...], reach: float) -> int:
    """Count the neighbours within reach of the particle that has most."""
    tree = build_tree(position, box)
    return int(tree.query_ball_point(tree.data, reach, return_length=True).max()) - 1


def find_nearest(position: Array, box: tuple[float, ...]) -> tuple[float, int, int]:
    """Find the two particles that are nearest to each other: their distance [m], and their numbers."""
    tree = build_tree(position, box)
    distances, others = tree.query(tree.data, k=2)
    i = int(distances[:, 1].argmin())
    return float(distances[i, 1]), i, int(others[i, 1])


def step_limits(model: Any, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step by the sound and by the viscosity, for particles however dense they come to lie."""
    h, c, mu = model.smoothing, params["sound_speed"], params["viscosity"]
    fastest = float(np.sqrt((np.asarray(state["velocity"], np.float64) ** 2).sum(axis=-1)).max())
    sound = StepLimit(COURANT * h / (float(c) + fastest), "sound speed", "lower it")
    viscous = VISCOUS * h * h * float(params["rest_density"] / mu) if mu > 0 else np.inf
    return sound, StepLimit(viscous, "viscosity", "lower it")


def advise(model: Any, params: Arrays, state: Arrays) -> str:
    """Name a list of neighbours that is full."""
    position = state["position"]
    if np.isfinite(position).all():
        most = count_most(position, model.box, model.cutoff + model.skin)
        if most > model.neighbours:
            room = f"A particle has {most} neighbours within cut-off and skin, and room for {model.neighbours}"
            return f"{room}: raise `neighbours`."
    return "Lower dt, or raise the sound speed where the density changes by more than a few percent."
