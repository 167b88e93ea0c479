"""Advection: the fluid carries its own velocity, and smoke, along.

    u'(x) = u(x - dt u(x)),    s'(x) = s(x - dt u'(x))

semi-Lagrangian or by MacCormack's scheme, see sampling.py for both and for their adjoints. Points of departure outside
are moved to the side, where the value is that of the side (see lattice.py): of what enters, of a wall without slip. The
adjoint of self-advection is the sum of those of u as what is moved, and as what moves it. Source: Stam 1999; Selle,
Fedkiw, Kim, Liu and Rossignac 2008.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..autograd import Context, Function, Tensor, runtime
from ..simulator import Array
from .lattice import Lattice, extended_shape, smoke_lattice, velocity_lattices
from .model import Smoke
from .sampling import kernels
from .work import Work

POINT_US = 0.008
"""Serial cost [us] of one value."""


def forward_velocity(
    model: Smoke, velocity: Array, boundary_velocity: Array, *, out: Array | None = None, work: Work | None = None
) -> Array:
    """The velocity [dim, *faces] [m/s] that arrives at the place of each, with boundary_velocity [2 dim, dim].

    `out` may be the velocity.
    """
    work = work or Work()
    u = _extended_velocity(model, "u", velocity, boundary_velocity, work)
    out = _cleared(model, velocity, out)
    for lattice in velocity_lattices(model):
        moved = _moved(model, lattice, u[lattice.members], u, boundary_velocity.T[lattice.members], work)
        out[lattice.members][lattice.own] = moved[lattice.inside]
    return out


def pull_velocity(
    model: Smoke, velocity: Array, boundary_velocity: Array, adj: Array,
    *, out: Array | None = None, work: Work | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """adj_velocity and adj_boundary_velocity; `out` may be `adj`."""
    work = work or Work()
    u = _extended_velocity(model, "u", velocity, boundary_velocity, work)
    adj_u, adj_boundary = work.zeros("adj_u", u.shape), np.zeros_like(boundary_velocity)
    for lattice in velocity_lattices(model):
        members = lattice.members
        _adj_moved(
            model, lattice, u[members], u, boundary_velocity.T[members], adj[members],
            adj_u[members], adj_u, adj_boundary.T[members], work,
        )  # fmt: skip
    return _adj_extended_velocity(model, adj_u, adj_boundary, out), adj_boundary


def push_velocity(
    model: Smoke, velocity: Array, boundary_velocity: Array, dvelocity: Array, dboundary: Array,
    *, work: Work | None = None,
) -> Array:  # fmt: skip
    """The tangent of the velocity."""
    work, out = work or Work(), np.zeros_like(dvelocity)
    u = _extended_velocity(model, "u", velocity, boundary_velocity, work)
    du = _extended_velocity(model, "du", dvelocity, dboundary, work)
    for lattice in velocity_lattices(model):
        members, given, dgiven = lattice.members, boundary_velocity.T, dboundary.T
        dmoved = _jvp_moved(model, lattice, u[members], u, given[members], du[members], du, dgiven[members], work)
        out[members][lattice.own] = dmoved[lattice.inside]
    return out


def forward_smoke(
    model: Smoke, smoke: Array, velocity: Array, boundary_smoke: Array,
    *, out: Array | None = None, work: Work | None = None,
) -> Array:  # fmt: skip
    """The smoke [*cells] that arrives in each cell by velocity [dim, *faces] [m/s], with boundary_smoke [2 dim]."""
    work, lattice = work or Work(), smoke_lattice(model)
    out = np.empty_like(smoke) if out is None else out
    u = _extended_velocity(model, "u", velocity, None, work)
    f = _extended(model, "f", lattice, smoke[None], boundary_smoke[None], work)
    out[:] = _moved(model, lattice, f, u, boundary_smoke[None], work)[lattice.inside][0]
    return out


def pull_smoke(
    model: Smoke, smoke: Array, velocity: Array, boundary_smoke: Array, adj: Array, *, work: Work | None = None
) -> tuple[Array, Array, Array]:
    """adj_smoke, adj_velocity and adj_boundary_smoke."""
    work, lattice = work or Work(), smoke_lattice(model)
    u = _extended_velocity(model, "u", velocity, None, work)
    f = _extended(model, "f", lattice, smoke[None], boundary_smoke[None], work)
    adj_f, adj_u, adj_boundary = work.zeros("adj_f", f.shape), work.zeros("adj_u", u.shape), np.zeros_like(boundary_smoke)
    _adj_moved(model, lattice, f, u, boundary_smoke[None], adj[None], adj_f, adj_u, adj_boundary[None], work)
    lattice.adj_extend(adj_f, adj_boundary[None])
    return adj_f[lattice.inside][0].copy(), _adj_extended_velocity(model, adj_u, None, None), adj_boundary


def push_smoke(
    model: Smoke, smoke: Array, velocity: Array, boundary_smoke: Array, dsmoke: Array, dvelocity: Array,
    dboundary: Array, *, work: Work | None = None,
) -> Array:  # fmt: skip
    """The tangent of the smoke."""
    work, lattice = work or Work(), smoke_lattice(model)
    u = _extended_velocity(model, "u", velocity, None, work)
    du = _extended_velocity(model, "du", dvelocity, None, work)
    f = _extended(model, "f", lattice, smoke[None], boundary_smoke[None], work)
    df = _extended(model, "df", lattice, dsmoke[None], dboundary[None], work)
    dmoved = _jvp_moved(model, lattice, f, u, boundary_smoke[None], df, du, dboundary[None], work)
    return dmoved[lattice.inside][0].copy()


class AdvectVelocity(Function):
    """Velocity [dim, *faces] moved by itself for a step, with boundary_velocity [2 dim, dim]. Saved: both."""

    @staticmethod
    def forward(ctx: Context, model: Smoke, velocity: Tensor, boundary_velocity: Tensor) -> Array:
        ctx.model = model
        ctx.save_for_backward(velocity, boundary_velocity)
        return forward_velocity(model, velocity.data, boundary_velocity.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        return None, *pull_velocity(ctx.model, *_saved(ctx), adj.data)

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Array:
        return push_velocity(ctx.model, *_saved(ctx), *_whole(ctx, tangents))


class AdvectSmoke(Function):
    """Smoke [*cells] moved by velocity [dim, *faces] for a step, with boundary_smoke [2 dim]. Saved: all three."""

    @staticmethod
    def forward(ctx: Context, model: Smoke, smoke: Tensor, velocity: Tensor, boundary_smoke: Tensor) -> Array:
        ctx.model = model
        ctx.save_for_backward(smoke, velocity, boundary_smoke)
        return forward_smoke(model, smoke.data, velocity.data, boundary_smoke.data)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Any, ...]:
        return None, *pull_smoke(ctx.model, *_saved(ctx), adj.data)

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> Array:
        return push_smoke(ctx.model, *_saved(ctx), *_whole(ctx, tangents))


def _saved(ctx: Context) -> list[Array]:
    return [saved.data for saved in ctx.saved_tensors]


def _whole(ctx: Context, tangents: tuple[Any, ...]) -> list[Array]:
    """Tangents, zero where there is none."""
    return [np.zeros_like(s) if d is None else d for d, s in zip(tangents, _saved(ctx), strict=True)]


# --- one lattice: f [fields, *extended] along u [dim, *extended]


def _moved(model: Smoke, lattice: Lattice, f: Array, u: Array, given: Array, work: Work) -> Array:
    """What arrives, without ghosts."""
    loops, h = _kernels(model, lattice), model.dt / model.spacing
    arguments = f.reshape(-1), u.reshape(-1), *_arguments(lattice, u)
    moved = work.array("moved", f.shape)
    loops.sample(*arguments, h, moved.reshape(-1))
    if model.advection == "semi_lagrangian":
        return moved
    lattice.extend(moved, given)
    corrected = work.array("corrected", f.shape)
    loops.correct(arguments[0], moved.reshape(-1), *arguments[1:], h, corrected.reshape(-1))
    return corrected


def _adj_moved(
    model: Smoke, lattice: Lattice, f: Array, u: Array, given: Array, adj: Array,
    adj_f: Array, adj_u: Array, adj_given: Array, work: Work,
) -> None:  # fmt: skip
    """Adds to adj_f, adj_u, both extended, and to adj_given, from `adj` on the lattice's own array."""
    loops, h = _kernels(model, lattice), model.dt / model.spacing
    arguments = f.reshape(-1), u.reshape(-1), *_arguments(lattice, u)
    g = work.array("g", f.shape)
    g[lattice.inside] = adj[lattice.own]
    if model.advection == "maccormack":
        moved, adj_moved = work.array("moved", f.shape), work.zeros("adj_moved", f.shape)
        loops.sample(*arguments, h, moved.reshape(-1))
        lattice.extend(moved, given)
        loops.adj_correct(
            arguments[0], moved.reshape(-1), *arguments[1:], h, g.reshape(-1),
            adj_f.reshape(-1), adj_moved.reshape(-1), adj_u.reshape(-1),
        )  # fmt: skip
        lattice.adj_extend(adj_moved, adj_given)
        g = adj_moved
    loops.adj_sample(*arguments, h, g.reshape(-1), adj_f.reshape(-1), adj_u.reshape(-1))


def _jvp_moved(
    model: Smoke, lattice: Lattice, f: Array, u: Array, given: Array, df: Array, du: Array, dgiven: Array, work: Work
) -> Array:
    loops, h = _kernels(model, lattice), model.dt / model.spacing
    arguments = f.reshape(-1), u.reshape(-1), *_arguments(lattice, u)
    dmoved = work.array("dmoved", f.shape)
    loops.jvp_sample(*arguments, h, df.reshape(-1), du.reshape(-1), dmoved.reshape(-1))
    if model.advection == "semi_lagrangian":
        return dmoved
    moved, dcorrected = work.array("moved", f.shape), work.array("dcorrected", f.shape)
    loops.sample(*arguments, h, moved.reshape(-1))
    lattice.extend(moved, given)
    lattice.extend(dmoved, dgiven)
    loops.jvp_correct(
        arguments[0], moved.reshape(-1), *arguments[1:], h,
        df.reshape(-1), dmoved.reshape(-1), du.reshape(-1), dcorrected.reshape(-1),
    )  # fmt: skip
    return dcorrected


def _extended(model: Smoke, name: str, lattice: Lattice, values: Array, given: Array, work: Work) -> Array:
    """Values [1, *cells] with ghosts."""
    extended = work.array(name, (1, *extended_shape(model)))
    extended[lattice.inside] = values
    lattice.extend(extended, given)
    return extended


def _extended_velocity(model: Smoke, name: str, velocity: Array, boundary: Array | None, work: Work) -> Array:
    """A velocity with ghosts; nobody looks at given ones where no boundary velocity is given."""
    u = work.array(name, (model.dim, *extended_shape(model)))
    given = np.zeros((2 * model.dim, model.dim), velocity.dtype) if boundary is None else boundary
    for lattice in velocity_lattices(model):
        u[lattice.members][lattice.inside] = velocity[lattice.members][lattice.own]
        lattice.extend(u[lattice.members], given.T[lattice.members])
    return u


def _adj_extended_velocity(model: Smoke, adj_u: Array, adj_boundary: Array | None, out: Array | None) -> Array:
    """The reverse, which writes to `out` and adds to adj_boundary."""
    out = _cleared(model, adj_u, out)
    given = np.zeros((2 * model.dim, model.dim), adj_u.dtype) if adj_boundary is None else adj_boundary
    for lattice in velocity_lattices(model):
        lattice.adj_extend(adj_u[lattice.members], given.T[lattice.members])
        out[lattice.members][lattice.own] = adj_u[lattice.members][lattice.inside]
    return out


def _cleared(model: Smoke, like: Array, out: Array | None) -> Array:
    """A velocity [dim, *faces] to be written, 0 beyond the faces of its components."""
    if out is None:
        return np.zeros((model.dim, *model.faces), like.dtype)
    if model.faces != model.cells:
        out.fill(0)
    return out


def _arguments(lattice: Lattice, u: Array) -> tuple[Any, ...]:
    return lattice.places, lattice.frame, lattice.lines, u[0].size


def _kernels(model: Smoke, lattice: Lattice) -> SimpleNamespace:
    points = lattice.fields * lattice.lines * lattice.shape[-1]
    staggered = model.grid == "staggered"
    return kernels(runtime.real(), model.dim, staggered, lattice.fields, runtime.parallel(POINT_US * points))
