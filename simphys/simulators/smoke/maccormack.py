"""MacCormack's scheme: advect forward and back, and add half of the difference to the original field.

    s_i = f(i - h u_i),   b_i = s(i + h u_i),   f'_i = limit(s_i + (f_i - b_i) / 2)

Without error b would equal f. The correction makes the scheme second order in space and, in a steady flow, in time.
`limit` clamps the result to the range of the entries from which s_i was interpolated, so that no new extrema appear.
Where a departure point, forward or back, was moved to a side, the error is unknown and s_i is not corrected; there the
result is discontinuous. Adjoint, for g = adj_f' and an unlimited result:

    adj_s_i += g_i      adj_f_i += g_i / 2      adj_b_i = -g_i / 2

and on through b and s as in sampling.py. The adjoint of a limited result goes to the limiting entry, the first of equal
ones; a result exactly at the limit counts as unlimited. Where the field is uniform, all of these are equal: a change d
of the field changes the result by limit(d), which is no linear function of d, so that no adjoint agrees with finite
differences there. Source: Selle, Fedkiw, Kim, Liu and Rossignac 2008.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.forward_mode import tangent_of
from simphys.numerics.multilinear import adj_interpolate, interpolate, jvp_interpolate

from .sampling import (
    Form,
    add,
    adj_corners_at,
    adj_velocity_at,
    begin_line,
    corners_at,
    entry,
    find_departure,
    result_start,
    velocity_at,
)


@ti.func
def correction_mask(inside, other):
    """Return 1 if neither departure point was moved to a side, else 0."""
    product = 1.0
    for d in ti.static(range(inside.n)):
        product *= inside[d] * other[d]
    return product


@element
def add_correction(f, moved, back, mask):
    return moved + 0.5 * mask * (f - back)


@add_correction.adjoint
def adj_add_correction(f, moved, back, mask, adj):
    return 0.5 * mask * adj, adj, -0.5 * mask * adj


jvp_add_correction = tangent_of(add_correction, "f", "moved", "back")


@element
def limit(value, f):
    return ti.max(ti.min(value, f.max()), f.min())


@limit.adjoint
def adj_limit(value, f, adj):
    adj_value, adj_f = adj, 0 * f
    low, high = f.min(), f.max()
    below, above = value < low, value > high
    if below or above:
        adj_value, left = 0 * adj, adj
        bound = ti.select(below, low, high)
        for c in ti.static(range(f.n)):
            if f[c] == bound:
                adj_f[c] = left
                left = 0 * adj
    return adj_value, adj_f


@limit.tangent
def jvp_limit(value, f, dvalue, df):
    slope, corner_slopes = adj_limit(value, f, 1.0)
    return slope * dvalue + corner_slopes.dot(df)


# fmt: off
def correct_loop(form: Form) -> Any:
    real, dim, staggered, fields, _, on_gpu, spread = form
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    width, field_block = form.width, ti.types.matrix(fields, form.width, real)

    @no_type_check
    @kernel
    def correct(
        f: reals, moved: reals, u: reals, places: ints, axes: reals, rounds: ti.i32, h: real, corrected: reals,
        begin: ti.i32,
    ):
        ti.loop_config(serialize=not (on_gpu or spread > 1))
        for r in range(rounds):
            s, a, start, k0, x_begin, x_end = begin_line(r, places, axes, dim, spread, on_gpu)
            size, component = places[4 * dim], places[4 * dim + 1]
            to, of_field = result_start(start, k0, s, places, begin, False)
            for block in range((x_end - x_begin + width - 1) // width):
                x0, found = x_begin + block * width, field_block(0.0)
                for lane in range(width):
                    k = k0 + x0 + lane
                    v = velocity_at(u, size, k, s, staggered)
                    there, _, inside = find_departure(start, x0 + lane, v, h, s, a)
                    first, behind, inside_back = find_departure(start, x0 + lane, v, -h, s, a)
                    mask = correction_mask(inside, inside_back)
                    for n in ti.static(range(fields)):
                        i, far = entry(component + n, size, k), entry(component + n, size, there)
                        back = interpolate(corners_at(moved, entry(n, size, first), s), behind)
                        value = add_correction(f[i], moved[n * size + k], back, mask)
                        found[n, lane] = limit(value, corners_at(f, far, s))
                for lane in range(ti.min(width, x_end - x0)):
                    for n in ti.static(range(fields)):
                        corrected[to + n * of_field + x0 + lane] = found[n, lane]

    return correct


def pull_loop(form: Form) -> Any:
    real, dim, staggered, fields, _, on_gpu, spread = form
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    vec = ti.types.vector(dim, real)

    @no_type_check
    @kernel
    def adj_correct(
        f: reals, moved: reals, u: reals, places: ints, axes: reals, rounds: ti.i32, h: real, g: reals,
        adj_f: reals, adj_moved: reals, adj_u: reals,
    ):
        ti.loop_config(serialize=not on_gpu)
        for r in range(rounds):
            s, a, start, k0, x_begin, x_end = begin_line(r, places, axes, dim, spread, on_gpu)
            size, component = places[4 * dim], places[4 * dim + 1]
            for x in range(x_begin, x_end):
                k = k0 + x
                v = velocity_at(u, size, k, s, staggered)
                there, _, inside = find_departure(start, x, v, h, s, a)
                first, behind, inside_back = find_departure(start, x, v, -h, s, a)
                mask = correction_mask(inside, inside_back)
                total = vec(0.0)
                for n in ti.static(range(fields)):
                    j, i, far = n * size + k, entry(component + n, size, k), entry(component + n, size, there)
                    near = corners_at(moved, entry(n, size, first), s)
                    back = interpolate(near, behind)
                    value = add_correction(f[i], moved[j], back, mask)
                    adj_value, adj_there = adj_limit(value, corners_at(f, far, s), g[j])
                    adj_corners_at(adj_f, far, s, adj_there, on_gpu)
                    adj_f_i, adj_moved_j, adj_back = adj_add_correction(f[i], moved[j], back, mask, adj_value)
                    add(adj_f, i, adj_f_i, on_gpu)
                    add(adj_moved, j, adj_moved_j, on_gpu)
                    adj_near, adj_behind = adj_interpolate(near, behind, adj_back)
                    adj_corners_at(adj_moved, entry(n, size, first), s, adj_near, on_gpu)
                    total += adj_behind
                adj_velocity_at(adj_u, size, k, s, staggered, h * total, on_gpu)

    return adj_correct


def push_loop(form: Form) -> Any:
    real, dim, staggered, fields, _, on_gpu, spread = form
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def jvp_correct(
        f: reals, moved: reals, u: reals, places: ints, axes: reals, rounds: ti.i32, h: real, df: reals,
        dmoved: reals, du: reals, dcorrected: reals, begin: ti.i32,
    ):
        ti.loop_config(serialize=not (on_gpu or spread > 1))
        for r in range(rounds):
            s, a, start, k0, x_begin, x_end = begin_line(r, places, axes, dim, spread, on_gpu)
            size, component = places[4 * dim], places[4 * dim + 1]
            to, of_field = result_start(start, k0, s, places, begin, False)
            for x in range(x_begin, x_end):
                k = k0 + x
                v = velocity_at(u, size, k, s, staggered)
                there, _, inside = find_departure(start, x, v, h, s, a)
                first, behind, inside_back = find_departure(start, x, v, -h, s, a)
                mask = correction_mask(inside, inside_back)
                dbehind = h * velocity_at(du, size, k, s, staggered)  # a point moved to a side gets no correction
                for n in ti.static(range(fields)):
                    j, i = n * size + k, entry(component + n, size, k)
                    from_back, far = entry(n, size, first), entry(component + n, size, there)
                    near = corners_at(moved, from_back, s)
                    back = interpolate(near, behind)
                    value = add_correction(f[i], moved[j], back, mask)
                    dnear = corners_at(dmoved, from_back, s)
                    dback = jvp_interpolate(near, behind, dnear, dbehind)
                    dvalue = jvp_add_correction(f[i], moved[j], back, mask, df[i], dmoved[j], dback)
                    changed = jvp_limit(value, corners_at(f, far, s), dvalue, corners_at(df, far, s))
                    dcorrected[to + n * of_field + x] = changed

    return jvp_correct
# fmt: on


@functools.cache
def kernels(form: Form) -> SimpleNamespace:
    """Loops over points, like those of sampling.py; `moved` is s."""
    return SimpleNamespace(correct=correct_loop(form), adj_correct=pull_loop(form), jvp_correct=push_loop(form))
