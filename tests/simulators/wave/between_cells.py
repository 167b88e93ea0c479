"""Sources and receivers between cells: test inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.simulators.wave.model import Wave

DX = 0.4
Array = np.ndarray[Any, Any]


def sources(model: Wave, seed: int = 0) -> tuple[Array, Array]:
    """Draw strengths, and positions inside of the grid and up to half a cell beyond."""
    random = np.random.default_rng(seed)
    S, cells = len(model.sources), np.array(model.cells)
    return random.normal(size=S), random.uniform(-0.5, cells - 0.5, size=(S, model.dim)) * DX


def receivers(model: Wave, seed: int = 0) -> tuple[Array, Array]:
    """Draw a field, and positions inside of the grid and up to half a cell beyond."""
    random = np.random.default_rng(seed)
    places = random.uniform(-0.5, np.array(model.cells) - 0.5, size=(model.receivers, model.dim))
    return random.normal(size=model.cells), places * DX
