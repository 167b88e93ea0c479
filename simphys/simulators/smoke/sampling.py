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
from typing import Any, NamedTuple, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.multilinear import adj_corners, interpolate, jvp_interpolate, locate, slopes

BLOCK = 16
"""Number of values along a line that are computed together."""

SPREAD = 16
"""Loop iterations for each line of cells, one of which does the work, as a CPU's threads take 512 iterations each."""


class Form(NamedTuple):
    """Form of the loops over points: line by line on a CPU, or one thread for each point on a GPU."""

    real: Any
    dim: int
    staggered: bool
    fields: int
    corrects: bool
    """True if results of sampling are corrected, so that they go to extended arrays."""
    on_gpu: bool
    spread: int = 1
    """Loop iterations for each line, on a CPU."""

    @property
    def width(self) -> int:
        """Number of values along a line that are computed together."""
        return 1 if self.on_gpu else BLOCK

    def rounds(self, lines: int, points: int) -> int:
        """Number of loop iterations, for lines of so many points."""
        return lines * (points if self.on_gpu else self.spread)


@ti.func
def find_points(r, s, spread: ti.template(), on_gpu: ti.template()):
    """Return the line of an iteration, and the range of its points."""
    line, begin, end = r // spread, 0, 0
    if ti.static(on_gpu):
        line, begin = r // s[0, s.m - 1], r % s[0, s.m - 1]
        end = begin + 1
    elif r % spread == 0:
        end = s[0, s.m - 1]
    return line, begin, end


@ti.func
def add(target: ti.template(), i, value, shared: ti.template()):
    """Add to an entry; to one that other threads add to, atomically."""
    if ti.static(shared):
        ti.atomic_add(target[i], value)
    else:
        target[i] = target[i] + value


@ti.func
def entry(n, size, place):
    """Return the index of field n's entry among those of all fields."""
    return n * size + place


@ti.func
def store(places: ti.template(), lane, place):
    places[lane] = place


@ti.func
def read_columns(numbers: ti.template(), rows: ti.template(), dim: ti.template()):
    """Read a matrix from an array of columns: of places, rows are counts, strides, up, back; of axes, see `Axis`."""
    columns = [[numbers[rows * d + n] for d in ti.static(range(dim))] for n in ti.static(range(rows))]
    return ti.Matrix(columns)


@ti.func
def line_start(line, s):
    """Return the index of the first point of a line along the last axis, and its position in memory."""
    index, k = ti.Vector.zero(int, s.m), 1
    if ti.static(s.m == 2):
        index[0] = line
        k += (line + 1) * s[1, 0]
    else:
        index[0], index[1] = line // s[0, 1], line % s[0, 1]
        k += (index[0] + 1) * s[1, 0] + (index[1] + 1) * s[1, 1]
    return index, k


@ti.func
def begin_line(
    r, places: ti.template(), axes: ti.template(), dim: ti.template(), spread: ti.template(), on_gpu: ti.template()
):
    """Read where points are, and find the line of an iteration: its first point, and the range of its points."""
    s, a = read_columns(places, 4, dim), read_columns(axes, 5, dim)
    line, x_begin, x_end = find_points(r, s, spread, on_gpu)
    start, k0 = line_start(line, s)
    return s, a, start, k0, x_begin, x_end


@ti.func
def own_start(line, s, places: ti.template()):
    """Return the index of the first point of a line in an array without ghosts, and the distance between fields."""
    at = 0
    for d in ti.static(range(s.m - 1)):
        at += line[d] * places[4 * s.m + 2 + d]
    return at, places[5 * s.m + 2]


@ti.func
def result_start(line, k, s, places: ti.template(), begin, extends: ti.template()):
    """Return where the results of a line begin: in an extended array, or from `begin` on in one without ghosts."""
    at, of_field = k, places[4 * s.m]
    if ti.static(not extends):
        at, of_field = own_start(line, s, places)
        at += begin
    return at, of_field


@ti.func
def find_departure(line, x, v, h, s, a):
    """Return, for point x of a line, the first corner at its departure point, the offset from it, and the mask.

    The mask is 1 along axes on which the offset depends on v, 0 where the point was moved to a side.
    """
    first, r, inside = 0, ti.Vector.zero(float, v.n), ti.Vector.zero(float, v.n)
    for d in ti.static(range(v.n)):
        i = x if ti.static(d == v.n - 1) else line[d]
        below, behind, is_inside = locate(i - h * v[d], a[0, d], a[1, d], a[2, d], a[3, d], a[4, d])
        first += (below + 1) * s[1, d]
        r[d] = behind
        inside[d] = is_inside
    return first, r, inside


@ti.func
def velocity_at(u: ti.template(), size, k, s, staggered: ti.template()):
    """Return the velocity at a point, which has the index k in extended arrays of `size` entries."""
    v = ti.Vector.zero(float, s.m)
    for d in ti.static(range(s.m)):
        j = d * size + k
        if ti.static(staggered):
            v[d] = 0.25 * (u[j] + u[j + s[2, d]] + u[j + s[3, d]] + u[j + s[2, d] + s[3, d]])
        else:
            v[d] = u[j]
    return v


@ti.func
def adj_velocity_at(adj_u: ti.template(), size, k, s, staggered: ti.template(), g, shared: ti.template()):
    for d in ti.static(range(s.m)):
        j = d * size + k
        if ti.static(staggered):
            add(adj_u, j, 0.25 * g[d], shared)
            add(adj_u, j + s[2, d], 0.25 * g[d], shared)
            add(adj_u, j + s[3, d], 0.25 * g[d], shared)
            add(adj_u, j + s[2, d] + s[3, d], 0.25 * g[d], shared)
        else:
            add(adj_u, j, g[d], shared)


@ti.func
def corner_step(c: ti.template(), s):
    step = 0
    for d in ti.static(range(s.m)):
        if ti.static(c >> d & 1):
            step += s[1, d]
    return step


@ti.func
def corners_at(f: ti.template(), first, s):
    """Return the values of a field at the corners around a departure point."""
    found = ti.Vector.zero(float, 2**s.m)
    for c in ti.static(range(2**s.m)):
        found[c] = f[first + corner_step(c, s)]
    return found


@ti.func
def adj_corners_at(adj_f: ti.template(), first, s, g, shared: ti.template()):
    for c in ti.static(range(g.n)):
        add(adj_f, first + corner_step(c, s), g[c], shared)


# fmt: off
def sample_loop(form: Form) -> Any:
    real, dim, staggered, fields, corrects, on_gpu, spread = form
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    width, field_block = form.width, ti.types.matrix(fields, form.width, real)

    @no_type_check
    @kernel
    def sample(
        f: reals, u: reals, places: ints, axes: reals, rounds: ti.i32, h: real, moved: reals, begin: ti.i32
    ):
        ti.loop_config(serialize=not (on_gpu or spread > 1))
        for r in range(rounds):
            s, a, start, k0, x_begin, x_end = begin_line(r, places, axes, dim, spread, on_gpu)
            size, component = places[4 * dim], places[4 * dim + 1]
            to, of_field = result_start(start, k0, s, places, begin, corrects)
            for block in range((x_end - x_begin + width - 1) // width):
                x0, found = x_begin + block * width, field_block(0.0)
                for lane in range(width):
                    v = velocity_at(u, size, k0 + x0 + lane, s, staggered)
                    first, behind, _ = find_departure(start, x0 + lane, v, h, s, a)
                    for n in ti.static(range(fields)):
                        found[n, lane] = interpolate(corners_at(f, entry(component + n, size, first), s), behind)
                for lane in range(ti.min(width, x_end - x0)):
                    for n in ti.static(range(fields)):
                        moved[to + n * of_field + x0 + lane] = found[n, lane]

    return sample


def pull_loop(form: Form) -> Any:
    real, dim, staggered, fields, _, on_gpu, spread = form
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    vec, corners, width = ti.types.vector(dim, real), ti.types.vector(2**dim, real), form.width
    axis_block = ti.types.matrix(dim, width, real)
    point_block = ti.types.vector(width, ti.i32)

    @no_type_check
    @kernel
    def adj_sample(
        f: reals, u: reals, places: ints, axes: reals, rounds: ti.i32, h: real, g: reals, adj_f: reals, adj_u: reals
    ):
        ti.loop_config(serialize=not on_gpu)
        for r in range(rounds):
            s, a, start, k0, x_begin, x_end = begin_line(r, places, axes, dim, spread, on_gpu)
            size, component = places[4 * dim], places[4 * dim + 1]
            for block in range((x_end - x_begin + width - 1) // width):
                x0, firsts, behinds, adj_v = x_begin + block * width, point_block(0), axis_block(0.0), axis_block(0.0)
                for lane in range(width):
                    k = k0 + x0 + lane
                    v = velocity_at(u, size, k, s, staggered)
                    first, behind, inside = find_departure(start, x0 + lane, v, h, s, a)
                    total = vec(0.0)
                    for n in ti.static(range(fields)):
                        total += g[n * size + k] * slopes(corners_at(f, entry(component + n, size, first), s), behind)
                    store(firsts, lane, first)
                    for d in ti.static(range(dim)):
                        behinds[d, lane] = behind[d]
                        adj_v[d, lane] = -h * inside[d] * total[d]
                for lane in range(ti.min(width, x_end - x0)):
                    k = k0 + x0 + lane
                    behind, gv = vec(0.0), vec(0.0)
                    for d in ti.static(range(dim)):
                        behind[d] = behinds[d, lane]
                        gv[d] = adj_v[d, lane]
                    for n in ti.static(range(fields)):
                        adj_there = adj_corners(corners(0.0), behind, g[n * size + k])
                        adj_corners_at(adj_f, entry(component + n, size, firsts[lane]), s, adj_there, on_gpu)
                    adj_velocity_at(adj_u, size, k, s, staggered, gv, on_gpu)

    return adj_sample


def push_loop(form: Form) -> Any:
    real, dim, staggered, fields, corrects, on_gpu, spread = form
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def jvp_sample(
        f: reals, u: reals, places: ints, axes: reals, rounds: ti.i32, h: real, df: reals, du: reals, dmoved: reals,
        begin: ti.i32,
    ):
        ti.loop_config(serialize=not (on_gpu or spread > 1))
        for r in range(rounds):
            s, a, start, k0, x_begin, x_end = begin_line(r, places, axes, dim, spread, on_gpu)
            size, component = places[4 * dim], places[4 * dim + 1]
            to, of_field = result_start(start, k0, s, places, begin, corrects)
            for x in range(x_begin, x_end):
                k = k0 + x
                first, behind, inside = find_departure(start, x, velocity_at(u, size, k, s, staggered), h, s, a)
                dbehind = -h * inside * velocity_at(du, size, k, s, staggered)
                for n in ti.static(range(fields)):
                    j = entry(component + n, size, first)
                    moved = jvp_interpolate(corners_at(f, j, s), behind, corners_at(df, j, s), dbehind)
                    dmoved[to + n * of_field + x] = moved

    return jvp_sample
# fmt: on


@functools.cache
def kernels(form: Form) -> SimpleNamespace:
    """Loops over points, for several fields at the same points; scatters are serial on a CPU and add to their arrays.

    A loop that stores to an array is not vectorized, so blocks of a line are computed into local vectors first. Lines
    of extended arrays are long enough for whole blocks.
    """
    return SimpleNamespace(sample=sample_loop(form), adj_sample=pull_loop(form), jvp_sample=push_loop(form))
