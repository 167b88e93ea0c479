"""A stage of the time step, which advances elevation and velocity from the beginning of the step by the fluxes.

w is the length of the stage [s]:

    eta' = eta_0 - w sum_a dU_a/dx_a                                        [m] in cells
    u_a' = u_a0 + w (R_a(q, U) - dH/dx_a)                                   [m/s] at faces; at walls u_a' = u_a0
    R_x(q, U) = mean_y(q mean_x(U_y))     R_y(q, U) = -mean_x(q mean_y(U_x))

R is antisymmetric in U, so it does no work. F = dx R - (differences of H) is the force [m^2/s^2] that `accelerate`
takes.

Sources: Sadourny 1975, model I, which conserves mass, and energy up to the error in time; Wicker and Skamarock 2002
for the three stages w = dt/3, dt/2 and dt, each from the initial state: second order, third for linear problems.
"""

from __future__ import annotations

from typing import Any

from simphys.autograd import Tensor
from simphys.numerics.element import element
from simphys.substep import per_element, stencil

from . import grid
from .model import ShallowWater


@element
def turn(q, U, dx):
    return dx * q * U


@turn.adjoint
def adj_turn(q, U, dx, adj_R):
    return dx * U.dot(adj_R), dx * q * adj_R


@element
def accelerate(u, F, w, dx, is_open):
    return u + w / dx * is_open * F


@accelerate.adjoint
def adj_accelerate(u, F, w, dx, is_open, adj_u):
    return adj_u, w / dx * is_open * adj_u


@element
def rise(eta, outflow, w, dx):
    return eta - w / dx * outflow


@rise.adjoint
def adj_rise(eta, outflow, w, dx, adj_eta):
    return adj_eta, -w / dx * adj_eta


TurnedTransport = stencil("turned_transport", {"transport": grid.turned_at_corners})
Turn = per_element(
    turn,
    over="cells",
    own={"q": "vorticity", "U": "turned_transport"},
    constant={"dx": "spacing"},
    results={"turning_force": "U"},
    components_first=True,
)
Force = stencil("force", {"turning_force": grid.corners_to_faces, "head": grid.falls_at_faces})
Accelerate = per_element(
    accelerate,
    over="cells",
    own={"u": "velocity", "F": "force"},
    constant={"w": "stage", "dx": "spacing"},
    inner={"is_open": "closed"},
    results={"velocity": "u"},
    components_first=True,
)
Outflow = stencil("outflow", {"transport": grid.divergence})
Rise = per_element(
    rise,
    over="cells",
    own={"eta": "elevation", "outflow": "outflow"},
    constant={"w": "stage", "dx": "spacing"},
    results={"elevation": "eta"},
)


def advance(
    model: ShallowWater, part: float, elevation: Tensor, velocity: Tensor, fluxes: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Compute elevation and velocity at the end of a stage whose length is `part` time steps.

    Both are given at the beginning of the step; the fluxes are those of the previous stage.
    """
    transport, vorticity, head = fluxes
    scales: Any = part * model.dt, model.spacing
    turning = Turn.apply(model, vorticity, TurnedTransport.apply(model, transport), model.spacing)
    return (
        Rise.apply(model, elevation, Outflow.apply(model, transport), *scales),
        Accelerate.apply(model, velocity, Force.apply(model, turning, head), *scales),
    )
