"""The two walls of an axis, at the nodes i < margin and i > cells - margin, with the contact of contact.py.

The walls are at rest, and their normals into the domain are e and -e of the axis. So only the adjoints of velocity and
friction from contact.py matter.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import contact
from .stages import accumulate


@functools.cache
@no_type_check
def stage(real: Any, dim: int, axis: int, cells: int, margin: int, walls: tuple[str, str]) -> SimpleNamespace:
    """The effect of the lower and the upper wall on a node; their friction is env[dim] (see grid.py)."""
    vec = ti.types.vector(dim, real)
    laws = [contact.functions(real, dim, wall) for wall in walls]
    has_friction = "friction" in walls

    @ti.func
    def normal(upper: ti.template()) -> vec:
        return vec([ti.static((j == axis) * (1.0 - 2.0 * upper)) for j in ti.static(range(dim))])

    @ti.func
    def is_at(upper: ti.template(), cell):
        return cell[axis] > ti.static(cells - margin) if ti.static(upper) else cell[axis] < margin

    @ti.func
    def read_friction(env: ti.template()) -> real:
        return env[dim] if ti.static(has_friction) else 0.0

    @ti.func
    def velocity(cell, u: vec, env: ti.template(), sizes: ti.template(), dx: real, skin: real) -> vec:
        new = u
        for upper in ti.static(range(2)):
            if is_at(upper, cell):
                new = ti.static(laws[upper].velocity)(u, normal(upper), read_friction(env))
        return new

    @ti.func
    def adj_velocity(
        cell, u: vec, g: vec, env: ti.template(), sizes: ti.template(), dx: real, skin: real,
        acc: ti.template(), wanted: ti.template(), atomic: ti.template(),
    ) -> vec:  # fmt: skip
        adj_u = g
        for upper in ti.static(range(2)):
            if is_at(upper, cell):
                adj_w, _, adj_mu = ti.static(laws[upper].adj)(u, normal(upper), read_friction(env), g)
                adj_u = adj_w
                if ti.static(wanted and has_friction):
                    accumulate(acc, dim, 1, ti.Vector([adj_mu]), atomic)
        return adj_u

    @ti.func
    def jvp_velocity(
        cell, u: vec, du: vec, env: ti.template(), denv: ti.template(), sizes: ti.template(), dx: real, skin: real
    ) -> vec:
        dnew, mu, dmu = du, read_friction(env), read_friction(denv)
        for upper in ti.static(range(2)):
            if is_at(upper, cell):
                dnew = ti.static(laws[upper].jvp)(u, normal(upper), mu, du, vec(0.0), dmu)
        return dnew

    return SimpleNamespace(velocity=velocity, adj=adj_velocity, jvp=jvp_velocity)
