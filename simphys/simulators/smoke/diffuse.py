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

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array
from simphys.substep import operation

from .faces import GIVEN, WALL, WRAP, is_prescribed, layout, side_index, work_us
from .model import Smoke


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The element function along one direction of an axis."""
    pair = ti.types.vector(2, real)

    @ti.func
    def neighbour(e, n, kind, step):
        """Return offset and weight of the neighbour of an entry, `e` entries from a side, and the weight of w."""
        off = -step
        weights = pair([1.0, 0.0])
        if e == 0:
            off = ti.select(kind == WRAP, (n - 1) * step, 0)
            weights = pair([ti.select(kind == WRAP, 1.0, 0.0), ti.select(kind == WALL, 2.0, 0.0)])
        return off, weights[0], weights[1]

    return SimpleNamespace(neighbour=neighbour)


@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """The loop over the entries of a velocity, f0, f1, f2 along the axes; see faces.py for the table."""
    f = functions(real)
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def add_laplace(
        base: reals, x: reals, walls: reals, k: real, fixed: ti.i32, table: integers, components: ti.i32,
        f0: ti.i32, f1: ti.i32, f2: ti.i32, out: reals,
    ):  # fmt: skip
        """Compute base + k (A x + c walls); with `fixed`, given faces keep the base."""
        ti.loop_config(serialize=not parallel)
        for row in range(components * f0 * f1):
            c, i, j = row // (f0 * f1), (row // f1) % f0, row % f1
            t, w = 9 * c, 6 * c
            n0, n1, n2 = table[t], table[t + 1], table[t + 2]
            own = i < n0 and j < n1
            held = (
                (i == 0 and table[t + 3] == GIVEN) or (i == n0 - 1 and table[t + 4] == GIVEN)
                or (j == 0 and table[t + 5] == GIVEN) or (j == n1 - 1 and table[t + 6] == GIVEN)
            )  # fmt: skip
            d0, p0, q0 = f.neighbour(i, n0, table[t + 3], f1 * f2)
            d1, p1, q1 = f.neighbour(n0 - 1 - i, n0, table[t + 4], -f1 * f2)
            d2, p2, q2 = f.neighbour(j, n1, table[t + 5], f2)
            d3, p3, q3 = f.neighbour(n1 - 1 - j, n1, table[t + 6], -f2)
            q = q0 + q1 + q2 + q3
            ghosts = q0 * walls[w] + q1 * walls[w + 1] + q2 * walls[w + 2] + q3 * walls[w + 3]
            for l in range(f2):  # noqa: E741
                at = row * f2 + l
                value = base[at]
                if own and l < n2:
                    ends = (l == 0 and table[t + 7] == GIVEN) or (l == n2 - 1 and table[t + 8] == GIVEN)
                    if not (fixed and (held or ends)):
                        d4, p4, q4 = f.neighbour(l, n2, table[t + 7], 1)
                        d5, p5, q5 = f.neighbour(n2 - 1 - l, n2, table[t + 8], -1)
                        centre = x[at]
                        value += k * (
                            p0 * (x[at + d0] - centre) + p1 * (x[at + d1] - centre)
                            + p2 * (x[at + d2] - centre) + p3 * (x[at + d3] - centre)
                            + p4 * (x[at + d4] - centre) + p5 * (x[at + d5] - centre)
                            + (ghosts - q * centre)
                            + q4 * (walls[w + 4] - centre) + q5 * (walls[w + 5] - centre)
                        )  # fmt: skip
                out[at] = value

    return SimpleNamespace(add_laplace=add_laplace)


def forward(
    model: Smoke, velocity: Array, viscosity: Array, boundary_velocity: Array, out: Array | None = None
) -> Array:
    """Diffuse a velocity [dim, *faces] [m/s], with viscosity [] and boundary_velocity [2 dim, dim].

    `out` must not be the velocity.
    """
    walls, k = _ghost_velocities(model, boundary_velocity), _diffusion_number(model, viscosity)
    return _add_laplace(model, velocity, velocity, walls, k, out=out)


def pull(
    model: Smoke, velocity: Array, viscosity: Array, boundary_velocity: Array, adj_diffused_velocity: Array
) -> tuple[Array, Array, Array]:
    """Return adj_velocity, adj_viscosity [] and adj_boundary_velocity."""
    adj = adj_diffused_velocity
    k = _diffusion_number(model, viscosity)
    zero, no_walls = np.zeros_like(adj), np.zeros((model.dim, 6), adj.dtype)
    laplace = _add_laplace(model, zero, velocity, _ghost_velocities(model, boundary_velocity), 1.0)
    adj_viscosity = model.dt / model.spacing**2 * (adj * laplace).sum()
    free = _zero_given_faces(model, adj)
    adj_walls = np.zeros((2 * model.dim, model.dim), adj.dtype)
    for side in range(2 * model.dim):
        for component in range(model.dim):
            adj_walls[side, component] = 2 * k * free[side_index(model, component, side)].sum()
    adj_boundary = adj_walls * layout(model).walls[:, -2 * model.dim :].T
    adj_velocity = _add_laplace(model, adj, free, no_walls, k, fixed=False)
    return adj_velocity, np.asarray(adj_viscosity, adj.dtype), adj_boundary.astype(adj.dtype)


def push(
    model: Smoke, velocity: Array, viscosity: Array, boundary_velocity: Array,
    dvelocity: Array, dviscosity: Array, dboundary_velocity: Array,
) -> Array:  # fmt: skip
    """Return the tangent of the velocity."""
    k, dk = _diffusion_number(model, viscosity), _diffusion_number(model, dviscosity)
    moved = _add_laplace(model, dvelocity, dvelocity, _ghost_velocities(model, dboundary_velocity), k)
    return _add_laplace(model, moved, velocity, _ghost_velocities(model, boundary_velocity), dk, out=moved)


def _add_laplace(
    model: Smoke, base: Array, x: Array, walls: Array, k: float, *, fixed: bool = True, out: Array | None = None
) -> Array:
    """Compute base + k (A x + 2 c walls); with `fixed`, given faces keep the base. `out` may be the base."""
    out = np.empty_like(base) if out is None else out
    grid = layout(model)
    kernels(runtime.real(), runtime.parallel(work_us(grid))).add_laplace(
        base.reshape(-1), x.reshape(-1), walls.reshape(-1), k, int(fixed), grid.table, grid.components, *grid.faces,
        out.reshape(-1),
    )  # fmt: skip
    return out


def _zero_given_faces(model: Smoke, values: Array) -> Array:
    """Copy values [dim, *faces], with 0 at given faces."""
    found = values.copy()
    for side in range(2 * model.dim):
        if is_prescribed(model, side):
            found[side_index(model, side // 2, side)] = 0
    return found


def _ghost_velocities(model: Smoke, boundary_velocity: Array) -> Array:
    """Return the velocities that ghosts of each component depend on, at six sides, [dim, 6]."""
    walls = np.zeros((model.dim, 6), boundary_velocity.dtype)
    walls[:, -2 * model.dim :] = boundary_velocity.T
    walls *= layout(model).walls
    return walls


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
