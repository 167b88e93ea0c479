"""The largest stable time step of a flow, which is that of its explicit diffusion.

    dt <= dx^2 / (2 dim nu)

The eigenvalues of -A in diffuse.py are between 0 and 4 for each axis, at walls as well (Gershgorin circles). Hence
|1 - k lambda| <= 1 with k = dt nu / dx^2. Semi-Lagrangian advection creates no new extrema (Stam 1999), and
penalization is implicit: for these the time step is a question of accuracy only.
"""

from __future__ import annotations

import numpy as np

from simphys.simulator import Arrays, StepLimit

from .model import Smoke


def step_limits(model: Smoke, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step by the diffusion of velocity."""
    nu = float(params["viscosity"])
    limit = model.spacing**2 / (2 * model.dim * nu) if nu > 0 else np.inf
    return (StepLimit(limit, f"the viscosity, {nu:.4g}", "take larger cells"),)
