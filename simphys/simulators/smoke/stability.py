"""The largest stable time step of a flow, which is that of its explicit diffusion.

    dt <= dx^2 / (2 dim nu)

The eigenvalues of -A in diffuse.py are between 0 and 4 for each axis, at walls as well (Gershgorin circles). Hence
|1 - k lambda| <= 1 with k = dt nu / dx^2. Semi-Lagrangian advection creates no new extrema (Stam 1999), and
penalization is implicit: for these the time step is a question of accuracy only.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulators.smoke.model import Params, Smoke


def require_stable(model: Smoke, params: Params) -> None:
    """Raise InputError, naming the largest stable time step, if the model's time step exceeds it."""
    limit = largest_stable_dt(model, float(params.viscosity.data.max()))
    if model.dt > limit * (1 + 1e-6):
        constraint = f"the largest stable time step for this viscosity is {limit:.4g} s"
        remedy = f"Set time.dt to {0.9 * limit:.2g} or less, or take larger cells."
        raise InputError("time.dt", constraint, f"{model.dt:g} s", remedy)


def largest_stable_dt(model: Smoke, viscosity: float) -> float:
    """Compute the largest time step [s] for which diffusion is stable."""
    return model.spacing**2 / (2 * model.dim * viscosity) if viscosity > 0 else np.inf
