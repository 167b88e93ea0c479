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

from .faces import add_mean, adj_mean
from .model import Smoke


def forward(model: Smoke, velocity: Array, smoke: Array, buoyancy: Array, out: Array | None = None) -> Array:
    """Accelerate a velocity [dim, *faces] [m/s] by buoyancy [dim] of smoke [*cells]; `out` may be the velocity."""
    return add_mean(model, velocity, smoke, _scale(model, buoyancy), sides=0.0, out=out)


def pull(model: Smoke, smoke: Array, buoyancy: Array, adj_lifted_velocity: Array) -> tuple[Array, Array, Array]:
    """Return adj_velocity, adj_smoke and adj_buoyancy."""
    adj = adj_lifted_velocity
    adj_smoke = adj_mean(model, adj, _scale(model, buoyancy), sides=0.0)
    ones = np.ones(model.dim, adj.dtype)
    mean = add_mean(model, np.zeros_like(adj), smoke, ones, sides=0.0)
    adj_buoyancy = model.dt * (adj * mean).reshape(model.dim, -1).sum(axis=1)
    return adj, adj_smoke, adj_buoyancy.astype(adj.dtype)


def push(model: Smoke, smoke: Array, buoyancy: Array, dvelocity: Array, dsmoke: Array, dbuoyancy: Array) -> Array:
    """Return the tangent of the velocity."""
    moved = add_mean(model, dvelocity, dsmoke, _scale(model, buoyancy), sides=0.0)
    return add_mean(model, moved, smoke, _scale(model, dbuoyancy), sides=0.0, out=moved)


def _scale(model: Smoke, buoyancy: Array) -> Array:
    return np.asarray(model.dt * buoyancy, buoyancy.dtype)


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
