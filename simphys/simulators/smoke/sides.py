"""Normal velocity at sides: 0 at faces on a closed side, boundary_velocity on an inflow side.

    u'_a = 0 (closed), w_a (inflow)     at faces of component a on a side normal to axis a;     u' = u elsewhere

On a collocated grid no velocity entry is on a side, and nothing is done here; the ghosts of diffuse.py and project.py
impose the velocity at sides. Open and periodic sides are unconstrained. Adjoint, with g = adj_u':

    adj_u = 0 at prescribed faces, else g              adj_w_a = sum of g_a over the faces of an inflow side
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simphys.simulator import Array
from simphys.substep import operation

from .faces import is_prescribed, side_index
from .model import Smoke


def forward(model: Smoke, velocity: Array, boundary_velocity: Array, out: Array | None = None) -> Array:
    """Prescribe the normal velocity at sides, by boundary_velocity [2 dim, dim] [m/s]; `out` may be the velocity."""
    if out is None:
        out = velocity.copy()
    elif out is not velocity:
        out[:] = velocity
    for side, faces, enters in _prescribed_sides(model):
        out[faces] = boundary_velocity[side, side // 2] if enters else 0
    return out


def pull(model: Smoke, adj_prescribed_velocity: Array) -> tuple[Array, Array]:
    """Return adj_velocity and adj_boundary_velocity."""
    adj = adj_prescribed_velocity
    adj_velocity, adj_boundary = adj.copy(), np.zeros((2 * model.dim, model.dim), adj.dtype)
    for side, faces, enters in _prescribed_sides(model):
        if enters:
            adj_boundary[side, side // 2] = adj[faces].sum()
        adj_velocity[faces] = 0
    return adj_velocity, adj_boundary


def push(model: Smoke, dvelocity: Array, dboundary_velocity: Array) -> Array:
    """Return the tangent of the velocity; the map is linear."""
    return forward(model, dvelocity, dboundary_velocity)


def _prescribed_sides(model: Smoke) -> Iterator[tuple[int, tuple[Any, ...], bool]]:
    """Yield sides with prescribed normal velocity, the index of their faces, and True for an inflow."""
    for side, kind in enumerate(model.boundaries):
        if is_prescribed(model, side):
            yield side, side_index(model, side // 2, side), kind == "inflow"


ApplySides = operation(
    forward,
    adjoint=pull,
    tangent=push,
    results={"prescribed_velocity": "velocity"},
    name="ApplySides",
    is_cheap=True,
)
"""Velocity [dim, *faces] with normal components at sides prescribed by boundary_velocity [2 dim, dim]."""
