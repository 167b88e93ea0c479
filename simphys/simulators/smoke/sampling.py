"""Semi-Lagrangian advection of fields: kernels over extended arrays (see lattice), with linear interpolation.

The value at point i comes from its departure point, h u_i cells upstream, with h = dt / dx and the velocity u_i at i:

    s_i = f(i - h u_i)

This is first order and stable for any h. Adjoint, with the weights w and slopes f_p of interpolation at the departure
point p, and g = adj_s:

    adj_f += sum_i w_i g_i  (a scatter)      adj_u_i -= h g_i f_p

See multilinear for the kinks of floor and of sides. On a staggered grid each component of u_i is averaged from
4 entries, which are the steps `up` and `back` apart in memory. Zero steps make pairs of them (or all four) coincide, so
that one kernel serves all quantities. Source: Stam 1999.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.multilinear import adj_corners, interpolate, jvp_interpolate, locate, slopes

BLOCK = 16
"""Number of values along a line that are computed together."""

SPREAD = 16
"""Loop iterations for each line of cells, one of which does the work, as a CPU's threads take 512 iterations each."""


@ti.func
def entry(n: ti.template(), size, place):
    """Return the index of field n's entry among those of all fields."""
    return n * size + place


@ti.func
def store(places: ti.template(), lane, place):
    places[lane] = place


def departures(real: Any, dim: int) -> SimpleNamespace:
    """Return functions that read the layout of points, and find the departure point of one."""
    vec, ivec = ti.types.vector(dim, real), ti.types.vector(dim, ti.i32)
    steps, frame = ti.types.matrix(4, dim, ti.i32), ti.types.matrix(5, dim, real)

    @ti.func
    def read_steps(places: ti.template()):
        """Read a matrix with rows: number of values, strides, up, back."""
        found = steps(0)
        for d in ti.static(range(dim)):
            for n in ti.static(range(4)):
                found[n, d] = places[4 * d + n]
        return found

    @ti.func
    def read_frame(axes: ti.template()):
        """Read a matrix whose rows are the fields of `Axis`."""
        found = frame(0.0)
        for d in ti.static(range(dim)):
            for n in ti.static(range(5)):
                found[n, d] = axes[5 * d + n]
        return found

    @ti.func
    def line_start(line, s):
        """Return the index of the first point of a line along the last axis, and its position in memory."""
        index, k = ivec(0), 1
        if ti.static(dim == 2):
            index[0] = line
            k += (line + 1) * s[1, 0]
        else:
            index[0], index[1] = line // s[0, 1], line % s[0, 1]
            k += (index[0] + 1) * s[1, 0] + (index[1] + 1) * s[1, 1]
        return index, k

    @ti.func
    def find_departure(line, x, v, h, s, a):
        """Return, for point x of a line, the first corner at its departure point, the offset from it, and the mask.

        The mask is 1 along axes on which the offset depends on v, 0 where the point was moved to a side.
        """
        first, r, inside = 0, vec(0.0), vec(0.0)
        for d in ti.static(range(dim)):
            i = x if ti.static(d == dim - 1) else line[d]
            below, behind, is_inside = locate(i - h * v[d], a[0, d], a[1, d], a[2, d], a[3, d], a[4, d])
            first += (below + 1) * s[1, d]
            r[d] = behind
            inside[d] = is_inside
        return first, r, inside

    return SimpleNamespace(
        read_steps=read_steps, read_frame=read_frame, line_start=line_start, find_departure=find_departure
    )


def velocities(real: Any, dim: int, staggered: bool) -> SimpleNamespace:
    """Return functions that read the velocity at a point, and add to its adjoint."""
    vec = ti.types.vector(dim, real)

    @ti.func
    def velocity_at(u: ti.template(), size, k, s):
        """Return the velocity at a point."""
        v = vec(0.0)
        for d in ti.static(range(dim)):
            j = d * size + k
            if ti.static(staggered):
                v[d] = 0.25 * (u[j] + u[j + s[2, d]] + u[j + s[3, d]] + u[j + s[2, d] + s[3, d]])
            else:
                v[d] = u[j]
        return v

    @ti.func
    def adj_velocity_at(adj_u: ti.template(), size, k, s, g):
        for d in ti.static(range(dim)):
            j = d * size + k
            if ti.static(staggered):
                adj_u[j] = adj_u[j] + 0.25 * g[d]
                adj_u[j + s[2, d]] = adj_u[j + s[2, d]] + 0.25 * g[d]
                adj_u[j + s[3, d]] = adj_u[j + s[3, d]] + 0.25 * g[d]
                adj_u[j + s[2, d] + s[3, d]] = adj_u[j + s[2, d] + s[3, d]] + 0.25 * g[d]
            else:
                adj_u[j] = adj_u[j] + g[d]

    return SimpleNamespace(velocity_at=velocity_at, adj_velocity_at=adj_velocity_at)


def corner_values(real: Any, dim: int) -> SimpleNamespace:
    """Return functions that read a field at the corners around a departure point, and add to its adjoint."""
    count = 2**dim
    corners = ti.types.vector(count, real)

    @ti.func
    def corner_step(c: ti.template(), s):
        step = 0
        for d in ti.static(range(dim)):
            if ti.static(c >> d & 1):
                step += s[1, d]
        return step

    @ti.func
    def corners_at(f: ti.template(), first, s):
        found = corners(0.0)
        for c in ti.static(range(count)):
            found[c] = f[first + corner_step(c, s)]
        return found

    @ti.func
    def adj_corners_at(adj_f: ti.template(), first, s, g):
        for c in ti.static(range(count)):
            j = first + corner_step(c, s)
            adj_f[j] = adj_f[j] + g[c]

    return SimpleNamespace(corners_at=corners_at, adj_corners_at=adj_corners_at)


@functools.cache
def functions(real: Any, dim: int, staggered: bool) -> SimpleNamespace:
    """The element functions in `dim` dimensions. `k` is the index of a point in extended arrays of `size` entries."""
    parts = departures(real, dim), velocities(real, dim, staggered), corner_values(real, dim)
    types = {"vec": ti.types.vector(dim, real), "corners": ti.types.vector(2**dim, real)}
    return SimpleNamespace(**types, **{name: part for each in parts for name, part in vars(each).items()})


# fmt: off
def sample_loop(real: Any, dim: int, fn: SimpleNamespace, fields: int, parallel: bool) -> Any:
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    field_block, spread = ti.types.matrix(fields, BLOCK, real), SPREAD if parallel else 1

    @no_type_check
    @kernel
    def sample(
        f: reals, u: reals, places: ints, axes: reals, lines: ti.i32, size: ti.i32, h: real, moved: reals
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(lines * spread):
            if r % spread == 0:
                s, a = fn.read_steps(places), fn.read_frame(axes)
                start, k0 = fn.line_start(r // spread, s)
                for block in range((s[0, dim - 1] + BLOCK - 1) // BLOCK):
                    x0, found = block * BLOCK, field_block(0.0)
                    for lane in range(BLOCK):
                        v = fn.velocity_at(u, size, k0 + x0 + lane, s)
                        first, behind, _ = fn.find_departure(start, x0 + lane, v, h, s, a)
                        for n in ti.static(range(fields)):
                            found[n, lane] = interpolate(fn.corners_at(f, entry(n, size, first), s), behind)
                    for lane in range(ti.min(BLOCK, s[0, dim - 1] - x0)):
                        for n in ti.static(range(fields)):
                            moved[n * size + k0 + x0 + lane] = found[n, lane]

    return sample


def pull_loop(real: Any, dim: int, fn: SimpleNamespace, fields: int) -> Any:
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    vec, corners, axis_block = fn.vec, fn.corners, ti.types.matrix(dim, BLOCK, real)
    point_block = ti.types.vector(BLOCK, ti.i32)

    @no_type_check
    @kernel
    def adj_sample(
        f: reals, u: reals, places: ints, axes: reals, lines: ti.i32, size: ti.i32, h: real, g: reals,
        adj_f: reals, adj_u: reals,
    ):
        ti.loop_config(serialize=True)
        for line in range(lines):
            s, a = fn.read_steps(places), fn.read_frame(axes)
            start, k0 = fn.line_start(line, s)
            for block in range((s[0, dim - 1] + BLOCK - 1) // BLOCK):
                x0, firsts, behinds, adj_v = block * BLOCK, point_block(0), axis_block(0.0), axis_block(0.0)
                for lane in range(BLOCK):
                    k = k0 + x0 + lane
                    first, behind, inside = fn.find_departure(start, x0 + lane, fn.velocity_at(u, size, k, s), h, s, a)
                    total = vec(0.0)
                    for n in ti.static(range(fields)):
                        total += g[n * size + k] * slopes(fn.corners_at(f, entry(n, size, first), s), behind)
                    store(firsts, lane, first)
                    for d in ti.static(range(dim)):
                        behinds[d, lane] = behind[d]
                        adj_v[d, lane] = -h * inside[d] * total[d]
                for lane in range(ti.min(BLOCK, s[0, dim - 1] - x0)):
                    k = k0 + x0 + lane
                    behind, gv = vec(0.0), vec(0.0)
                    for d in ti.static(range(dim)):
                        behind[d] = behinds[d, lane]
                        gv[d] = adj_v[d, lane]
                    for n in ti.static(range(fields)):
                        adj_there = adj_corners(corners(0.0), behind, g[n * size + k])
                        fn.adj_corners_at(adj_f, entry(n, size, firsts[lane]), s, adj_there)
                    fn.adj_velocity_at(adj_u, size, k, s, gv)

    return adj_sample


def push_loop(real: Any, dim: int, fn: SimpleNamespace, fields: int, parallel: bool) -> Any:
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    spread = SPREAD if parallel else 1

    @no_type_check
    @kernel
    def jvp_sample(
        f: reals, u: reals, places: ints, axes: reals, lines: ti.i32, size: ti.i32, h: real, df: reals, du: reals,
        dmoved: reals,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(lines * spread):
            if r % spread == 0:
                s, a = fn.read_steps(places), fn.read_frame(axes)
                start, k0 = fn.line_start(r // spread, s)
                for x in range(s[0, dim - 1]):
                    k = k0 + x
                    first, behind, inside = fn.find_departure(start, x, fn.velocity_at(u, size, k, s), h, s, a)
                    dbehind = -h * inside * fn.velocity_at(du, size, k, s)
                    for n in ti.static(range(fields)):
                        j = entry(n, size, first)
                        df_j = fn.corners_at(df, j, s)
                        dmoved[n * size + k] = jvp_interpolate(fn.corners_at(f, j, s), behind, df_j, dbehind)

    return jvp_sample
# fmt: on


@functools.cache
def kernels(real: Any, dim: int, staggered: bool, fields: int, parallel: bool) -> SimpleNamespace:
    """Loops over points, for several fields at the same points; scatters are serial and add to their arrays.

    A loop that stores to an array is not vectorized, so blocks of a line are computed into local vectors first. Lines
    of extended arrays are long enough for whole blocks.
    """
    of = real, dim, functions(real, dim, staggered), fields
    return SimpleNamespace(
        sample=sample_loop(*of, parallel), adj_sample=pull_loop(*of), jvp_sample=push_loop(*of, parallel)
    )
