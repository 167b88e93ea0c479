"""The largest stable time step of a flow: that of its explicit diffusion.

    dt <= dx^2 / (2 dim nu)

as the eigenvalues of diffuse.py's -A are between 0 and 4 for each axis, at walls as well (Gershgorin's circles), so
that |1 - k lambda| <= 1 with k = dt nu / dx^2. Advection looks backwards and takes no more than was there (Stam 1999),
and penalization is implicit: how far the fluid goes in a step is a question of accuracy.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulators.smoke.model import Params, Smoke


def require_stable(model: Smoke, params: Params) -> None:
    """Raise InputError, which tells the largest stable time step, where the model's is beyond it."""
    limit = largest_stable_dt(model, float(params.viscosity.data.max()))
    if model.dt > limit * (1 + 1e-6):
        constraint = f"the largest time step that is stable with this viscosity is {limit:.4g} s"
        remedy = f"Set time.dt to {0.9 * limit:.2g} or less, or take larger cells."
        raise InputError("time.dt", constraint, f"{model.dt:g} s", remedy)


def largest_stable_dt(model: Smoke, viscosity: float) -> float:
    """The time step [s] up to which diffusion is stable."""
    return model.spacing**2 / (2 * model.dim * viscosity) if viscosity > 0 else np.inf
