"""Sums over the stencil of a particle, from and to the grid, which p2g and g2p share, forward and adjoint.

A field around a particle is q + B r, with r the distance from the particle in spacings. Sums run line by line over
three nodes along the last axis (numerics/bspline.py); terms constant along a line are computed once. A grid holds
`size` numbers for each node: a vector [dim], and possibly a scalar after it.

In 2-D the three lines are unrolled, so that the compiler can vectorize them. In 3-D the nine lines are a loop, as
compile time grows faster than the size of the code.
"""

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import bspline


class Sums(NamedTuple):
    """Sums over the stencil of a particle."""

    v: Any
    V: Any
    adj_f: Any
    scalar: Any
    """A vector, of which the first entry counts."""


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any, dim: int, cells: tuple[int, ...]) -> SimpleNamespace:
    """The element functions, for particles at x."""
    vec, mat = ti.types.vector(dim, real), ti.types.matrix(dim, dim, real)
    weights_ = ti.types.matrix(3, dim, real)
    spline, lines, last = bspline.functions(real, dim, cells), bspline.count_lines(dim), dim - 1
    places = ti.types.vector(last, ti.i32)
    width = lines * (dim + 1) + 3 + dim
    table, span = ti.types.vector(width, real), ti.types.vector(3 * (dim + 1), real)  # of a particle, of a line
    weights_at, slope_at = lines * (dim + 1), lines * (dim + 1) + 3  # in a table

    @ti.func
    def value_on_line(q: vec, B: mat, f: vec, o: places) -> vec:
        """Return q + B r on the line at offset o, at the particle's coordinate along the last axis."""
        here = q
        for d in ti.static(range(last)):
            for e in ti.static(range(dim)):
                here[e] += (o[d] - f[d]) * B[e, d]
        return here

    @ti.func
    def gather_line(
        number, grid: ti.template(), size: ti.template(), first: ti.i32, f: vec, w: weights_, v: ti.template(),
        V: ti.template(),
    ):
        o = spline.offset(number)
        i, weight = (first + spline.line_offset(o)) * size, spline.line_weight(w, o)
        P, Q = vec(0.0), vec(0.0)
        for k in ti.static(range(3)):
            for d in ti.static(range(dim)):
                u = grid[i + k * size + d]
                P[d] += w[k, last] * u
                Q[d] += (w[k, last] * (k - f[last])) * u
        for e in ti.static(range(dim)):
            v[e] += weight * P[e]
            V[e, last] += weight * Q[e]
            for d in ti.static(range(last)):
                V[e, d] += (weight * (o[d] - f[d])) * P[e]

    @ti.func
    def gather(grid: ti.template(), size: ti.template(), x: vec, inv_dx: real):
        """Return sum w u and sum w u r^T over the nodes' vectors u."""
        base = spline.base(x, inv_dx)
        f = x * inv_dx - base
        w = spline.weights(f)
        v, V = vec(0.0), mat(0.0)
        if ti.static(dim == 2):
            for number in ti.static(range(lines)):
                gather_line(number, grid, size, spline.start(base), f, w, v, V)
        else:
            for number in range(lines):
                gather_line(number, grid, size, spline.start(base), f, w, v, V)
        return v, V

    @ti.func
    def gather_line_derivatives(
        number, grid: ti.template(), size: ti.template(), first: ti.i32, f: vec, w: weights_, s: weights_, q: vec,
        B: mat, m: real, sums: ti.template(),
    ):
        v, V, adj_f, scalar = ti.static(sums)
        o = spline.offset(number)
        i, weight, here = (first + spline.line_offset(o)) * size, spline.line_weight(w, o), value_on_line(q, B, f, o)
        P, Q, wk, wz, sz = vec(0.0), vec(0.0), real(0.0), real(0.0), real(0.0)  # sums along the line
        for k in ti.static(range(3)):
            r, z = k - f[last], real(0.0)
            if ti.static(size > dim):
                back = grid[i + k * size + dim]
                wk += w[k, last] * back
                z = m * back
            for d in ti.static(range(dim)):
                u = grid[i + k * size + d]
                z += u * (here[d] + r * B[d, last])
                P[d] += w[k, last] * u
                Q[d] += (w[k, last] * r) * u
            wz += w[k, last] * z
            sz += s[k, last] * z
        scalar[0] += weight * wk
        adj_f[last] += weight * sz
        for e in ti.static(range(dim)):
            v[e] += weight * P[e]
            V[e, last] += weight * Q[e]
            for d in ti.static(range(last)):
                V[e, d] += (weight * (o[d] - f[d])) * P[e]
        for d in ti.static(range(last)):
            adj_f[d] += spline.line_slope(w, s, o, d) * wz

    @ti.func
    def gather_derivatives(grid: ti.template(), size: ti.template(), x: vec, inv_dx: real, q: vec, B: mat, m: real):
        """Return the sums of `gather`, the derivative of sum w (u.(q + B r) + k m) by x through w, and sum w k.

        The derivative is by x in spacings. k is the nodes' scalar, 0 if they have none.
        """
        base = spline.base(x, inv_dx)
        f = x * inv_dx - base
        w, s = spline.weights(f), spline.slopes(f)
        v, V, adj_f, scalar = vec(0.0), mat(0.0), vec(0.0), vec(0.0)
        sums = ti.static(Sums(v, V, adj_f, scalar))
        if ti.static(dim == 2):
            for number in ti.static(range(lines)):
                gather_line_derivatives(number, grid, size, spline.start(base), f, w, s, q, B, m, sums)
        else:
            for number in range(lines):
                gather_line_derivatives(number, grid, size, spline.start(base), f, w, s, q, B, m, sums)
        return v, V, adj_f, scalar[0]

    @ti.func
    def spread_line(number, f: vec, w: weights_, q: vec, B: mat, shares: ti.template()):
        o = spline.offset(number)
        weight = spline.line_weight(w, o)
        here = value_on_line(q, B, f, o)
        for d in ti.static(range(dim)):
            shares[number * (dim + 1) + d] = weight * (here[d] - f[last] * B[d, last])
        shares[number * (dim + 1) + dim] = weight

    @ti.func
    def spread(x: vec, inv_dx: real, q: vec, B: mat):
        """Return the first node, and a table with the lines' shares of q + B r, which `scatter` adds."""
        base = spline.base(x, inv_dx)
        f = x * inv_dx - base
        w = spline.weights(f)
        shares = table(0.0)
        if ti.static(dim == 2):
            for number in ti.static(range(lines)):
                spread_line(number, f, w, q, B, shares)
        else:
            for number in range(lines):
                spread_line(number, f, w, q, B, shares)
        for k in ti.static(range(3)):
            shares[weights_at + k] = w[k, last]
        for d in ti.static(range(dim)):
            shares[slope_at + d] = B[d, last]
        return spline.start(base), shares

    @ti.func
    def scatter_line(
        number, grid: ti.template(), at: ti.i32, size: ti.template(), first: ti.i32, shares: ti.template(), m: real,
        atomic: ti.template(),
    ):
        weight, i = shares[number * (dim + 1) + dim], at + (first + spline.line_offset(spline.offset(number))) * size
        held = span(0.0)
        for k in ti.static(range(3)):
            for d in ti.static(range(dim)):
                share = shares[number * (dim + 1) + d] + (k * weight) * shares[slope_at + d]
                held[k * size + d] = shares[weights_at + k] * share
            if ti.static(size > dim):
                held[k * size + dim] = shares[weights_at + k] * (weight * m)
        if ti.static(atomic):
            for k in ti.static(range(3 * size)):
                ti.atomic_add(grid[i + k], held[k])
        else:  # all reads first: after a write the compiler would read again, as it cannot rule out aliasing
            for k in ti.static(range(3 * size)):
                held[k] += grid[i + k]
            for k in ti.static(range(3 * size)):
                grid[i + k] = held[k]

    @ti.func
    def scatter(
        grid: ti.template(), at: ti.i32, size: ti.template(), first: ti.i32, shares: ti.template(), m: real,
        atomic: ti.template(),
    ):
        """Add w (q + B r), and w m if nodes have a scalar, to the grid that begins at `at`."""
        if ti.static(dim == 2):
            for number in ti.static(range(lines)):
                scatter_line(number, grid, at, size, first, shares, m, atomic)
        else:
            for number in range(lines):
                scatter_line(number, grid, at, size, first, shares, m, atomic)

    return SimpleNamespace(
        table=table, width=width, value_on_line=value_on_line, gather=gather, gather_derivatives=gather_derivatives,
        spread=spread, scatter=scatter,
    )
