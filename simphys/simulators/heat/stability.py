"""The limit of explicit steps: 2 / L for the largest eigenvalue L of C^-1 K."""

from __future__ import annotations

import numpy as np

from simphys.numerics.coupled_cells import couple_cells
from simphys.simulator import Arrays, StepLimit

from .model import Heat


def step_limits(model: Heat, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit explicit steps to those that are surely stable, by Gershgorin's theorem; implicit ones always are."""
    if model.theta > 0:
        return ()
    k, capacity = params["conductivity"], params["heat_capacity"]
    diagonal, coupling = couple_cells(k, model.spacing, model.open_sides)
    others = [g + np.roll(g, 1, axis) for axis, g in enumerate(coupling)]
    rate = (diagonal + np.sum(others, axis=0)) / capacity
    cell = tuple(map(int, np.unravel_index(np.argmax(rate), rate.shape)))
    cause = f"conductivity {k[cell]:.4g} and heat capacity {capacity[cell]:.4g} of cell {list(cell)}"
    limit = float(2 / rate[cell]) if rate[cell] > 0 else np.inf
    return (StepLimit(limit, cause, 'take larger cells, or simulator.scheme = "implicit"'),)


def advice(model: Heat, params: Arrays, state: Arrays) -> str:
    """Tell what else than the time step makes temperatures large."""
    return "Look for sources or sides with values far too large."
