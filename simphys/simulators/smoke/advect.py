"""Advection: the fluid carries its own velocity, and smoke.

    u'(x) = u(x - dt u(x)),    s'(x) = s(x - dt u'(x))

semi-Lagrangian or by MacCormack's scheme; see sampling.py and maccormack.py, also for adjoints. A departure point
outside is moved to the side, where the value is that of the inflow or of a no-slip wall (see lattice.py). The adjoint
of self-advection is the sum of the adjoints of u as advected field and as advecting velocity. Source: Stam 1999; Selle,
Fedkiw, Kim, Liu and Rossignac 2008.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array
from simphys.substep import operation

from .lattice import smoke_lattice, velocity_lattices
from .model import Smoke
from .transport import ArrayPool, Transport

Out = Mapping[str, Array]
ARRAYS = 20
"""Approximate number of velocities in the workspace."""


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
    model: Smoke,
    velocity: Array,
    boundary_velocity: Array,
    adj_advected_velocity: Array,
    out: Out,
) -> tuple[Array, Array]:
    """Return adj_velocity and adj_boundary_velocity."""
    work, adj_boundary = _workspace(model), np.zeros(boundary_velocity.shape, boundary_velocity.dtype)
    work.load_velocity("", velocity, boundary_velocity)
    work.pool.get_velocity("adj_").fill(0)
    for each in work.velocity:
        components = each.lattice.components
        given = boundary_velocity.T[components]
        each.pull(adj_advected_velocity[components], given, adj_boundary.T[components])
    return work.collect_adj_velocity(adj_boundary, out.get("velocity")), adj_boundary


def push_velocity(
    model: Smoke, velocity: Array, boundary_velocity: Array, dvelocity: Array, dboundary_velocity: Array
) -> Array:
    """Return the tangent of the advected velocity."""
    work, out = _workspace(model), np.zeros_like(dvelocity)
    work.load_velocity("", velocity, boundary_velocity)
    work.load_velocity("d", dvelocity, dboundary_velocity)
    for each in work.velocity:
        components = each.lattice.components
        dmoved = each.push(boundary_velocity.T[components], dboundary_velocity.T[components])
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
    model: Smoke, smoke: Array, velocity: Array, boundary_smoke: Array, adj_advected_smoke: Array, out: Out
) -> tuple[Array, Array, Array]:
    """Return adj_smoke, adj_velocity and adj_boundary_smoke."""
    work, adj_boundary = _workspace(model), np.zeros(boundary_smoke.shape, boundary_smoke.dtype)
    lattice, adj_f = work.smoke.lattice, work.smoke.get_field("adj_")
    work.load_velocity("", velocity)
    work.load_smoke("", smoke, boundary_smoke)
    work.pool.get_velocity("adj_").fill(0)
    adj_f.fill(0)
    work.smoke.pull(adj_advected_smoke[None], boundary_smoke[None], adj_boundary[None])
    lattice.adj_extend(adj_f, adj_boundary[None])
    adj_smoke = out.get("smoke", np.empty_like(smoke))
    adj_smoke[...] = adj_f[lattice.inside][0]
    return adj_smoke, work.collect_adj_velocity(), adj_boundary


def push_smoke(
    model: Smoke,
    smoke: Array,
    velocity: Array,
    boundary_smoke: Array,
    dsmoke: Array,
    dvelocity: Array,
    dboundary_smoke: Array,
) -> Array:
    """Return the tangent of the advected smoke."""
    work = _workspace(model)
    work.load_velocity("", velocity)
    work.load_velocity("d", dvelocity)
    work.load_smoke("", smoke, boundary_smoke)
    work.load_smoke("d", dsmoke, dboundary_smoke)
    return work.smoke.push(boundary_smoke[None], dboundary_smoke[None])[work.smoke.lattice.inside][0].copy()


class _Workspace:
    """The transports of a model's quantities, and their extended arrays."""

    def __init__(self, model: Smoke) -> None:
        self.model, self.pool = model, ArrayPool(model)
        self.velocity = [Transport(self.pool, lattice, "u") for lattice in velocity_lattices(model)]
        self.smoke = Transport(self.pool, smoke_lattice(model), "smoke")
        self._zero_boundary = np.zeros((2 * model.dim, model.dim))
        self._averages = model.grid == "staggered"

    def load_velocity(self, kind: str, velocity: Array, boundary: Array | None = None) -> None:
        """Store a velocity with ghosts.

        Transport of smoke reads no ghosts beyond sides, so it gives no boundary. It reads ghosts only if velocities
        are averaged to the centres of cells.
        """
        u, given = self.pool.get_velocity(kind), (self._zero_boundary if boundary is None else boundary).T
        for each in self.velocity:
            lattice = each.lattice
            u[lattice.components][lattice.inside] = velocity[lattice.components][lattice.own]
            if boundary is not None or self._averages:
                lattice.extend(u[lattice.components], given[lattice.components])

    def collect_adj_velocity(self, adj_boundary: Array | None = None, out: Array | None = None) -> Array:
        """Reverse `load_velocity`: write the adjoint velocity to `out` and add to adj_boundary."""
        adj_u, given = (
            self.pool.get_velocity("adj_"),
            (np.zeros(self._zero_boundary.shape) if adj_boundary is None else adj_boundary).T,
        )
        out = _prepare_output(self.model, adj_u, out)
        for each in self.velocity:
            lattice = each.lattice
            if adj_boundary is not None or self._averages:
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
        out = np.empty((model.dim, *model.faces), like.dtype)
    if model.faces != model.cells:
        out.fill(0)
    return out


AdvectVelocity = operation(
    forward_velocity,
    adjoint=pull_velocity,
    tangent=push_velocity,
    results={"advected_velocity": "velocity"},
    name="AdvectVelocity",
    is_cheap=True,
    work_arrays=ARRAYS,
)
"""Velocity [dim, *faces] advected by itself for a step, with boundary_velocity [2 dim, dim]."""

AdvectSmoke = operation(
    forward_smoke,
    adjoint=pull_smoke,
    tangent=push_smoke,
    results={"advected_smoke": "smoke"},
    name="AdvectSmoke",
    work_arrays=ARRAYS,
)
"""Smoke [*cells] advected by velocity [dim, *faces] for a step, with boundary_smoke [2 dim]."""
