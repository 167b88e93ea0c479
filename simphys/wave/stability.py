"""The largest stable time step of waves: that of leapfrog at the largest speed, see `Wave.largest_dt`."""

from __future__ import annotations

from simphys.autograd.errors import InputError
from simphys.wave.model import Params, Wave


def require_stable(model: Wave, params: Params) -> None:
    """Raise InputError, which tells the largest stable time step, where the model's is beyond it."""
    fastest = float(params.speed.data.max())
    limit = model.largest_dt(fastest)
    if model.dt > limit * (1 + 1e-6):  # at the limit itself waves stay bounded, but for rounding of the numbers given
        constraint = f"the largest time step that is stable at this speed, {fastest:.4g} m/s, is {limit:.4g} s"
        remedy = f"Set time.dt to {0.9 * limit:.2g} or less, or take larger cells."
        raise InputError("time.dt", constraint, f"{model.dt:g} s", remedy)
