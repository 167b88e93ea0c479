"""Buoyancy: smoke accelerates the fluid that carries it.

    u'_a = u_a + dt b_a m_a(s)

b acceleration per unit of smoke [m/s^2], m_a the mean of the two cells at a face. At faces on sides m_a is 0: their
velocity is given or, at an open side, follows from the pressure. Adjoint, with g = adj_u':

    adj_u = g            adj_s = dt sum_a b_a m_a^T g_a            adj_b_a = dt sum_i g_a,i m_a,i

Source: Fedkiw, Stam and Jensen 2001, equation 8. Means and their transpose are in faces.py.
"""

from __future__ import annotations

import numpy as np

from simphys.simulator import Array
from simphys.substep import operation

from .faces import adj_mean, mean, own_index
from .model import Smoke


def forward(model: Smoke, velocity: Array, smoke: Array, buoyancy: Array, out: Array | None = None) -> Array:
    """Accelerate a velocity [dim, *faces] [m/s] by buoyancy [dim] of smoke [*cells]; `out` may be the velocity."""
    out = np.empty_like(velocity) if out is None else out
    if out is not velocity:
        np.copyto(out, velocity)
    for component, b in enumerate(buoyancy):
        if b:
            out[own_index(model, component)] += model.dt * b * mean(model, smoke, component, sides=0.0)
    return out


def pull(model: Smoke, smoke: Array, buoyancy: Array, adj_lifted_velocity: Array) -> tuple[Array, Array, Array]:
    """Return adj_velocity, adj_smoke and adj_buoyancy."""
    adj_smoke, adj_buoyancy = np.zeros_like(smoke), np.zeros_like(buoyancy)
    for component, b in enumerate(buoyancy):
        g = adj_lifted_velocity[own_index(model, component)]
        adj_buoyancy[component] = model.dt * (g * mean(model, smoke, component, sides=0.0)).sum()
        if b:
            adj_smoke += model.dt * b * adj_mean(model, g, component, sides=0.0)
    return adj_lifted_velocity, adj_smoke, adj_buoyancy


def push(model: Smoke, smoke: Array, buoyancy: Array, dvelocity: Array, dsmoke: Array, dbuoyancy: Array) -> Array:
    """Return the tangent of the velocity."""
    moved = forward(model, dvelocity, dsmoke, buoyancy)
    return forward(model, moved, smoke, dbuoyancy, moved)


Buoyancy = operation(
    forward,
    adjoint=pull,
    tangent=push,
    results={"lifted_velocity": "velocity"},
    name="Buoyancy",
    is_cheap=True,
    idle={"buoyancy": "velocity"},
)
"""Velocity [dim, *faces] after a step with buoyancy [dim] of smoke [*cells]."""
