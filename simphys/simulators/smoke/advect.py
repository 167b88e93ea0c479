"""Advection: the fluid carries its own velocity, and smoke.

    u'(x) = u(x - dt u(x)),    s'(x) = s(x - dt u'(x))

semi-Lagrangian or by MacCormack's scheme; see sampling.py and maccormack.py, also for adjoints. A departure point
outside is moved to the side, where the value is that of the inflow or of a no-slip wall (see lattice.py). The adjoint
of self-advection is the sum of the adjoints of u as advected field and as advecting velocity. Source: Stam 1999; Selle,
Fedkiw, Kim, Liu and Rossignac 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.autograd import Context, Function, Tensor, runtime
from simphys.simulator import Array

from .lattice import smoke_lattice, velocity_lattices
from .model import Smoke
from .transport import ArrayPool, Transport


def forward_velocity(model: Smoke, velocity: Array, boundary_velocity: Array, *, out: Array | None = None) -> Array:
    """Advect a velocity [dim, *faces] [m/s] by itself, with boundary_velocity [2 dim, dim].

    `out` may be the velocity.
    """
    work = _workspace(model)
    work.load_velocity("", velocity, boundary_velocity)
    out = _prepare_output(model, velocity, out)
    for each in work.velocity:
        components = each.lattice.components
        out[components][each.lattice.own] = each.forward(boundary_velocity.T[components])[each.lattice.inside]
    return out


def pull_velocity(
    model: Smoke, velocity: Array, boundary_velocity: Array, adj: Array, *, out: Array | None = None
) -> tuple[Array, Array]:
    """Return adj_velocity and adj_boundary_velocity; `out` may be `adj`."""
    work, adj_boundary = _workspace(model), np.zeros_like(boundary_velocity)
    work.load_velocity("", velocity, boundary_velocity)
    work.pool.get_velocity("adj_").fill(0)
    for each in work.velocity:
        components = each.lattice.components
        each.pull(adj[components], boundary_velocity.T[components], adj_boundary.T[components])
    return work.collect_adj_velocity(adj_boundary, out), adj_boundary


def push_velocity(model: Smoke, velocity: Array, boundary_velocity: Array, dvelocity: Array, dboundary: Array) -> Array:
    """Return the tangent of the advected velocity."""
    work, out = _workspace(model), np.zeros_like(dvelocity)
    work.load_velocity("", velocity, boundary_velocity)
    work.load_velocity("d", dvelocity, dboundary)
    for each in work.velocity:
        components = each.lattice.components
        dmoved = each.push(boundary_velocity.T[components], dboundary.T[components])
        out[components][each.lattice.own] = dmoved[each.lattice.inside]
    return out


def forward_smoke(
    model: Smoke, smoke: Array, velocity: Array, boundary_smoke: Array, *, out: Array | None = None
) -> Array:
    """Advect smoke [*cells] by velocity [dim, *faces] [m/s], with boundary_smoke [2 dim]."""
    work, out = _workspace(model), np.empty_like(smoke) if out is None else out
    work.load_velocity("", velocity)
    work.load_smoke("", smoke, boundary_smoke)
    out[...] = work.smoke.forward(boundary_smoke[None])[work.smoke.lattice.inside][0]
    return out


def pull_smoke(
    model: Smoke, smoke: Array, velocity: Array, boundary_smoke: Array, adj: Array
) -> tuple[Array, Array, Array]:
    """Return adj_smoke, adj_velocity and adj_boundary_smoke."""
    work, adj_boundary = _workspace(model), np.zeros_like(boundary_smoke)
    lattice, adj_f = work.smoke.lattice, work.smoke.get_field("adj_")
    work.load_velocity("", velocity)
    work.load_smoke("", smoke, boundary_smoke)
    work.pool.get_velocity("adj_").fill(0)
    adj_f.fill(0)
    work.smoke.pull(adj[None], boundary_smoke[None], adj_boundary[None])
    lattice.adj_extend(adj_f, adj_boundary[None])
    return adj_f[lattice.inside][0].copy(), work.collect_adj_velocity(), adj_boundary


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
    work.load_velocity("", velocity)
    work.load_velocity("d", dvelocity)
    work.load_smoke("", smoke, boundary_smoke)
    work.load_smoke("d", dsmoke, dboundary)
    return work.smoke.push(boundary_smoke[None], dboundary[None])[work.smoke.lattice.inside][0].copy()


class AdvectVelocity(Function):
    """Velocity [dim, *faces] advected by itself for a step, with boundary_velocity [2 dim, dim]. Saves both inputs."""

    @staticmethod
    def forward(ctx: Context, model: Smoke, velocity: Tensor, boundary_velocity: Tensor) -> Array:
        ctx.model = model
        runtime.require_precision("AdvectVelocity", velocity, boundary_velocity)
        ctx.save_for_backward(velocity, boundary_velocity)
        return forward_velocity(model, velocity.data, boundary_velocity.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        velocity, boundary_velocity = _saved(ctx)
        return None, *pull_velocity(ctx.model, velocity, boundary_velocity, adj.data)

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Array:
        return push_velocity(ctx.model, *_saved(ctx), *tangents)


class AdvectSmoke(Function):
    """Smoke [*cells] advected by velocity [dim, *faces] for a step, with boundary_smoke [2 dim]. Saves all inputs."""

    @staticmethod
    def forward(ctx: Context, model: Smoke, smoke: Tensor, velocity: Tensor, boundary_smoke: Tensor) -> Array:
        ctx.model = model
        runtime.require_precision("AdvectSmoke", smoke, velocity, boundary_smoke)
        ctx.save_for_backward(smoke, velocity, boundary_smoke)
        return forward_smoke(model, smoke.data, velocity.data, boundary_smoke.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        smoke, velocity, boundary_smoke = _saved(ctx)
        return None, *pull_smoke(ctx.model, smoke, velocity, boundary_smoke, adj.data)

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Array:
        return push_smoke(ctx.model, *_saved(ctx), *tangents)


class _Workspace:
    """The transports of a model's quantities, and their extended arrays."""

    def __init__(self, model: Smoke) -> None:
        self.model, self.pool = model, ArrayPool(model)
        self.velocity = [Transport(self.pool, lattice, "u") for lattice in velocity_lattices(model)]
        self.smoke = Transport(self.pool, smoke_lattice(model), "smoke")
        self._zero_boundary = np.zeros((2 * model.dim, model.dim))

    def load_velocity(self, kind: str, velocity: Array, boundary: Array | None = None) -> None:
        """Store a velocity with ghosts. Transport of smoke reads no ghosts beyond sides, so it gives no boundary."""
        u, given = self.pool.get_velocity(kind), (self._zero_boundary if boundary is None else boundary).T
        for each in self.velocity:
            lattice = each.lattice
            u[lattice.components][lattice.inside] = velocity[lattice.components][lattice.own]
            lattice.extend(u[lattice.components], given[lattice.components])

    def collect_adj_velocity(self, adj_boundary: Array | None = None, out: Array | None = None) -> Array:
        """Reverse `load_velocity`: write the adjoint velocity to `out` and add to adj_boundary."""
        adj_u, given = (
            self.pool.get_velocity("adj_"),
            (np.zeros_like(self._zero_boundary) if adj_boundary is None else adj_boundary).T,
        )
        out = _prepare_output(self.model, adj_u, out)
        for each in self.velocity:
            lattice = each.lattice
            lattice.adj_extend(adj_u[lattice.components], given[lattice.components])
            out[lattice.components][lattice.own] = adj_u[lattice.components][lattice.inside]
        return out

    def load_smoke(self, kind: str, smoke: Array, boundary: Array) -> None:
        """Store smoke with ghosts."""
        field, lattice = self.smoke.get_field(kind), self.smoke.lattice
        field[lattice.inside] = smoke
        lattice.extend(field, boundary[None])


@runtime.cached(maxsize=4)
def _workspace(model: Smoke) -> _Workspace:
    return _Workspace(model)


def _prepare_output(model: Smoke, like: Array, out: Array | None) -> Array:
    """Return a velocity [dim, *faces] to write to, with 0 beyond the faces of its components."""
    if out is None:
        return np.zeros((model.dim, *model.faces), like.dtype)
    if model.faces != model.cells:
        out.fill(0)
    return out


def _saved(ctx: Context) -> list[Array]:
    return [saved.data for saved in ctx.saved_tensors]
