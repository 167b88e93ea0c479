"""Elementwise arithmetic, broadcasting as in NumPy: the rule of each operation stands beside its forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..function import Context, Function
from ..tensor import Array, Tensor

Operand = Any
"""A Tensor, or a constant: a number, or an array (copied, so that later changes to it do not reach backward)."""


def operand(x: Any) -> Operand:
    """Tensors and plain numbers as they are; anything else becomes a constant Tensor."""
    return x if type(x) in (Tensor, float, int) else Tensor(np.array(x, order="C"))


def value(x: Operand) -> Any:
    """The plain array or number behind an operand."""
    return x.data if type(x) is Tensor else x


def unbroadcast(adjoint: Array, x: Operand) -> Array:
    """Sum an adjoint over the axes along which `x` was broadcast."""
    shape = x.data.shape
    if adjoint.shape == shape:
        return adjoint
    lead = adjoint.ndim - len(shape)
    axes = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1 and adjoint.shape[lead + i] != 1))
    return np.asarray(adjoint.sum(axis=axes)).reshape(shape)


class Mul(Function):
    """x * y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        ctx.save_for_backward(x, y)
        return value(x) * value(y)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Array | None, Array | None]:
        x, y = ctx.saved_tensors
        need_x, need_y = ctx.needs_input_grad
        return (
            unbroadcast(adj.data * value(y), x) if need_x else None,
            unbroadcast(adj.data * value(x), y) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Array | None, dy: Array | None) -> Array:
        x, y = ctx.saved_tensors
        return (0 if dx is None else dx * value(y)) + (0 if dy is None else value(x) * dy)


def mul(x: Any, y: Any) -> Tensor:
    """x * y"""
    return Mul.apply(operand(x), operand(y))
