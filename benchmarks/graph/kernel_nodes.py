"""Cost of a node that launches one kernel forward and one backward: ours, and the compilers' own tape.

A chain of y = c x on 1 and on 64 numbers in f64, on one thread, under each compiler that is installed. Ours allocates a
result and an adjoint in each node; the tape's chain is in one field, allocated beforehand.
"""

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple, no_type_check

import numpy as np

from .. import machine
from ..measuring import apart, cells, joined, markdown, ratio
from .chains import CLOCK, FACTOR, Chain, Runs, Way, in_a_loop, in_turn, our_chain

ELEMENTS = (1, 64)
OURS, LOOP = "custom Function", "custom Function, in a loop"
LAUNCHES, TAPE = "the two launches without a node", "the compiler's tape"
WAYS = (OURS, LOOP, LAUNCHES, TAPE)


class _Kernels(NamedTuple):
    forward: Any
    adjoint: Any


@no_type_check
def _kernels() -> _Kernels:
    """Kernels of y = c x and its adjoint on arrays."""
    from simphys.autograd import kernel, runtime

    ti = runtime.ti
    reals = ti.types.ndarray(dtype=ti.f64, ndim=1)

    @kernel
    def scale(x: reals, y: reals):
        for i in range(x.shape[0]):
            y[i] = FACTOR * x[i]

    @kernel
    def adj_scale(adj_y: reals, adj_x: reals):
        for i in range(adj_y.shape[0]):
            adj_x[i] = FACTOR * adj_y[i]

    return _Kernels(scale, adj_scale)


def our_operation(kernels: _Kernels) -> Any:
    """Make the `apply` of a Function with the two kernels."""
    from simphys.autograd import Context, Function, Tensor

    class Scale(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            y = np.empty(x.shape)
            kernels.forward(x, y)
            return y

        @staticmethod
        def backward(ctx: Context, adj_y: Tensor) -> Any:
            adj_x = np.empty(adj_y.shape)
            kernels.adjoint(adj_y, adj_x)
            return adj_x

    return Scale.apply


def launches_alone(kernels: _Kernels, nodes: int, elements: int) -> Chain:
    """Measure the Function's two bodies alone."""

    def launched(kernel: Any) -> float:
        x = np.ones(elements)
        for _ in range(nodes):
            y = np.empty(x.shape)
            kernel(x, y)
            x = y
        return x[-1].item()

    def timed() -> tuple[float, float, float]:
        start = CLOCK()
        launched(kernels.forward)
        middle = CLOCK()
        gradient = launched(kernels.adjoint)
        return middle - start, CLOCK() - middle, gradient

    return timed


@no_type_check
def tape_chain(nodes: int, elements: int) -> Chain:
    """Measure `ti.ad.Tape` with one kernel per node; apply includes clearing the gradients, as the tape does."""
    from simphys.autograd import runtime

    ti = runtime.ti
    x = ti.field(ti.f64, (nodes + 1, elements), needs_grad=True)
    loss = ti.field(ti.f64, (), needs_grad=True)

    @ti.kernel
    def scale(step: int):
        ti.loop_config(serialize=True)  # otherwise every launch wakes another thread
        for i in range(elements):
            x[step + 1, i] = FACTOR * x[step, i]

    @ti.kernel
    def total():
        ti.loop_config(serialize=True)
        for i in range(elements):
            loss[None] += x[nodes, i]

    for i in range(elements):
        x[0, i] = 1.0

    def timed():
        start = CLOCK()
        with ti.ad.Tape(loss):
            for step in range(nodes):
                scale(step)
            total()
            ti.sync()
            middle = CLOCK()
        ti.sync()
        end = CLOCK()
        return middle - start, end - middle, x.grad[0, elements - 1]

    return timed


def measure(nodes: int, repetitions: int) -> Runs:
    """Measure under the compiler of this process, with names "elements, way"."""
    from simphys.autograd import runtime

    runtime.init(precision="f64", threads=1)
    kernels = _kernels()
    operation = our_operation(kernels)
    chains: dict[str, Chain] = {}
    for elements in ELEMENTS:
        ours = our_chain(operation, nodes, elements)
        launches, tape = launches_alone(kernels, nodes, elements), tape_chain(nodes, elements)
        for name, chain in zip(WAYS, (ours, in_a_loop(ours), launches, tape), strict=True):
            chains[f"{elements}, {name}"] = chain
    return in_turn({name: Way(chain, FACTOR**nodes) for name, chain in chains.items()}, nodes, repetitions)


def collect(*, nodes: int, rounds: int, repetitions: int = 3) -> dict[str, Runs]:
    """Measure each compiler in separate, alternating processes."""
    compilers = machine.compilers()
    call = f"graph.kernel_nodes.measure({nodes}, {repetitions})"
    found = [[apart(call, SIMPHYS_COMPILER=compiler) for compiler in compilers] for _ in range(rounds)]
    return {compiler: joined(runs) for compiler, runs in zip(compilers, zip(*found, strict=True), strict=True)}


def table(found: dict[str, Runs]) -> str:
    """Format microseconds per node as a Markdown table, also relative to Taichi's own tape with the same elements."""
    head = ["compiler", "node", "elements", "apply us", "backward us", "both us", "this / Taichi's tape"]
    return markdown(head, _rows(found))


def _rows(found: dict[str, Runs]) -> Iterable[list[str]]:
    for elements, compiler, name in itertools.product(ELEMENTS, found, WAYS):
        runs, tape = found[compiler][f"{elements}, {name}"], found["taichi"][f"{elements}, {TAPE}"]
        yield [compiler, name, str(elements), *cells(runs), ratio(runs, tape)]
