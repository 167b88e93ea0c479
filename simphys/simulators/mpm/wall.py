"""The two walls of an axis, at the nodes i < margin and i > cells - margin, with the contact of contact.py.

The walls are at rest, and their normals into the domain are e and -e of the axis. So only the adjoints of velocity and
friction from contact.py matter.
"""

import functools
from typing import Any

from simphys.autograd import runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element

from . import contact


@functools.cache
def walls(axis: int, lower: str, upper: str) -> Any:
    """Declare the effect of the two walls of an axis, with these contacts, on the velocity of each node."""
    pair = lower, upper

    @element
    def stop(u, mu, cell, margin, end):
        new = u
        for side in ti.static(range(2)):
            if margin > cell[axis] if ti.static(side == 0) else cell[axis] > end:
                new = ti.static(contact.functions(runtime.real(), u.n, pair[side]).velocity)(
                    u, inward(u, axis, side), mu
                )
        return new

    @stop.adjoint
    def adj_stop(u, mu, cell, margin, end, adj_u):
        adj, adj_mu = adj_u, 0 * mu
        for side in ti.static(range(2)):
            if margin > cell[axis] if ti.static(side == 0) else cell[axis] > end:
                adj_w, _, adj_friction = ti.static(contact.functions(runtime.real(), u.n, pair[side]).adj)(
                    u, inward(u, axis, side), mu, adj_u
                )
                adj, adj_mu = adj_w, adj_friction
        return adj, adj_mu

    @stop.tangent
    def jvp_stop(u, mu, cell, margin, end, du, dmu):
        new = du
        for side in ti.static(range(2)):
            if margin > cell[axis] if ti.static(side == 0) else cell[axis] > end:
                new = ti.static(contact.functions(runtime.real(), u.n, pair[side]).jvp)(
                    u, inward(u, axis, side), mu, du, 0 * u, dmu
                )
        return new

    return per_element(
        stop,
        over="cells",
        own={"u": "velocity"},
        shared={"mu": "wall_friction"},
        constant={"margin": "margin", "end": "end"},
        index="cell",
        results={"velocity": "u"},
    )


@ti.func
def inward(u, axis: ti.template(), side: ti.template()):
    """Return the normal of a wall of an axis: the lower one for side 0, else the upper one."""
    n = 0 * u
    n[axis] = 1.0 - 2.0 * side
    return n
