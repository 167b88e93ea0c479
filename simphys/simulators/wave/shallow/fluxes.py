"""The fluxes: transport through faces, potential vorticity at corners, and the Bernoulli head in cells.

h = D + eta is the height of the water; means are over the neighbours along one axis or both:

    U_a = mean_a(h) u_a                                                     [m^2/s] at faces
    q = (du_y/dx - du_x/dy) / mean_xy(h)                                    [1/(m s)] at corners, in 2-D
    H = g eta + 1/2 sum_a mean_a(u_a^2)                                     [m^2/s^2] in cells

Adjoint of q, for p = adj_q: z = p / mean_xy(h) goes to the numerator, and -z q to mean_xy(h). The other fluxes are
products; adjoints go back from faces and corners by the transposed means and differences of `grid`.

Source: Sadourny 1975, model I, whose transport and head conserve energy with the time derivatives of `advance`.
"""

from __future__ import annotations

import math

from simphys.autograd import Tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element, stencil

from . import grid
from .model import ShallowWater


@element
def add_heights(eta, D, dry):
    h = D + eta
    return ti.select(h > 0, h, dry)


@add_heights.adjoint
def adj_add_heights(eta, D, dry, adj_h):
    return adj_h, adj_h


@add_heights.tangent
def jvp_add_heights(eta, D, dry, deta, dD):
    return deta + dD


@element
def transport(h, u):
    return h * u


@transport.adjoint
def adj_transport(h, u, adj_U):
    return u * adj_U, h * adj_U


@element
def potential_vorticity(c, h, dx):
    return c / (dx * h)


@potential_vorticity.adjoint
def adj_potential_vorticity(c, h, dx, adj_q):
    z = adj_q / (dx * h)
    return z, -z * c / h


@element
def head(eta, u, after, g):
    return g * eta + 0.25 * (u.dot(u) + after.dot(after))


@head.adjoint
def adj_head(eta, u, after, g, adj_H):
    return g * adj_H, 0.5 * u * adj_H, 0.5 * after * adj_H, eta * adj_H


AddHeights = per_element(
    add_heights,
    over="cells",
    own={"eta": "elevation", "D": "depth"},
    constant={"dry": "height of a dry cell"},
    results={"height": "eta"},
)
FaceHeight = stencil("face_height", {"height": grid.mean_at_faces})
CornerHeight = stencil("corner_height", {"height": grid.mean_at_corners})
Circulation = stencil("circulation", {"velocity": grid.circulation})
UpperVelocity = stencil("upper_velocity", {"velocity": grid.upper_faces})
Transport = per_element(
    transport,
    over="cells",
    own={"h": "face_height", "u": "velocity"},
    results={"transport": "u"},
    components_first=True,
)
PotentialVorticity = per_element(
    potential_vorticity,
    over="cells",
    own={"c": "circulation", "h": "corner_height"},
    constant={"dx": "spacing"},
    results={"vorticity": "c"},
)
Head = per_element(
    head,
    over="cells",
    own={"eta": "elevation", "u": "velocity", "after": "upper_velocity"},
    shared={"g": "gravity"},
    results={"head": "eta"},
    components_first=True,
)


def add_up_height(model: ShallowWater, elevation: Tensor, depth: Tensor) -> Tensor:
    """Compute the height of the water [*cells] [m]. It is NaN in a dry cell, which stops a rollout."""
    height: Tensor = AddHeights.apply(model, elevation, depth, math.nan)
    return height


def compute_fluxes(
    model: ShallowWater, elevation: Tensor, velocity: Tensor, height: Tensor, gravity: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute transport [dim, *cells], potential vorticity [*cells] (0 in one dimension) and head [*cells]."""
    flow = Transport.apply(model, FaceHeight.apply(model, height), velocity)
    circulation, corner_height = Circulation.apply(model, velocity), CornerHeight.apply(model, height)
    vorticity = PotentialVorticity.apply(model, circulation, corner_height, model.spacing)
    return flow, vorticity, Head.apply(model, elevation, velocity, UpperVelocity.apply(model, velocity), gravity)
