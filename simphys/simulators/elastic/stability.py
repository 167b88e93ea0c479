"""The checks of the time step and of the cells against the fastest and the shortest waves."""

from __future__ import annotations

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Arrays

from .model import Elastic, Params

POINTS = {2: 8.0, 4: 5.0, 8: 4.0}
"""Least number of cells by wavelength at the dominant frequency, by the order (Levander 1988: 5 for order 4)."""


def require_stable(model: Elastic, params: Params) -> None:
    """Raise InputError, naming the largest stable time step, if the model's time step exceeds it."""
    vp = params.vp.data
    fastest = float(vp.max())
    limit = model.largest_dt(fastest)
    if model.dt > limit * (1 + 1e-6):  # waves stay bounded at the limit itself; the margin allows for rounded input
        where = list(map(int, np.unravel_index(np.argmax(vp), vp.shape)))
        constraint = f"at the largest vp, {fastest:.4g} m/s in cell {where}, steps are stable up to {limit:.4g} s"
        remedy = f"Set time.dt to {0.9 * limit:.2g} or less, or take larger cells."
        raise InputError("time.dt", constraint, f"{model.dt:g} s", remedy)


def require_resolved(model: Elastic, params: Params, frequency: float) -> None:
    """Raise InputError, naming the largest spacing, if shear waves of the dominant frequency are not resolved."""
    vs = params.vs.data
    slowest = float(vs.min())
    wave, least = slowest / frequency, POINTS[model.order]
    if wave < least * model.spacing * (1 - 1e-6):
        where = list(map(int, np.unravel_index(np.argmin(vs), vs.shape)))
        constraint = (
            f"a shear wave of {frequency:g} Hz is {wave:.4g} m long at the least vs {slowest:.4g} m/s in cell {where}, "
            f"and differences of order {model.order} need {least:g} cells for it"
        )
        higher = ", take a higher simulator.order" if model.order < 8 else ""
        remedy = f"Set grid.spacing to {wave / least:.3g} or less{higher}, or lower control.frequency."
        raise InputError("grid.spacing", constraint, f"{model.spacing:g} m", remedy)


def advice(model: Elastic, params: Arrays, state: Arrays) -> str:
    """Report the stability limit: a wave that blows up has usually exceeded it."""
    fastest = float(params["vp"].max())
    limit = model.largest_dt(fastest)
    return (
        f"At the largest vp, {fastest:.3g} m/s, steps beyond {limit:.3g} s are unstable, and dt is {model.dt:.3g} s. "
        "Take a smaller dt, or larger cells."
    )
