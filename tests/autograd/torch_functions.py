"""Functions of this layer and of torch, for tests in which one calls the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Context, Function, Tensor, ops

torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install 'simphys[torch]')")


def leaf(*values: float, dtype: Any = torch.float64) -> Any:
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def formula(x: Any, y: Any, math: Any) -> Any:
    return x * math.sin(y) + math.exp(x) / (1.0 + y * y)


def ours(x: Tensor, y: Tensor) -> Tensor:
    return formula(x, y, ops)


def theirs(x: Any, y: Any) -> Any:
    return formula(x, y, torch)


class Scale(Function):
    """factor * x and the number of elements; once differentiable."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, factor: float) -> tuple[np.ndarray, int]:
        ctx.factor = factor
        return factor * x.data, x.size

    @staticmethod
    def backward(ctx: Context, adj: Tensor, _: Tensor) -> tuple[np.ndarray, None]:
        return ctx.factor * adj.data, None


class Unreached(Function):
    """Its backward must not be called."""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> np.ndarray:
        return x.data.copy()


def network(inputs: int, outputs: int) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = torch.nn.Linear(inputs, 5), torch.nn.Tanh(), torch.nn.Linear(5, outputs)
        return torch.nn.Sequential(*layers).double()
