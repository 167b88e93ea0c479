"""Bottom friction over a time t, with the height of the water held fixed.

    u_a' = u_a / (1 + k s)     k = t c_f / mean_a(h)     s = sqrt(u_a^2 + v^2)     [m/s] at faces; 0 at walls

v is the mean of the other component over the four faces around. For a uniform velocity this is the exact
solution of du/dt = -c_f |u| u / h, namely 1/|u'| = 1/|u| + t c_f/h. It never reverses the velocity, however large t
is. Adjoint, for g = adj_u_a', with r = 1 / (1 + k s) and e = g k u_a r^2:

    adj_u_a = g r - e u_a/s     adj_v = -e v/s     adj_h = e s / mean_a(h)     adj_c = -e s / c_f = -g u_a s r^2 t/h

In water at rest, s = 0, u/s and v/s count as 0. There e is 0, too, and the derivative of u' by u is 1, which is exact.
Source: the quadratic law as in Chow 1959; its solution is elementary.
"""

from __future__ import annotations

from simphys.autograd import Tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element, stencil

from . import grid
from .fluxes import FaceHeight
from .model import ShallowWater


@element
def damp(u, v, h, c_f, t, is_open):
    return is_open * u / (1 + t * c_f / h * ti.sqrt(u * u + v * v))


@damp.adjoint
def adj_damp(u, v, h, c_f, t, is_open, adj_u):
    s = ti.sqrt(u * u + v * v)
    inverse = ti.select(s > 0, 1 / ti.select(s > 0, s, 1.0), 0.0)
    k = t * c_f / h
    r = 1 / (1 + k * s)
    g = is_open * adj_u
    a = g * u * r * r
    e = k * a * inverse
    return g * r - e * u, -e * v, k * a * s / h, -(a * s * t / h).sum()


@damp.tangent
def jvp_damp(u, v, h, c_f, t, is_open, du, dv, dh, dc_f):
    s = ti.sqrt(u * u + v * v)
    inverse = ti.select(s > 0, 1 / ti.select(s > 0, s, 1.0), 0.0)
    k = t * c_f / h
    r = 1 / (1 + k * s)
    ds = (u * du + v * dv) * inverse
    dk = (t * dc_f - k * dh) / h
    return is_open * (r * du - u * r * r * (dk * s + k * ds))


VelocityAcross = stencil("velocity_across", {"velocity": grid.mean_across})
Damp = per_element(
    damp,
    over="cells",
    own={"u": "velocity", "v": "velocity_across", "h": "face_height"},
    shared={"c_f": "friction"},
    constant={"t": "time"},
    inner={"is_open": "closed"},
    results={"velocity": "u"},
    components_first=True,
)


def damp_velocity(model: ShallowWater, velocity: Tensor, height: Tensor, friction: Tensor) -> Tensor:
    """Compute the velocity [dim, *cells] after half a time step of friction, for the height of the water [*cells]."""
    across, face_height = VelocityAcross.apply(model, velocity), FaceHeight.apply(model, height)
    damped: Tensor = Damp.apply(model, velocity, across, face_height, friction, model.dt / 2)
    return damped
