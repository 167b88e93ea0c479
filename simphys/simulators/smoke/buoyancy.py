"""Buoyancy: smoke accelerates the fluid that carries it.

    u'_a = u_a + dt b_a m_a(s)

b acceleration per unit of smoke [m/s^2], m_a the mean of the two cells at a face. At faces on sides m_a is 0: their
velocity is given or, at an open side, follows from the pressure. Adjoint, with g = adj_u':

    adj_u = g            adj_s = dt sum_a b_a m_a^T g_a            adj_b_a = dt sum_i g_a,i m_a,i

Source: Fedkiw, Stam and Jensen 2001, equation 8. Means and their transpose are in means.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from simphys.substep import Chain, Entries, Launch, Target, launched

from .entries import work_of
from .means import add_means, adj_factors, adj_means
from .model import Smoke

Out = Mapping[str, Target]


def lift(model: Smoke, velocity: Entries, smoke: Entries, buoyancy: Entries, out: Out) -> Launch:
    """Accelerate a velocity [dim, *faces] [m/s] by buoyancy [dim] of smoke [*cells]."""
    work, target = work_of(model), out["lifted_velocity"]
    more = Target(target.entries, adds=True)
    return Chain(work.copy(velocity, target), add_means(work, smoke, buoyancy, model.dt, 0, more))


def adj_lift(model: Smoke, smoke: Entries, buoyancy: Entries, adj_lifted_velocity: Entries, out: Out) -> Launch:
    work, g = work_of(model), adj_lifted_velocity
    makes = {
        "velocity": lambda target: work.copy(g, target),
        "smoke": lambda target: adj_means(work, g, buoyancy, model.dt, 0, target),
        "buoyancy": lambda target: adj_factors(work, g, smoke, model.dt, 0, target),
    }
    return Chain(*[makes[name](target) for name, target in out.items()])


def jvp_lift(
    model: Smoke,
    smoke: Entries,
    buoyancy: Entries,
    dvelocity: Entries,
    dsmoke: Entries,
    dbuoyancy: Entries,
    out: Out,
) -> Launch:
    more = Target(out["lifted_velocity"].entries, adds=True)
    return Chain(
        lift(model, dvelocity, dsmoke, buoyancy, out),
        add_means(work_of(model), smoke, dbuoyancy, model.dt, 0, more),
    )


Buoyancy = launched(
    lift,
    adjoint=adj_lift,
    tangent=jvp_lift,
    results={"lifted_velocity": "velocity"},
    name="Buoyancy",
    is_cheap=True,
    idle={"buoyancy": "velocity"},
)
"""Velocity [dim, *faces] after a step with buoyancy [dim] of smoke [*cells]."""
