"""Loops over the entries of a velocity: the places where they lie, and sums of them in a fixed order.

A velocity [dim, *faces] is gone through entry by entry. Indices have three axes, of which a plane has none of the
first; so has the number of a component, which is that of its axis.
"""

import functools
import math
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels import device
from simphys.autograd.kernels.runtime import ti
from simphys.numerics.cell_sums import kernels
from simphys.simulator import Array
from simphys.substep import Chain, Entries, KernelCall, Launch, Target

from .faces import is_prescribed, own_faces
from .model import Smoke

FACES, COMPONENT, CELLS, OWN, SIGNS, GIVEN, FIXED, LENGTH = 0, 3, 4, 7, 16, 34, 52, 58
"""Places in the table of a model: the counts of faces, entries of a component, counts of cells, a component's own faces
[component, axis], and for each side [component, axis, end] the sign of a ghost and the index of its given velocity, or
-1; then, for each side [axis, end], 1 if the normal velocity is prescribed there."""
PERIODIC = 0
"""The sign of no ghost: the entry at the opposite side lies next."""
PARTS = 256
"""Number of sums that a sum is made of."""
ENTRY_US = 0.004
"""Serial cost [us] of an entry in a loop."""


@runtime.cached(maxsize=8)
def table_of(model: Smoke) -> Any:
    """Make the table of a model, on the device."""
    table, first = np.zeros(LENGTH, np.int32), 3 - model.dim
    table[FACES + first : FACES + 3], table[CELLS + first : CELLS + 3] = model.faces, model.cells
    table[:first] = table[CELLS : CELLS + first] = 1
    table[COMPONENT] = np.prod(model.faces)
    own, signs, given = (np.zeros(shape, np.int32) for shape in ((3, 3), (3, 3, 2), (3, 3, 2)))
    for component in range(model.dim):
        own[first + component] = 1
        own[first + component, first:] = own_faces(model, component)
        for side in range(2 * model.dim):
            at = first + component, first + side // 2, side % 2
            signs[at], given[at] = _ghost(model, component, side)
    table[OWN:SIGNS], table[SIGNS:GIVEN], table[GIVEN:FIXED] = own.reshape(-1), signs.reshape(-1), given.reshape(-1)
    fixed = [is_prescribed(model, side) for side in range(2 * model.dim)]
    table[FIXED + 2 * first :] = fixed
    return device.to_device(table)


def _ghost(model: Smoke, component: int, side: int) -> tuple[int, int]:
    """Return the sign of a ghost, and the index of the given velocity that it depends on, or -1."""
    kind, normal = model.boundaries[side], component == side // 2
    if kind == "periodic":
        return PERIODIC, -1
    if not normal and (kind == "inflow" or (kind == "closed" and not model.slip)):
        return -1, model.dim * side + component
    return (-1 if normal and model.grid == "collocated" and kind == "closed" else 1), -1


class Form(NamedTuple):
    """Form of the loops: line by line on a processor, or one thread for each entry on a GPU."""

    real: Any
    dim: int
    staggered: bool
    on_gpu: bool
    alone: bool
    """True for one thread of a processor."""


def form_of(model: Smoke) -> Form:
    """Return the form of loops under the settings in force."""
    on_gpu = runtime.settings().on_gpu
    alone = not on_gpu and not runtime.parallel(ENTRY_US * model.dim * float(np.prod(model.faces)))
    return Form(runtime.real(), model.dim, model.grid == "staggered", on_gpu, alone)


@functools.cache
def functions(dim: int, on_gpu: bool) -> SimpleNamespace:
    """Functions of the places of entries."""

    @ti.func
    def begin(table: ti.template(), r):
        """Return the component of a round, the index of its first entry, the number of that, and the end of its own.

        A round is a line along the last axis, or one entry on a GPU. From the last result on, the component has no
        entries of its own.
        """
        columns, first = table[FACES + 2], 0
        line = r
        if ti.static(on_gpu):
            line, first = r // columns, r % columns
        rows = table[FACES + 1]
        component = line // rows // table[FACES] + 3 - dim
        at = ti.Vector([line // rows % table[FACES], line % rows, first])
        end = table[OWN + 3 * component + 2]
        for d in ti.static(range(3 - dim, 2)):
            if at[d] >= table[OWN + 3 * component + d]:
                end = 0
        return component, at, line * columns, end

    @ti.func
    def last(table: ti.template(), at):
        """Return the end of the entries of a round."""
        end = table[FACES + 2]
        if ti.static(on_gpu):
            end = at[2] + 1
        return end

    @ti.func
    def place(table: ti.template(), component, at):
        """Return the number of an entry."""
        line = at[0] * table[FACES + 1] + at[1]
        return (component - (3 - dim)) * table[COMPONENT] + line * table[FACES + 2] + at[2]

    @ti.func
    def place_of_cell(table: ti.template(), at):
        return (at[0] * table[CELLS + 1] + at[1]) * table[CELLS + 2] + at[2]

    @ti.func
    def is_free(table: ti.template(), component, at):
        """Return False at an entry that a side prescribes."""
        free = True
        for d in ti.static(range(3 - dim, 3)):
            if component == d:
                if at[d] == 0 and table[FIXED + 2 * d] == 1:
                    free = False
                if at[d] == table[OWN + 3 * component + d] - 1 and table[FIXED + 2 * d + 1] == 1:
                    free = False
        return free

    return SimpleNamespace(begin=begin, last=last, place=place, place_of_cell=place_of_cell, is_free=is_free)


@functools.cache
def sum_loops(real: Any) -> SimpleNamespace:
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @no_type_check
    @kernel
    def add_up(sums: ti.i32, adds: ti.i32, factor: real, partial: reals, target: reals, begin: ti.i32):
        """Add up the parts of each sum."""
        for n in range(sums):
            total = real(0.0)
            for k in range(PARTS):
                total += partial[n * PARTS + k]
            target[begin + n] = ti.select(adds == 1, target[begin + n], 0.0) + factor * total

    @no_type_check
    @kernel
    def add_multiple(
        count: ti.i32, factor: real, adds: ti.i32, x: reals, target: reals, begin_x: ti.i32, begin: ti.i32
    ):  # fmt: skip
        for e in range(count):
            target[begin + e] = ti.select(adds == 1, target[begin + e], 0.0) + factor * x[begin_x + e]

    @no_type_check
    @kernel
    def repeat(
        count: ti.i32, each: ti.i32, factor: real, adds: ti.i32, x: reals, target: reals, begin_x: ti.i32, begin: ti.i32
    ):  # fmt: skip
        for e in range(count):
            target[begin + e] = ti.select(adds == 1, target[begin + e], 0.0) + factor * x[begin_x + e // each]

    @no_type_check
    @kernel
    def square(count: ti.i32, x: reals, terms: reals, begin: ti.i32):
        for e in range(count):
            terms[e] = x[begin + e] * x[begin + e]

    return SimpleNamespace(add_up=add_up, add_multiple=add_multiple, repeat=repeat, square=square)


class Work:
    """Arrays of a model's entries on the device, by name, and what loops over them take."""

    def __init__(self, model: Smoke) -> None:
        self.model, self.table = model, table_of(model)
        self.entries, self.form = model.dim * int(np.prod(model.faces)), form_of(model)
        self.rounds = self.entries if self.form.on_gpu else self.entries // model.faces[-1]
        self._arrays: dict[str, Any] = {}

    def get(self, name: str, count: int) -> Any:
        """Return an array of `count` numbers, initially zero."""
        if name not in self._arrays:
            self._arrays[name] = device.to_device(np.zeros(count, runtime.real_dtype()))
        return self._arrays[name]

    def add_up(self, terms: Any, sums: int, factor: float, target: Target) -> Launch:
        """Launch that computes sums of terms, as many for each, times a factor."""
        loops, partial = sum_loops(runtime.real()), self.get("partial", PARTS * self.model.dim)
        to, count = target.entries, self.entries // sums
        parts = KernelCall(kernels(runtime.real()).add_up, sums, count, PARTS, terms, partial)
        given = sums, int(target.adds), factor, partial, to.numbers
        return Chain(parts, KernelCall(loops.add_up, *given, moving=[(to, 0)]))

    def copy(self, given: Entries, target: Target, factor: float = 1.0) -> Launch:
        """Launch that sets the target to a multiple of entries."""
        loop, to = sum_loops(runtime.real()).add_multiple, target.entries
        taken = self.entries, factor, int(target.adds), given.numbers, to.numbers
        return KernelCall(loop, *taken, moving=[(given, 0), (to, 0)])

    def repeat(self, numbers: Entries, factor: float, target: Target) -> Launch:
        """Launch that sets all entries of a component to its number, times a factor."""
        loop, to = sum_loops(runtime.real()).repeat, target.entries
        taken = self.entries, self.entries // self.model.dim, factor, int(target.adds), numbers.numbers, to.numbers
        return KernelCall(loop, *taken, moving=[(numbers, 0), (to, 0)])

    def ones(self) -> Entries:
        """Return a factor of 1 for each component."""
        return Entries(_ones(self.model))


@runtime.cached(maxsize=4)
def work_of(model: Smoke) -> Work:
    """Return the arrays of a model."""
    return Work(model)


def norm_of(model: Smoke, given: Entries) -> float:
    """Compute the norm of a velocity; on a processor without BLAS, which would wake other threads, and in f64."""
    work, numbers = work_of(model), given.numbers
    if isinstance(numbers, np.ndarray):
        own = numbers[given.begin : given.begin + work.entries]
        return float(np.sqrt(np.einsum("i,i", own, own, dtype=np.float64)))
    terms, found = work.get("terms", work.entries), work.get("norm", 1)
    KernelCall(sum_loops(runtime.real()).square, work.entries, given.numbers, terms, moving=[(given, 0)])()
    work.add_up(terms, 1, 1.0, Target(Entries(found)))()
    return math.sqrt(device.to_host(found, (1,))[0])


@runtime.cached(maxsize=8)
def _ones(model: Smoke) -> Array:
    ones: Array = device.to_device(np.ones(model.dim, runtime.real_dtype()))
    return ones
