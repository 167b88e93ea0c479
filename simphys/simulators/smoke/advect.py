"""Advection: the fluid carries its own velocity, and smoke.

    u'(x) = u(x - dt u(x)),    s'(x) = s(x - dt u'(x))

semi-Lagrangian or by MacCormack's scheme; see sampling.py and maccormack.py, also for adjoints. A departure point
outside is moved to the side, where the value is that of the inflow or of a no-slip wall (see lattice.py). The adjoint
of self-advection is the sum of the adjoints of u as advected field and as advecting velocity. Source: Stam 1999; Selle,
Fedkiw, Kim, Liu and Rossignac 2008.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor
from simphys.simulator import Array

from .lattice import smoke_lattice, velocity_lattices
from .model import Smoke
from .transport import Space, Transport


def forward_velocity(model: Smoke, velocity: Array, boundary_velocity: Array, *, out: Array | None = None) -> Array:
    """Advect a velocity [dim, *faces] [m/s] by itself, with boundary_velocity [2 dim, dim].

    `out` may be the velocity.
    """
    work = _workspace(model)
    work.put_velocity("", velocity, boundary_velocity)
    out = _cleared(model, velocity, out)
    for each in work.velocity:
        members = each.lattice.members
        out[members][each.lattice.own] = each.forward(boundary_velocity.T[members])[each.lattice.inside]
    return out


def pull_velocity(
    model: Smoke, velocity: Array, boundary_velocity: Array, adj: Array, *, out: Array | None = None
) -> tuple[Array, Array]:
    """Return adj_velocity and adj_boundary_velocity; `out` may be `adj`."""
    work, adj_boundary = _workspace(model), np.zeros_like(boundary_velocity)
    work.put_velocity("", velocity, boundary_velocity)
    work.space.velocity("adj_").fill(0)
    for each in work.velocity:
        members = each.lattice.members
        each.pull(adj[members], boundary_velocity.T[members], adj_boundary.T[members])
    return work.take_adj_velocity(adj_boundary, out), adj_boundary


def push_velocity(model: Smoke, velocity: Array, boundary_velocity: Array, dvelocity: Array, dboundary: Array) -> Array:
    """Return the tangent of the advected velocity."""
    work, out = _workspace(model), np.zeros_like(dvelocity)
    work.put_velocity("", velocity, boundary_velocity)
    work.put_velocity("d", dvelocity, dboundary)
    for each in work.velocity:
        members = each.lattice.members
        dmoved = each.push(boundary_velocity.T[members], dboundary.T[members])
        out[members][each.lattice.own] = dmoved[each.lattice.inside]
    return out


def forward_smoke(
    model: Smoke, smoke: Array, velocity: Array, boundary_smoke: Array, *, out: Array | None = None
) -> Array:
    """Advect smoke [*cells] by velocity [dim, *faces] [m/s], with boundary_smoke [2 dim]."""
    work, out = _workspace(model), np.empty_like(smoke) if out is None else out
    work.put_velocity("", velocity)
    work.put_smoke("", smoke, boundary_smoke)
    out[...] = work.smoke.forward(boundary_smoke[None])[work.smoke.lattice.inside][0]
    return out


def pull_smoke(
    model: Smoke, smoke: Array, velocity: Array, boundary_smoke: Array, adj: Array
) -> tuple[Array, Array, Array]:
    """Return adj_smoke, adj_velocity and adj_boundary_smoke."""
    work, adj_boundary = _workspace(model), np.zeros_like(boundary_smoke)
    lattice, adj_f = work.smoke.lattice, work.smoke.field("adj_")
    work.put_velocity("", velocity)
    work.put_smoke("", smoke, boundary_smoke)
    work.space.velocity("adj_").fill(0)
    adj_f.fill(0)
    work.smoke.pull(adj[None], boundary_smoke[None], adj_boundary[None])
    lattice.adj_extend(adj_f, adj_boundary[None])
    return adj_f[lattice.inside][0].copy(), work.take_adj_velocity(), adj_boundary


def push_smoke(
    model: Smoke,
    smoke: Array,
    velocity: Array,
    boundary_smoke: Array,
    dsmoke: Array,
    dvelocity: Array,
    dboundary: Array,
) -> Array:
    """Return the tangent of the advected smoke."""
    work = _workspace(model)
    work.put_velocity("", velocity)
    work.put_velocity("d", dvelocity)
    work.put_smoke("", smoke, boundary_smoke)
    work.put_smoke("d", dsmoke, dboundary)
    return work.smoke.push(boundary_smoke[None], dboundary[None])[work.smoke.lattice.inside][0].copy()


class AdvectVelocity(Function):
    """Velocity [dim, *faces] advected by itself for a step, with boundary_velocity [2 dim, dim]. Saves both inputs."""

    @staticmethod
    def forward(ctx: Context, model: Smoke, velocity: Tensor, boundary_velocity: Tensor) -> Array:
        ctx.model = model
        ctx.save_for_backward(velocity, boundary_velocity)
        return forward_velocity(model, velocity.data, boundary_velocity.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        velocity, boundary_velocity = _saved(ctx)
        return None, *pull_velocity(ctx.model, velocity, boundary_velocity, adj.data)

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Array:
        return push_velocity(ctx.model, *_saved(ctx), *_whole(ctx, tangents))


class AdvectSmoke(Function):
    """Smoke [*cells] advected by velocity [dim, *faces] for a step, with boundary_smoke [2 dim]. Saves all inputs."""

    @staticmethod
    def forward(ctx: Context, model: Smoke, smoke: Tensor, velocity: Tensor, boundary_smoke: Tensor) -> Array:
        ctx.model = model
        ctx.save_for_backward(smoke, velocity, boundary_smoke)
        return forward_smoke(model, smoke.data, velocity.data, boundary_smoke.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        smoke, velocity, boundary_smoke = _saved(ctx)
        return None, *pull_smoke(ctx.model, smoke, velocity, boundary_smoke, adj.data)

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Array:
        return push_smoke(ctx.model, *_saved(ctx), *_whole(ctx, tangents))


class _Workspace:
    """The transports of a model's quantities, and their extended arrays."""

    def __init__(self, model: Smoke) -> None:
        self.model, self.space = model, Space(model)
        self.velocity = [Transport(self.space, lattice, "u") for lattice in velocity_lattices(model)]
        self.smoke = Transport(self.space, smoke_lattice(model), "smoke")
        self._nothing = np.zeros((2 * model.dim, model.dim))

    def put_velocity(self, kind: str, velocity: Array, boundary: Array | None = None) -> None:
        """Store a velocity with ghosts. Transport of smoke reads no ghosts beyond sides, so it gives no boundary."""
        u, given = self.space.velocity(kind), (self._nothing if boundary is None else boundary).T
        for each in self.velocity:
            lattice = each.lattice
            u[lattice.members][lattice.inside] = velocity[lattice.members][lattice.own]
            lattice.extend(u[lattice.members], given[lattice.members])

    def take_adj_velocity(self, adj_boundary: Array | None = None, out: Array | None = None) -> Array:
        """Reverse `put_velocity`: write the adjoint velocity to `out` and add to adj_boundary."""
        adj_u, given = (
            self.space.velocity("adj_"),
            (np.zeros_like(self._nothing) if adj_boundary is None else adj_boundary).T,
        )
        out = _cleared(self.model, adj_u, out)
        for each in self.velocity:
            lattice = each.lattice
            lattice.adj_extend(adj_u[lattice.members], given[lattice.members])
            out[lattice.members][lattice.own] = adj_u[lattice.members][lattice.inside]
        return out

    def put_smoke(self, kind: str, smoke: Array, boundary: Array) -> None:
        """Store smoke with ghosts."""
        field, lattice = self.smoke.field(kind), self.smoke.lattice
        field[lattice.inside] = smoke
        lattice.extend(field, boundary[None])


@functools.lru_cache(maxsize=4)
def _workspace(model: Smoke) -> _Workspace:
    return _Workspace(model)


def _cleared(model: Smoke, like: Array, out: Array | None) -> Array:
    """Return a velocity [dim, *faces] to write to, with 0 beyond the faces of its components."""
    if out is None:
        return np.zeros((model.dim, *model.faces), like.dtype)
    if model.faces != model.cells:
        out.fill(0)
    return out


def _saved(ctx: Context) -> list[Array]:
    return [saved.data for saved in ctx.saved_tensors]


def _whole(ctx: Context, tangents: tuple[Any, ...]) -> list[Array]:
    """Replace missing tangents by zeros."""
    return [np.zeros_like(s) if d is None else d for d, s in zip(tangents, _saved(ctx), strict=True)]
