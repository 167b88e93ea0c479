"""The check of the time step against the limit of explicit steps: 2 / L for the largest eigenvalue L of C^-1 K."""

from __future__ import annotations

import numpy as np

from simphys.autograd.errors import InputError
from simphys.numerics.coupled_cells import couple_cells
from simphys.simulator import Array, Arrays

from .model import Heat, Params


def find_largest_dt(model: Heat, conductivity: Array, capacity: Array) -> tuple[float, tuple[int, ...]]:
    """Return the largest step [s] that is surely stable, and the cell that limits it, by Gershgorin's theorem."""
    diagonal, coupling = couple_cells(conductivity, model.spacing, model.open_sides)
    others = [g + np.roll(g, 1, axis) for axis, g in enumerate(coupling)]
    rate = (diagonal + np.sum(others, axis=0)) / capacity
    cell = tuple(map(int, np.unravel_index(np.argmax(rate), rate.shape)))
    return float(2 / rate[cell]) if rate[cell] > 0 else float("inf"), cell


def require_stable(model: Heat, params: Params) -> None:
    """Raise InputError, naming the largest stable step and what limits it, if explicit steps exceed it."""
    if model.theta > 0:
        return
    k, capacity = params.conductivity.data, params.heat_capacity.data
    limit, cell = find_largest_dt(model, k, capacity)
    if model.dt > limit * (1 + 1e-6):  # the limit itself is stable; the margin allows for rounded input
        where = f"in cell {list(cell)}, with conductivity {k[cell]:.4g} W/(m K) and heat capacity {capacity[cell]:.4g}"
        constraint = f"explicit steps are stable up to {limit:.4g} s, which is reached {where} J/(m^3 K)"
        remedy = f'Set time.dt to {0.9 * limit:.2g} or less, take larger cells, or simulator.scheme = "implicit".'
        raise InputError("time.dt", constraint, f"{model.dt:g} s", remedy)


def advice(model: Heat, params: Arrays, state: Arrays) -> str:
    """Report the stability limit."""
    limit, _ = find_largest_dt(model, params["conductivity"], params["heat_capacity"])
    found = f'Explicit steps beyond {limit:.3g} s may be unstable. Take a smaller dt, or scheme = "implicit".'
    return "Look for sources or sides with values far too large." if model.theta else found
