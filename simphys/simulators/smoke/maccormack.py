"""MacCormack's scheme: advect forward and back, and add half of the difference to the original field.

    s_i = f(i - h u_i),   b_i = s(i + h u_i),   f'_i = limit(s_i + (f_i - b_i) / 2)

Without error b would equal f. The correction makes the scheme second order in space and, in a steady flow, in time.
`limit` clamps the result to the range of the entries from which s_i was interpolated, so that no new extrema appear.
Where a departure point, forward or back, was moved to a side, the error is unknown and s_i is not corrected; there the
result is discontinuous. Adjoint, for g = adj_f' and an unlimited result:

    adj_s_i += g_i      adj_f_i += g_i / 2      adj_b_i = -g_i / 2

and on through b and s as in sampling.py. The adjoint of a limited result goes to the limiting entry, the first of equal
ones; a result exactly at the limit counts as unlimited. Source: Selle, Fedkiw, Kim, Liu and Rossignac 2008.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import sampling
from .sampling import BLOCK, SPREAD


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions in `dim` dimensions; `corners` are the entries around a departure point."""
    vec, corners, count = ti.types.vector(dim, real), ti.types.vector(2**dim, real), 2**dim

    @ti.func
    def correction_mask(inside: vec, other: vec) -> real:
        """Return 1 if neither departure point was moved to a side, else 0."""
        product = real(1.0)
        for d in ti.static(range(dim)):
            product *= inside[d] * other[d]
        return product

    @ti.func
    def correct(f: real, moved: real, back: real, mask: real) -> real:
        return moved + 0.5 * mask * (f - back)

    @ti.func
    def adj_correct(g: real, mask: real):
        """Return the adjoints of f, moved and back."""
        return 0.5 * mask * g, g, -0.5 * mask * g

    @ti.func
    def limit(value: real, f: corners) -> real:
        return ti.max(ti.min(value, f.max()), f.min())

    @ti.func
    def adj_limit(value: real, f: corners, g: real):
        """Return the adjoints of the value and of the corners."""
        adj_value, adj_f = g, corners(0.0)
        low, high = f.min(), f.max()
        below, above = value < low, value > high
        if below or above:
            adj_value, left = real(0.0), g
            bound = ti.select(below, low, high)
            for c in ti.static(range(count)):
                if f[c] == bound:
                    adj_f[c] = left
                    left = real(0.0)
        return adj_value, adj_f

    @ti.func
    def jvp_limit(value: real, f: corners, dvalue: real, df: corners) -> real:
        value_slope, corner_slopes = adj_limit(value, f, real(1.0))
        return value_slope * dvalue + corner_slopes.dot(df)

    return SimpleNamespace(
        correction_mask=correction_mask, correct=correct, adj_correct=adj_correct,
        limit=limit, adj_limit=adj_limit, jvp_limit=jvp_limit,
    )  # fmt: skip


# fmt: off
@functools.cache
@no_type_check
def kernels(real: Any, dim: int, staggered: bool, fields: int, parallel: bool) -> SimpleNamespace:
    """Loops over points, like those of sampling.py; `moved` is s."""
    fn, own = sampling.functions(real, dim, staggered), functions(real, dim)
    linear, vec = fn.linear, fn.linear.vec
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)
    field_block = ti.types.matrix(fields, BLOCK, real)
    spread = SPREAD if parallel else 1

    @kernel
    def correct(
        f: reals, moved: reals, u: reals, places: ints, axes: reals, lines: ti.i32, size: ti.i32, h: real,
        corrected: reals,
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
                        there, _, inside = fn.find_departure(start, x0 + lane, v, h, s, a)
                        first, behind, inside_back = fn.find_departure(start, x0 + lane, v, -h, s, a)
                        mask = own.correction_mask(inside, inside_back)
                        for n in ti.static(range(fields)):
                            j = n * size + k0 + x0 + lane
                            back = linear.interpolate(fn.corners_at(moved, fn.entry(n, size, first), s), behind)
                            value = own.correct(f[j], moved[j], back, mask)
                            found[n, lane] = own.limit(value, fn.corners_at(f, fn.entry(n, size, there), s))
                    for lane in range(ti.min(BLOCK, s[0, dim - 1] - x0)):
                        for n in ti.static(range(fields)):
                            corrected[n * size + k0 + x0 + lane] = found[n, lane]

    @kernel
    def adj_correct(
        f: reals, moved: reals, u: reals, places: ints, axes: reals, lines: ti.i32, size: ti.i32, h: real, g: reals,
        adj_f: reals, adj_moved: reals, adj_u: reals,
    ):
        ti.loop_config(serialize=True)
        for line in range(lines):
            s, a = fn.read_steps(places), fn.read_frame(axes)
            start, k0 = fn.line_start(line, s)
            for x in range(s[0, dim - 1]):
                k = k0 + x
                v = fn.velocity_at(u, size, k, s)
                there, _, inside = fn.find_departure(start, x, v, h, s, a)
                first, behind, inside_back = fn.find_departure(start, x, v, -h, s, a)
                mask = own.correction_mask(inside, inside_back)
                total = vec(0.0)
                for n in ti.static(range(fields)):
                    j = n * size + k
                    near = fn.corners_at(moved, fn.entry(n, size, first), s)
                    value = own.correct(f[j], moved[j], linear.interpolate(near, behind), mask)
                    adj_value, adj_there = own.adj_limit(value, fn.corners_at(f, fn.entry(n, size, there), s), g[j])
                    fn.adj_corners_at(adj_f, fn.entry(n, size, there), s, adj_there)
                    adj_f_j, adj_moved_j, adj_back = own.adj_correct(adj_value, mask)
                    adj_f[j] = adj_f[j] + adj_f_j
                    adj_moved[j] = adj_moved[j] + adj_moved_j
                    fn.adj_corners_at(adj_moved, fn.entry(n, size, first), s, linear.adj_corners(behind, adj_back))
                    total += adj_back * linear.slopes(near, behind)
                fn.adj_velocity_at(adj_u, size, k, s, h * total)

    @kernel
    def jvp_correct(
        f: reals, moved: reals, u: reals, places: ints, axes: reals, lines: ti.i32, size: ti.i32, h: real, df: reals,
        dmoved: reals, du: reals, dcorrected: reals,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(lines * spread):
            if r % spread == 0:
                s, a = fn.read_steps(places), fn.read_frame(axes)
                start, k0 = fn.line_start(r // spread, s)
                for x in range(s[0, dim - 1]):
                    k = k0 + x
                    v = fn.velocity_at(u, size, k, s)
                    there, _, inside = fn.find_departure(start, x, v, h, s, a)
                    first, behind, inside_back = fn.find_departure(start, x, v, -h, s, a)
                    mask = own.correction_mask(inside, inside_back)
                    dbehind = h * fn.velocity_at(du, size, k, s)  # a point moved to a side gets no correction
                    for n in ti.static(range(fields)):
                        j, back, far = n * size + k, fn.entry(n, size, first), fn.entry(n, size, there)
                        near = fn.corners_at(moved, back, s)
                        value = own.correct(f[j], moved[j], linear.interpolate(near, behind), mask)
                        dnear = fn.corners_at(dmoved, back, s)
                        dvalue = own.correct(df[j], dmoved[j], linear.jvp(near, behind, dnear, dbehind), mask)
                        dcorrected[j] = own.jvp_limit(
                            value, fn.corners_at(f, far, s), dvalue, fn.corners_at(df, far, s)
                        )

    return SimpleNamespace(correct=correct, adj_correct=adj_correct, jvp_correct=jvp_correct)
# fmt: on
