"""Stresses of the particles of recorded states, for pictures: the laws' response to their deformation gradients.

With the Kirchhoff stress tau, the Cauchy stress is sigma = tau / det F; p = -tr(sigma) / dim and, with the deviator
s = sigma + p, the equivalent shear stress is sqrt(s : s / 2). In the plane that is the largest shear stress; in space,
sqrt(3) times it is von Mises's stress. What actuators add along their fibres is not included.
"""

from __future__ import annotations

import numpy as np

from simphys.autograd import no_grad, runtime
from simphys.simulator import Array, Arrays, Quantity

from .constitutive import coefficients, respond
from .model import MPM

SMALLEST = 1e-3
"""Least volume ratio that a stress is divided by: particles that have turned inside out have none."""


def stresses(model: MPM, params: Arrays, states: Arrays) -> dict[str, Quantity]:
    """Compute the pressure and the equivalent shear stress of each particle [Pa], [rows, n]."""
    found = [
        _invariants(model, params, deformation, plastic)
        for deformation, plastic in zip(states["deformation"], states["plastic"], strict=True)
    ]
    pressure, shear = (np.stack(each) for each in zip(*found, strict=True))
    return {"pressure": Quantity(pressure, "Pa"), "shear_stress": Quantity(shear, "Pa")}


def _invariants(model: MPM, params: Arrays, deformation: Array, plastic: Array) -> tuple[Array, Array]:
    real = runtime.real_dtype()
    with no_grad():
        taken = (np.ascontiguousarray(each, real) for each in (deformation, plastic, coefficients(model, params)))
        tau = np.asarray(respond(model, *taken)[2].data, np.float64)
    sigma = tau / np.maximum(np.linalg.det(deformation.astype(np.float64)), SMALLEST)[:, None, None]
    pressure = -np.trace(sigma, axis1=1, axis2=2) / model.dim
    deviator = sigma + pressure[:, None, None] * np.eye(model.dim)
    return pressure, np.sqrt(np.sum(deviator**2, axis=(1, 2)) / 2)
