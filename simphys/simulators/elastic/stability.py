"""Limits of the time step and of the cells by the fastest and the shortest waves."""

from __future__ import annotations

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Arrays, StepLimit

from .model import Elastic, Params

POINTS = {2: 8.0, 4: 5.0, 8: 4.0}
"""Least number of cells by wavelength at the dominant frequency, by the order (Levander 1988: 5 for order 4)."""


def step_limits(model: Elastic, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step by the fastest compressional wave."""
    vp = params["vp"]
    cell = np.unravel_index(np.argmax(vp), vp.shape)
    cause = f"the largest vp, {vp[cell]:.4g} in cell {list(map(int, cell))}"
    return (StepLimit(model.largest_dt(float(vp[cell])), cause, "take larger cells"),)


def require_resolved(model: Elastic, params: Params, frequency: float) -> None:
    """Raise InputError, naming the largest spacing, if shear waves of the dominant frequency are not resolved."""
    vs = params.vs.data
    slowest = float(vs.min())
    wave, least = slowest / frequency, POINTS[model.order]
    if wave < least * model.spacing * (1 - 1e-6):
        where = list(map(int, np.unravel_index(np.argmin(vs), vs.shape)))
        constraint = (
            f"a shear wave of frequency {frequency:g} is {wave:.4g} long at the least vs, {slowest:.4g} in cell "
            f"{where}, and differences of order {model.order} need {least:g} cells for it"
        )
        higher = ", take a higher simulator.order" if model.order < 8 else ""
        remedy = f"Set grid.spacing to {wave / least:.3g} or less{higher}, or lower control.frequency."
        raise InputError("grid.spacing", constraint, f"{model.spacing:g}", remedy)
