"""Means of cell quantities at the entries of a velocity, see faces.py. On a staggered grid

    m_a,i = 1/2 (s_i-1 + s_i),           m_a,i = w s_j at a face on a side, with j its only cell and w = 0 or 1,

on a collocated grid m_a,i = s_i. With a factor c_a for each component, the adjoint is the transpose, a sum over the
faces of a cell (or over its components):

    f_a = c_a m_a            adj_s_i = sum_a c_a (w_a,i g_a,i + w_a,i+1 g_a,i+1)            adj_c_a = sum_i g_a,i m_a,i
"""

import functools
import math
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti
from simphys.substep import Chain, Entries, KernelCall, Launch, Target

from .entries import CELLS, FACES, SIGNS, Form, Work, functions


# fmt: off
def mean_functions(form: Form) -> SimpleNamespace:
    """Functions of the weight of a cell, and of a mean."""
    real, dim, staggered, on_gpu, _ = form
    f = functions(dim, on_gpu)

    @ti.func
    def weight(table: ti.template(), d: ti.template(), at, sides):
        """Weight of a cell next to the face with this index along axis d."""
        w = real(0.5)
        if table[SIGNS + 8 * d] != 0 and (at == 0 or at == table[FACES + d] - 1):
            w = real(sides)
        return w

    @ti.func
    def mean(table: ti.template(), s: ti.template(), begin, component, at, sides):
        total = real(0.0)
        if ti.static(staggered):
            for d in ti.static(range(3 - dim, 3)):
                if component == d:
                    w, n = weight(table, d, at[d], sides), table[CELLS + d]
                    for below in ti.static((1, 0)):
                        cell = at
                        cell[d] = at[d] - below
                        if table[SIGNS + 8 * d] == 0:
                            cell[d] = cell[d] % n
                        if cell[d] >= 0 and cell[d] < n:
                            total += w * s[begin + f.place_of_cell(table, cell)]
        else:
            total = s[begin + f.place_of_cell(table, at)]
        return total

    return SimpleNamespace(weight=weight, mean=mean)


@functools.cache
def loops(form: Form) -> SimpleNamespace:
    """Loops over entries."""
    real, dim, _, on_gpu, alone = form
    f, mean = functions(dim, on_gpu), mean_functions(form).mean
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def add_means(
        rounds: ti.i32, table: integers, c: real, sides: ti.i32, adds: ti.i32, s: reals, factors: reals, target: reals,
        begin_s: ti.i32, begin_factors: ti.i32, begin: ti.i32,
    ):
        ti.loop_config(serialize=alone)
        for r in range(rounds):
            component, at, line, own = f.begin(table, r)
            factor = c * factors[begin_factors + component - (3 - dim)]
            for x in range(at[2], f.last(table, at)):
                at[2], e = x, line + x
                total = ti.select(adds == 1, target[begin + e], 0.0)
                if x < own:
                    total += factor * mean(table, s, begin_s, component, at, sides)
                target[begin + e] = total

    @no_type_check
    @kernel
    def multiply(
        rounds: ti.i32, table: integers, sides: ti.i32, g: reals, s: reals, terms: reals,
        begin_g: ti.i32, begin_s: ti.i32,
    ):
        """Compute the product of g and the mean at each entry, 0 beyond a component's own."""
        ti.loop_config(serialize=alone)
        for r in range(rounds):
            component, at, line, own = f.begin(table, r)
            for x in range(at[2], f.last(table, at)):
                at[2], term = x, real(0.0)
                if x < own:
                    term = g[begin_g + line + x] * mean(table, s, begin_s, component, at, sides)
                terms[line + x] = term

    return SimpleNamespace(add_means=add_means, multiply=multiply)


@functools.cache
def adjoint_loop(form: Form) -> Any:
    """Loop over cells."""
    real, dim, staggered, on_gpu, alone = form
    f, weight = functions(dim, on_gpu), mean_functions(form).weight
    reals, integers = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def adj_means(
        rounds: ti.i32, table: integers, c: real, sides: ti.i32, adds: ti.i32, g: reals, factors: reals, target: reals,
        begin_g: ti.i32, begin_factors: ti.i32, begin: ti.i32,
    ):
        ti.loop_config(serialize=alone)
        for r in range(rounds):
            columns, first, line = table[CELLS + 2], 0, r
            if ti.static(on_gpu):
                line, first = r // columns, r % columns
            at = ti.Vector([line // table[CELLS + 1], line % table[CELLS + 1], 0])
            for x in range(first, first + 1 if ti.static(on_gpu) else columns):
                at[2], total = x, real(0.0)
                for d in ti.static(range(3 - dim, 3)):
                    along = real(0.0)
                    if ti.static(staggered):
                        for after in ti.static((0, 1)):
                            face = at
                            face[d] = at[d] + after
                            if table[SIGNS + 8 * d] == 0 and face[d] == table[CELLS + d]:
                                face[d] = 0
                            along += weight(table, d, face[d], sides) * g[begin_g + f.place(table, d, face)]
                    else:
                        along = g[begin_g + f.place(table, d, at)]
                    total += c * factors[begin_factors + d - (3 - dim)] * along
                i = begin + line * columns + x
                target[i] = ti.select(adds == 1, target[i], 0.0) + total

    return adj_means
# fmt: on


def add_means(work: Work, smoke: Entries, factors: Entries, c: float, sides: int, target: Target) -> Launch:
    """Launch that computes c f_a m_a, with `factors` f [dim], at all entries."""
    taken = smoke, factors, target.entries
    given = work.rounds, work.table, c, sides, int(target.adds), *[each.numbers for each in taken]
    return KernelCall(loops(work.form).add_means, *given, moving=[(each, 0) for each in taken])


def adj_means(work: Work, g: Entries, factors: Entries, c: float, sides: int, target: Target) -> Launch:
    """Launch that computes the adjoint of the cells [*cells]."""
    to, loop, cells = target.entries, adjoint_loop(work.form), math.prod(work.model.cells)
    cells //= 1 if work.form.on_gpu else work.model.cells[-1]
    given = cells, work.table, c, sides, int(target.adds), g.numbers, factors.numbers, to.numbers
    return KernelCall(loop, *given, moving=[(each, 0) for each in (g, factors, to)])


def adj_factors(work: Work, g: Entries, smoke: Entries, c: float, sides: int, target: Target) -> Launch:
    """Launch that computes the adjoint of the factors [dim]."""
    terms, loop = work.get("terms", work.entries), loops(work.form).multiply
    given = work.rounds, work.table, sides, g.numbers, smoke.numbers, terms
    products = KernelCall(loop, *given, moving=[(g, 0), (smoke, 0)])
    return Chain(products, work.add_up(terms, work.model.dim, c, target))
