"""Loops that bring fields to extended arrays, with their ghosts (see lattice), and back; and the adjoint of ghosts.

A ghost is sign * source + 2 given, with `given` the value at a side or 0. In the adjoint

    adj_source += sign * adj_ghost      adj_given += 2 adj_ghost

axis by axis in reverse order, since ghosts of one axis are sources of those of the next.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from .sampling import line_start, own_start, read_columns

GHOST = 4
"""Numbers of a ghost in the table of a lattice: its index, that of its source, the sign, and the index of `given`."""


@ti.func
def find_value(r, s, places: ti.template()):
    """Return the place of value number r in an extended array, and in one without ghosts, with its fields' distance."""
    line, x = r // s[0, s.m - 1], r % s[0, s.m - 1]
    start, k = line_start(line, s)
    at, of_field = own_start(start, s, places)
    return k + x, at + x, of_field


def copy_loops(real: Any, dim: int, fields: int) -> tuple[Any, Any]:
    """Loops with a thread for each value."""
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @no_type_check
    @kernel
    def load(given: reals, places: ints, values: ti.i32, first: ti.i32, extended: reals, begin: ti.i32):
        """Copy fields [fields, ...] from `begin` on to those from `first` on in an extended array."""
        for r in range(values):
            k, at, of_field = find_value(r, read_columns(places, 4, dim), places)
            for n in ti.static(range(fields)):
                extended[(first + n) * places[4 * dim] + k] = given[begin + n * of_field + at]

    @no_type_check
    @kernel
    def store(
        extended: reals, first: ti.i32, places: ints, values: ti.i32, adds: ti.i32, target: reals, begin: ti.i32
    ):  # fmt: skip
        """Reverse `load`: set the fields from `begin` on, or add to them."""
        for r in range(values):
            k, at, of_field = find_value(r, read_columns(places, 4, dim), places)
            for n in ti.static(range(fields)):
                to = begin + n * of_field + at
                target[to] = ti.select(adds == 1, target[to], 0.0) + extended[(first + n) * places[4 * dim] + k]

    return load, store


def ghost_loops(real: Any, dim: int, parallel: bool) -> tuple[Any, Any]:
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @ti.func
    def fill(table: ti.template(), given: ti.template(), extended: ti.template(), first, g):
        value = table[GHOST * g + 2] * extended[first + table[GHOST * g + 1]]
        at = table[GHOST * g + 3]
        if at >= 0:
            value += 2 * given[at]
        extended[first + table[GHOST * g]] = value

    @ti.func
    def pass_on(table: ti.template(), adj_given: ti.template(), adj_extended: ti.template(), first, g):
        adj = adj_extended[first + table[GHOST * g]]
        adj_extended[first + table[GHOST * g + 1]] += table[GHOST * g + 2] * adj
        at = table[GHOST * g + 3]
        if at >= 0:
            adj_given[at] += 2 * adj

    @no_type_check
    @kernel
    def extend(table: ints, n0: ti.i32, n1: ti.i32, n2: ti.i32, given: reals, first: ti.i32, extended: reals):
        """Write the ghosts in the table, n0 of the first axis, and so on: those of an axis after those before it."""
        if ti.static(parallel):
            for g in range(n0):
                fill(table, given, extended, first, g)
            for g in range(n1):
                fill(table, given, extended, first, n0 + g)
            if ti.static(dim == 3):
                for g in range(n2):
                    fill(table, given, extended, first, n0 + n1 + g)
        else:
            ti.loop_config(serialize=True)
            for _ in range(1):
                for g in range(n0 + n1 + n2):
                    fill(table, given, extended, first, g)

    @no_type_check
    @kernel
    def adj_extend(
        table: ints, n0: ti.i32, n1: ti.i32, n2: ti.i32, first: ti.i32, adj_given: reals, adj_extended: reals
    ):  # fmt: skip
        if ti.static(parallel):
            if ti.static(dim == 3):
                for g in range(n2):
                    pass_on(table, adj_given, adj_extended, first, n0 + n1 + g)
            for g in range(n1):
                pass_on(table, adj_given, adj_extended, first, n0 + g)
            for g in range(n0):
                pass_on(table, adj_given, adj_extended, first, g)
        else:
            ti.loop_config(serialize=True)
            for _ in range(1):
                for g in range(n0 + n1 + n2):
                    pass_on(table, adj_given, adj_extended, first, n0 + n1 + n2 - 1 - g)

    return extend, adj_extend


def number_loops(real: Any) -> tuple[Any, Any, Any]:
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @no_type_check
    @kernel
    def take(given: reals, count: ti.i32, numbers: reals, begin: ti.i32):
        """Copy what begins at `begin`."""
        for i in range(count):
            numbers[i] = given[begin + i]

    @no_type_check
    @kernel
    def put(numbers: reals, count: ti.i32, adds: ti.i32, target: reals, begin: ti.i32):
        """Reverse `take`: set, or add to, what begins at `begin`."""
        for i in range(count):
            target[begin + i] = ti.select(adds == 1, target[begin + i], 0.0) + numbers[i]

    @no_type_check
    @kernel
    def clear(count: ti.i32, numbers: reals):
        for i in range(count):
            numbers[i] = 0.0

    return take, put, clear


@functools.cache
def kernels(real: Any, dim: int, fields: int, parallel: bool) -> SimpleNamespace:
    """Loops over values and ghosts; `parallel` for a GPU, where sums are atomic."""
    extend, adj_extend = ghost_loops(real, dim, parallel)
    take, put, clear = number_loops(real)
    load, store = copy_loops(real, dim, fields)
    return SimpleNamespace(
        load=load, store=store, extend=extend, adj_extend=adj_extend, take=take, put=put, clear=clear
    )
