"""An obstacle at rest in the fluid, by implicit volume penalization.

    u' = r u,    r = 1 - chi(phi) / (1 + ETA)                F_a = V/dt sum_i (u - u')_a,i

phi signed distance at a face, the mean of its cells (faces.py) [m]; V volume of a cell; F force on the obstacle divided
by density [m^(dim+1)/s^2]. chi is the fraction of obstacle at a point, 1 inside and 0 outside. It falls over LAYER
cells around the surface:

    chi = t^2 (3 - 2 t),    t = clamp(1/2 - phi/(LAYER dx), 0, 1)

r is an implicit step of du/dt = -a u, r = 1 / (1 + a dt), with the damping a = chi / ((1 + ETA - chi) dt). Inside,
a = 1 / (ETA dt), so that a step leaves ETA / (1 + ETA) = 1 % of the velocity. The growth of a near chi = 1 (Borrvall
and Petersson 2003, with q = ETA) matters for shape optimization. A linear a = chi / (ETA dt) would stop the fluid at
every face that the layer touches. The force would then be a staircase, with a jump wherever the surface reaches further
faces.

chi has a continuous derivative, 0 at both ends of the layer, and shapes get their gradient through it. Adjoint, with
g = adj_u', f = adj_F, and the total adjoint h_a = g_a - V/dt f_a of u':

    adj_u = r h + V/dt f                adj_phi = sum_a m_a^T (u_a h_a dr/dphi),    dr/dphi = -chi'(phi) / (1 + ETA)

The three sub-steps are the distance at faces, which depends on parameters alone, the damping, and the force.

The subsequent projection ignores the obstacle and accelerates the fluid inside by the pressure gradient again. The
velocity that remains there is therefore proportional to dt.

Source: Angot, Bruneau and Fabrie 1999, equation 1.3; Borrvall and Petersson 2003.
"""

from __future__ import annotations

from collections.abc import Mapping

from simphys.autograd import Tensor
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import Chain, Entries, Launch, Target, launched, per_element

from .entries import work_of
from .means import add_means, adj_means
from .model import Smoke

Out = Mapping[str, Target]

ETA = 0.01
"""Relaxation time of the fluid well inside, in time steps."""
LAYER = 1.0
"""Width of the layer around the surface over which chi falls from 1 to 0, in cells."""


def obstruct(model: Smoke, velocity: Tensor, obstacle: Tensor) -> tuple[Tensor, Tensor]:
    """Damp a velocity [dim, *faces] [m/s] by an obstacle with signed distance [*cells]; return the force [dim], too."""
    distance = FaceDistance.apply(model, obstacle)
    damped = Damp.apply(model, velocity, distance, LAYER * model.spacing)
    return damped, Drag.apply(model, velocity, damped)


@element
def damp(u, phi, width):
    t = ti.min(ti.max(0.5 - phi / width, 0.0), 1.0)
    return (1 - t * t * (3 - 2 * t) / (1 + ETA)) * u


@damp.adjoint
def adj_damp(u, phi, width, adj_u):
    t = ti.min(ti.max(0.5 - phi / width, 0.0), 1.0)
    r = 1 - t * t * (3 - 2 * t) / (1 + ETA)
    slope = 6 * t * (1 - t) / (width * (1 + ETA))
    return r * adj_u, slope * u * adj_u


def face_distance(model: Smoke, obstacle: Entries, out: Out) -> Launch:
    work = work_of(model)
    return add_means(work, obstacle, work.ones(), 1.0, 1, out["distance"])


def adj_face_distance(model: Smoke, adj_distance: Entries, out: Out) -> Launch:
    work = work_of(model)
    return Chain(*[adj_means(work, adj_distance, work.ones(), 1.0, 1, target) for target in out.values()])


def jvp_face_distance(model: Smoke, dobstacle: Entries, out: Out) -> Launch:
    return face_distance(model, dobstacle, out)


def drag(model: Smoke, velocity: Entries, damped_velocity: Entries, out: Out) -> Launch:
    work = work_of(model)
    lost = Entries(work.get("terms", work.entries))
    return Chain(
        work.copy(velocity, Target(lost)),
        work.copy(damped_velocity, Target(lost, adds=True), -1.0),
        work.add_up(lost.numbers, model.dim, _rate(model), out["obstacle_force"]),
    )


def adj_drag(model: Smoke, adj_obstacle_force: Entries, out: Out) -> Launch:
    work, signs = work_of(model), {"velocity": 1.0, "damped_velocity": -1.0}
    return Chain(*[work.repeat(adj_obstacle_force, signs[name] * _rate(model), target) for name, target in out.items()])


def jvp_drag(model: Smoke, dvelocity: Entries, ddamped_velocity: Entries, out: Out) -> Launch:
    return drag(model, dvelocity, ddamped_velocity, out)


@element
def no_drag(force):
    return 0 * force


@no_drag.adjoint
def adj_no_drag(force, adj_obstacle_force):
    return 0 * adj_obstacle_force


def _rate(model: Smoke) -> float:
    """Return V/dt."""
    return float(model.spacing**model.dim / model.dt)


FaceDistance = launched(
    face_distance,
    adjoint=adj_face_distance,
    tangent=jvp_face_distance,
    results={"distance": lambda model: (model.dim, *model.faces)},
    name="FaceDistance",
)
"""Signed distance phi [dim, *faces] [m] from that of cells; 0 beyond a component's own faces, as the velocity is."""

Damp = per_element(
    damp,
    over="entries",
    own={"u": "velocity", "phi": "distance"},
    constant={"width": "width of the layer"},
    results={"damped_velocity": "u"},
)
"""Damped velocity [dim, *faces] [m/s]."""

Drag = launched(
    drag,
    adjoint=adj_drag,
    tangent=jvp_drag,
    results={"obstacle_force": lambda model: (model.dim,)},
    name="Drag",
    work_arrays=2,
)
"""Force F [dim] on the obstacle, from the velocities before and after."""

NoDrag = per_element(no_drag, over="entries", own={"force": "force"}, results={"obstacle_force": "force"})
"""The force [dim] without an obstacle, 0."""
