"""Small systems of fluid and walls in which no term vanishes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.simulators.sph import SPH, Params, State

from ...helpers.contract import System

NAMES = (*State.names(), *Params.names())


def system(
    dim: int = 2,
    *,
    per_axis: int = 4,
    batch: int | None = None,
    batched: tuple[str, ...] = ("position", "velocity", "viscosity"),
    seed: int = 0,
    **options: Any,
) -> System:
    """Make a moving, jagged block of fluid over a wall, all tensors of which require a gradient; one axis is open."""
    random, spacing = np.random.default_rng(seed), 0.5
    grid = np.stack(np.meshgrid(*[np.arange(per_axis)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    is_wall = grid[:, -1] == 0
    grid = np.concatenate([grid[~is_wall], grid[is_wall]])
    n, walls = len(grid), int(is_wall.sum())
    chosen: dict[str, Any] = {
        "box": (*[per_axis * spacing] * (dim - 1), math.inf),
        "dt": 0.02,
        "spacing": spacing,
        "smoothing": 0.5,
        "skin": 0.05,
        "neighbours": n - 1,
        "diffusion": 0.3,
        "gauges": (0.4, 1.1, 1.7),
        "gauge_width": 0.45,
        "breadth": 1.2 if dim == 3 else 1.0,
    }
    model = SPH(n - walls, walls, **chosen | options)
    lead = () if batch is None else (batch,)
    moving = np.arange(n) < n - walls
    values = {
        "position": spacing * (grid + 0.5) + random.uniform(-0.06, 0.06, (*lead, n, dim)),
        "velocity": random.normal(0, 0.5, (*lead, n, dim)) * moving[:, None],
        "density": 1.2 * random.uniform(0.97, 1.06, n),
        "depth": random.uniform(0.5, 1.5, len(model.gauges)),
        "rest_density": np.array(1.2),
        "sound_speed": np.array(4.0),
        "viscosity": random.uniform(0.2, 0.4, lead),
        "slip_length": np.array(0.2),
        "gravity": random.uniform(-1.5, -0.5, dim),
    }
    if batch is not None:
        values |= {name: values[name][0] for name in ("position", "velocity", "viscosity") if name not in batched}
    made = {name: tensor(value, requires_grad=True) for name, value in values.items()}
    params = Params(**{name: made[name] for name in Params.names()})
    return System(model, params, State(**{name: made[name] for name in State.names()}))
