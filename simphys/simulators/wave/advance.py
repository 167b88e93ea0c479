"""A leapfrog step for the scalar wave equation u_tt = c^2 (laplace u + f):

    u' = 2 u - u_prev + kappa (k + F),   kappa = (c dt / dx)^2

k = dx^2 laplace u (see `curvature`), F = dx^2 f (see `source`), c speed [m/s]. The step is of second order in dt and
can be run backward in time: u_prev = 2 u - u' + kappa (k + F). Adjoint, for g = adj_u':

    adj_u = 2 g      adj_u_prev = -g      w = adj_k = adj_F = kappa g      l = w (k + F)      adj_c = 2 l / c

l is the adjoint of log kappa. Fused steps carry w in place of g. As the Laplacian is symmetric, w takes exactly the
same step backward in time as u does forward, and `adj_leap` of w gives l in place of adj_kappa.
Source: Alterman and Karal 1968.
"""

from __future__ import annotations

from simphys.autograd import Tensor
from simphys.numerics.element import element
from simphys.simulator import Array
from simphys.substep import per_element

from .model import Wave


@element
def square_courant(c, r):
    return (c * r) ** 2


@square_courant.adjoint
def adj_square_courant(c, r, adj_kappa):
    return 2 * r**2 * c * adj_kappa


@square_courant.tangent
def jvp_square_courant(c, r, dc):
    return 2 * r**2 * c * dc


@element
def leap(u, before, kappa, k):
    return 2 * u - before + kappa * k


@leap.adjoint
def adj_leap(u, before, kappa, k, g):
    return 2 * g, -g, k * g, kappa * g


@leap.tangent
def jvp_leap(u, before, kappa, k, du, dbefore, dkappa, dk):
    return leap(du, dbefore, kappa, dk) + dkappa * k


SquareCourant = per_element(
    square_courant, over="cells", own={"c": "speed"}, constant={"r": "dt / dx"}, results={"kappa": "c"}
)
Leap = per_element(
    leap,
    over="cells",
    own={"u": "height", "before": "previous", "kappa": "kappa", "k": "curvature"},
    results={"height": "u"},
)


def advance(model: Wave, height: Tensor, previous: Tensor, curvature: Tensor, speed: Tensor) -> Tensor:
    """Compute the next height [*cells] from height, previous, dx^2 (laplace u + f) and speed."""
    kappa = SquareCourant.apply(model, speed, model.dt / model.spacing)
    new: Tensor = Leap.apply(model, height, previous, kappa, curvature)
    return new


def courant(model: Wave, speed: Array) -> Array:
    """Compute kappa from arrays of speeds."""
    return (speed * (model.dt / model.spacing)) ** 2


def jvp_courant(model: Wave, speed: Array, dspeed: Array) -> Array:
    """Compute the tangent of kappa from arrays of speeds and their tangents."""
    return 2 * (model.dt / model.spacing) ** 2 * speed * dspeed


def adj_speed(speed: Array, adj_log: Array) -> Array:
    """Compute the adjoint of speed from that of log kappa, for arrays."""
    return 2 * adj_log / speed
