"""`python chains.py PACKAGE LENGTH REPETITIONS`: the cost of a node in one package, as JSON.

Stands alone, so that any interpreter can run it outside this checkout, whose folder autograd/ hides HIPS's package.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

FACTOR = 1.0 + 1e-6
CLOCK = time.perf_counter

Chain = Callable[[], tuple[float, float, float]]
"""Records and differentiates a chain: seconds of apply, seconds of backward, the gradient."""


def simphys_chains(length: int) -> dict[str, Chain]:
    """Ours."""
    import numpy as np

    from simphys.autograd import Context, Function, Tensor, tensor

    class Scale(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> Any:
            return x.data * FACTOR

        @staticmethod
        def backward(ctx: Context, adj: Tensor) -> Any:
            return adj.data * FACTOR

    def chain(operation: Callable[[Any], Any]) -> Chain:
        def timed() -> tuple[float, float, float]:
            x = y = tensor(np.ones(1), requires_grad=True)
            start = CLOCK()
            for _ in range(length):
                y = operation(y)
            middle = CLOCK()
            y.backward()
            end = CLOCK()
            assert x.grad is not None
            return middle - start, end - middle, x.grad.item()

        return timed

    def products() -> tuple[float, float, float]:
        """What NumPy alone takes for the two products of a node."""
        y = np.ones(1)
        start = CLOCK()
        for _ in range(length):
            y = y * FACTOR
        middle = CLOCK()
        adj = np.ones(1)
        for _ in range(length):
            adj = adj * FACTOR
        return middle - start, CLOCK() - middle, adj.item()

    return {
        "custom Function": chain(Scale.apply),
        "built-in product": chain(lambda y: y * FACTOR),
        "NumPy's products alone": products,
    }


def torch_chains(length: int) -> dict[str, Chain]:
    """PyTorch's."""
    torch: Any = importlib.import_module("torch")

    torch.set_num_threads(1)

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * FACTOR

        @staticmethod
        def backward(ctx: Any, adj: Any) -> Any:
            return adj * FACTOR

    def chain(operation: Callable[[Any], Any]) -> Chain:
        def timed() -> tuple[float, float, float]:
            x = y = torch.ones((), requires_grad=True)
            start = CLOCK()
            for _ in range(length):
                y = operation(y)
            middle = CLOCK()
            y.backward()
            end = CLOCK()
            return middle - start, end - middle, float(x.grad)

        return timed

    return {"custom Function": chain(Scale.apply), "built-in product": chain(lambda y: y * FACTOR)}


def hips_chains(length: int) -> dict[str, Chain]:
    """HIPS autograd's; its custom primitive works on a plain float, its product on an array."""
    import numpy as np

    hips: Any = importlib.import_module("autograd")
    extend: Any = importlib.import_module("autograd.extend")
    anp: Any = importlib.import_module("autograd.numpy")

    scale = extend.primitive(lambda x: x * FACTOR)
    extend.defvjp(scale, lambda ans, x: lambda adj: adj * FACTOR)

    def chain(operation: Callable[[Any], Any], start_value: Any) -> Chain:
        def repeated(x: Any) -> Any:
            for _ in range(length):
                x = operation(x)
            return x

        def timed() -> tuple[float, float, float]:
            start = CLOCK()
            vjp, y = hips.make_vjp(repeated)(start_value)
            middle = CLOCK()
            gradient = vjp(np.ones_like(y) if np.ndim(y) else 1.0)
            return middle - start, CLOCK() - middle, float(np.sum(gradient))

        return timed

    return {
        "custom Function": chain(scale, 1.0),
        "custom Function, array": chain(scale, np.ones(1)),
        "built-in product": chain(lambda x: anp.multiply(x, FACTOR), np.ones(1)),
    }


PACKAGES = {"simphys": simphys_chains, "torch": torch_chains, "autograd": hips_chains}


def measure(chains: dict[str, Chain], length: int, repetitions: int) -> dict[str, list[float]]:
    """The best [apply, backward, both], us a node, by chain. Raises ArithmeticError on a wrong gradient."""
    best = {}
    for name, timed in chains.items():
        timed()
        runs = [timed() for _ in range(repetitions)]
        if abs(runs[0][2] / FACTOR**length - 1) > 2e-2:
            raise ArithmeticError(f"{name}: the gradient is {runs[0][2]}")
        per_node = [[apply, backward, apply + backward] for apply, backward, _ in runs]
        best[name] = [min(column) / length * 1e6 for column in zip(*per_node, strict=True)]
    return best


if __name__ == "__main__":
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    package, length, repetitions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps(measure(PACKAGES[package](length), length, repetitions)))
