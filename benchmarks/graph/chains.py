"""`python chains.py PACKAGE NODES REPETITIONS`: the cost of a node on one number in one package, as JSON.

The script imports nothing else of this project, so that any interpreter can run it outside the checkout, whose folder
autograd/ hides HIPS's package.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

FACTOR = 1.0 + 2.0**-10  # exact in f32, too
CLOCK = time.perf_counter

Chain = Callable[[], tuple[float, float, float]]
"""Function that records and differentiates a chain: seconds of apply, seconds of backward, the gradient."""

Runs = dict[str, list[list[float]]]
"""Microseconds per node of [apply, backward, both], one for each repetition, by the chain's name."""


class Way(NamedTuple):
    """Chain, with its expected gradient."""

    chain: Chain
    gradient: float


def in_a_loop(chain: Chain, times: int = 3) -> Chain:
    """Average over consecutive chains, to include the occasional full garbage collection of a program."""

    def timed() -> tuple[float, float, float]:
        apply, backward, gradients = zip(*[chain() for _ in range(times)], strict=True)
        return sum(apply) / times, sum(backward) / times, gradients[-1]

    return timed


def our_product(factor: float = FACTOR) -> Any:
    """Make the `apply` of a custom Function y = factor x that computes in NumPy and saves nothing."""
    from simphys.autograd import Context, Function, Tensor

    class Scale(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            return x.data * factor

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            return adj.data * factor

    return Scale.apply


def our_identity() -> Any:
    """Make the `apply` of a minimal custom Function: forward copies, backward returns its adjoint."""
    from simphys.autograd import Context, Function, Tensor

    class Identity(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            return x.data.copy()

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            return adj.data

    return Identity.apply


def our_chain(operation: Callable[[Any], Any], nodes: int, elements: int = 1) -> Chain:
    """Make our chains, on `elements` numbers."""
    import numpy as np

    from simphys.autograd import tensor

    def timed() -> tuple[float, float, float]:
        x = y = tensor(np.ones(elements), requires_grad=True)
        seed = np.ones(elements)
        start = CLOCK()
        for _ in range(nodes):
            y = operation(y)
        middle = CLOCK()
        y.backward(seed)
        end = CLOCK()
        assert x.grad is not None
        return middle - start, end - middle, x.grad.data[-1].item()

    return timed


def numpy_chain(operation: Callable[[Any], Any], adjoint: Callable[[Any], Any], nodes: int) -> Chain:
    """Do the same arithmetic without nodes."""
    import numpy as np

    def timed() -> tuple[float, float, float]:
        y, adj = np.ones(1), np.ones(1)
        start = CLOCK()
        for _ in range(nodes):
            y = operation(y)
        middle = CLOCK()
        for _ in range(nodes):
            adj = adjoint(adj)
        return middle - start, CLOCK() - middle, adj.item()

    return timed


def simphys_ways(nodes: int) -> dict[str, Way]:
    """Make our chains, and those of NumPy alone."""
    grown = FACTOR**nodes
    custom = our_chain(our_product(), nodes)
    return {
        "custom Function": Way(custom, grown),
        "custom Function, in a loop": Way(in_a_loop(custom), grown),
        "custom Function, a copy and no arithmetic": Way(our_chain(our_identity(), nodes), 1.0),
        "built-in product": Way(our_chain(lambda y: y * FACTOR, nodes), grown),
        "NumPy's two products alone": Way(numpy_chain(lambda y: y * FACTOR, lambda adj: adj * FACTOR, nodes), grown),
        "NumPy's copy alone": Way(numpy_chain(lambda y: y.copy(), lambda adj: adj, nodes), 1.0),
    }


def torch_product() -> Any:
    """Make the `apply` of PyTorch's custom Function y = c x."""
    torch: Any = importlib.import_module("torch")

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * FACTOR

        @staticmethod
        def backward(ctx: Any, adj: Any) -> Any:
            return adj * FACTOR

    return Scale.apply


def torch_chain(operation: Callable[[Any], Any], nodes: int) -> Chain:
    """Run a chain of PyTorch on one thread."""
    torch: Any = importlib.import_module("torch")
    torch.set_num_threads(1)

    def timed() -> tuple[float, float, float]:
        x = y = torch.ones((), requires_grad=True)
        start = CLOCK()
        for _ in range(nodes):
            y = operation(y)
        middle = CLOCK()
        y.backward()
        end = CLOCK()
        return middle - start, end - middle, float(x.grad)

    return timed


def torch_ways(nodes: int) -> dict[str, Way]:
    """Make PyTorch's chains."""
    operations = {"custom Function": torch_product(), "built-in product": lambda y: y * FACTOR}
    return {name: Way(torch_chain(operation, nodes), FACTOR**nodes) for name, operation in operations.items()}


def hips_ways(nodes: int) -> dict[str, Way]:
    """Make HIPS autograd's chains; its custom primitive also works on a plain float, its product on an array."""
    import numpy as np

    hips: Any = importlib.import_module("autograd")
    extend: Any = importlib.import_module("autograd.extend")
    anp: Any = importlib.import_module("autograd.numpy")

    scale = extend.primitive(lambda x: x * FACTOR)
    extend.defvjp(scale, lambda ans, x: lambda adj: adj * FACTOR)

    def way(operation: Callable[[Any], Any], start_value: Any) -> Way:
        def repeated(x: Any) -> Any:
            for _ in range(nodes):
                x = operation(x)
            return x

        def timed() -> tuple[float, float, float]:
            start = CLOCK()
            vjp, y = hips.make_vjp(repeated)(start_value)
            middle = CLOCK()
            gradient = vjp(np.ones_like(y) if np.ndim(y) else 1.0)
            return middle - start, CLOCK() - middle, float(np.sum(gradient))

        return Way(timed, FACTOR**nodes)

    return {
        "custom Function, float": way(scale, 1.0),
        "custom Function": way(scale, np.ones(1)),
        "built-in product": way(lambda x: anp.multiply(x, FACTOR), np.ones(1)),
    }


PACKAGES = {"simphys": simphys_ways, "torch": torch_ways, "autograd": hips_ways}


def in_turn(ways: dict[str, Way], nodes: int, repetitions: int) -> Runs:
    """Measure all ways in each repetition, after a warm-up. Errors: ArithmeticError for a wrong gradient.

    Garbage is collected before each chain, so that none pays for another, nor for when the last collection was.
    """
    runs: Runs = {name: [] for name in ways}
    for repetition in range(repetitions + 1):
        for name, (chain, expected) in ways.items():
            gc.collect()
            apply, backward, gradient = chain()
            if abs(gradient / expected - 1) > 1.2e-7 * nodes:  # one f32 rounding per node
                raise ArithmeticError(f"{name}: the gradient is {gradient}, not {expected}")
            if repetition:
                runs[name].append([seconds / nodes * 1e6 for seconds in (apply, backward, apply + backward)])
    return runs


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    package, count, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps(in_turn(PACKAGES[package](count), count, repeats)))
