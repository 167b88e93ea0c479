"""Explicit diffusion of momentum by viscosity:

    u' = u + k A u,     k = dt nu / dx^2                (A u)_i = sum over neighbours j of (u_j - u_i)

nu viscosity [m^2/s]. A neighbour beyond a side is a ghost; with w the velocity of the side, boundary_velocity:

    closed          u_j = 2 w - u_i, so that the mean is the wall's velocity; with slip u_j = u_i
    inflow          u_j = 2 w - u_i
    open            u_j = u_i
    periodic        the entry at the opposite side

A normal component at its face on a closed or inflow side is given and does not change (M = 0 there, else 1). On a
collocated grid its ghost beyond a wall is u_j = -u_i, with or without slip. So u' = u + k M (A u + 2 c w), where c is 1
for ghosts that depend on w, else 0, and A is symmetric. Adjoint, with g = adj_u':

    adj_u = g + k A M g         adj_nu = dt/dx^2 sum_i g_i M (A u + 2 c w)_i         adj_w = 2 k c^T M g

Stable for k <= 1 / (2 dim), see stability.py. Source: the ghosts are those of Harlow and Welch 1965.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simphys.autograd import runtime
from simphys.simulator import Array
from simphys.substep import operation

from .faces import is_prescribed
from .lattice import Index, Lattice, extended_shape, velocity_lattices
from .model import Smoke


def forward(
    model: Smoke, velocity: Array, viscosity: Array, boundary_velocity: Array, out: Array | None = None
) -> Array:
    """Diffuse a velocity [dim, *faces] [m/s], with viscosity [] and boundary_velocity [2 dim, dim].

    `out` may be the velocity.
    """
    return _add(model, velocity, _diffusion_number(model, viscosity), velocity, boundary_velocity, out)


def pull(
    model: Smoke, velocity: Array, viscosity: Array, boundary_velocity: Array, adj_diffused_velocity: Array
) -> tuple[Array, Array, Array]:
    """Return adj_velocity, adj_viscosity [] and adj_boundary_velocity."""
    adj, k = adj_diffused_velocity, _diffusion_number(model, viscosity)
    adj_velocity, adj_boundary, adj_k = adj.copy(), np.zeros(boundary_velocity.shape, adj.dtype), 0.0
    adj_u = _extended(model, "adj_")
    adj_u.fill(0)
    for lattice, rate in _find_rates(model, velocity, boundary_velocity):
        each, g = adj_u[lattice.components], adj[lattice.components][lattice.own]
        adj_k += float((g * rate).sum())
        free = _zero_given_faces(model, lattice, k * g)
        each[lattice.inside] -= 2 * model.dim * free
        for neighbours in _shift(lattice):
            each[neighbours] += free
        lattice.adj_extend(each, adj_boundary.T[lattice.components])
        adj_velocity[lattice.components][lattice.own] += each[lattice.inside]
    return adj_velocity, np.asarray(model.dt / model.spacing**2 * adj_k, adj.dtype), adj_boundary


def push(
    model: Smoke, velocity: Array, viscosity: Array, boundary_velocity: Array,
    dvelocity: Array, dviscosity: Array, dboundary_velocity: Array,
) -> Array:  # fmt: skip
    """Return the tangent of the velocity."""
    moved = _add(model, dvelocity, _diffusion_number(model, viscosity), dvelocity, dboundary_velocity)
    return _add(model, moved, _diffusion_number(model, dviscosity), velocity, boundary_velocity, moved)


def _add(model: Smoke, base: Array, k: float, velocity: Array, boundary: Array, out: Array | None = None) -> Array:
    """Compute base + k M (A u + 2 c w); `out` may be the base."""
    out = np.empty_like(base) if out is None else out
    if out is not base:
        np.copyto(out, base)
    for lattice, rate in _find_rates(model, velocity, boundary):
        out[lattice.components][lattice.own] += k * rate
    return out


def _find_rates(model: Smoke, velocity: Array, boundary: Array) -> Iterator[tuple[Lattice, Array]]:
    """Yield M (A u + 2 c w) of each lattice, from sums over neighbours in arrays that are extended by ghosts."""
    u = _extended(model, "")
    for lattice in velocity_lattices(model):
        each = u[lattice.components]
        each[lattice.inside] = velocity[lattice.components][lattice.own]
        lattice.extend(each, boundary.T[lattice.components])
        rate = np.zeros_like(each[lattice.inside])
        for neighbours in _shift(lattice):
            rate += each[neighbours] - each[lattice.inside]
        yield lattice, _zero_given_faces(model, lattice, rate)


def _shift(lattice: Lattice) -> Iterator[Index]:
    """Yield the index of the neighbours of all values in each direction."""
    fields, *inside = lattice.inside
    for axis, n in enumerate(lattice.shape):
        for first in (0, 2):
            yield (fields, *inside[:axis], slice(first, first + n), *inside[axis + 1 :])


def _zero_given_faces(model: Smoke, lattice: Lattice, values: Array) -> Array:
    """Set values of a lattice to 0 at given faces."""
    component = lattice.components.start
    for side in (2 * component, 2 * component + 1):
        if is_prescribed(model, side):
            np.moveaxis(values, 1 + component, 0)[-(side % 2)] = 0
    return values


@runtime.cached(maxsize=8)
def _extended(model: Smoke, kind: str) -> Array:
    """Make an extended velocity, or its adjoint for the kind "adj_", initially zero."""
    return np.zeros((model.dim, *extended_shape(model)), runtime.real_dtype())


def _diffusion_number(model: Smoke, viscosity: Array) -> float:
    """Return k."""
    return model.dt / model.spacing**2 * float(viscosity)


Diffuse = operation(
    forward,
    adjoint=pull,
    tangent=push,
    results={"diffused_velocity": "velocity"},
    name="Diffuse",
    is_cheap=True,
    idle={"viscosity": "velocity"},
)
"""Velocity [dim, *faces] after a step with viscosity [] and boundary_velocity [2 dim, dim]."""
