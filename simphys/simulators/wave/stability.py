"""The check of a scene's time step against the stability limit of leapfrog, see `Wave.largest_dt`."""

from __future__ import annotations

from simphys.autograd.errors import InputError
from simphys.simulators.wave.model import Params, Wave


def require_stable(model: Wave, params: Params) -> None:
    """Raise InputError, naming the largest stable time step, if the model's time step exceeds it."""
    fastest = float(params.speed.data.max())
    limit = model.largest_dt(fastest)
    if model.dt > limit * (1 + 1e-6):  # waves stay bounded at the limit itself; the margin allows for rounded input
        constraint = f"the largest time step that is stable at this speed, {fastest:.4g} m/s, is {limit:.4g} s"
        remedy = f"Set time.dt to {0.9 * limit:.2g} or less, or take larger cells."
        raise InputError("time.dt", constraint, f"{model.dt:g} s", remedy)
