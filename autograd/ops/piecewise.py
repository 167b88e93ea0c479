"""Elementwise operations with kinks: each states the derivative that it takes at its kinks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..context import Context
from ..errors import InputError
from ..node import NO_TENSOR
from ..tensor import Array, Tensor
from .operands import Operand, Operation, as_tensor, broadcast, elementwise, operand, plain


def _share_of_larger(d: Any, x: Any, y: Any) -> Any:
    """The part of an adjoint or tangent that belongs to x where the larger of x and y is taken: half at a tie."""
    x, y = plain(x), plain(y)
    return np.where(x == y, d * 0.5, np.where(x < y, 0, d))


Abs = elementwise("Abs", np.absolute, x=lambda d, x: d * np.sign(plain(x)))
Maximum = elementwise(
    "Maximum", np.maximum, x=lambda d, x, y: _share_of_larger(d, x, y), y=lambda d, x, y: _share_of_larger(d, y, x)
)
Minimum = elementwise(
    "Minimum", np.minimum, x=lambda d, x, y: _share_of_larger(d, y, x), y=lambda d, x, y: _share_of_larger(d, x, y)
)


class Clamp(Operation):
    """x limited to low <= x <= high"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, low: Operand, high: Operand) -> Array:
        ctx.save_for_backward(x, low, high)
        result = x.data if low is None else np.maximum(x.data, plain(low))
        return result if high is None else np.minimum(result, plain(high))

    @staticmethod
    def inside(ctx: Context) -> Any:
        x, low, high = map(plain, ctx.saved_tensors)
        return (low is None or x >= low) & (high is None or x <= high)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None, None]:
        return np.where(Clamp.inside(ctx), adj, 0), None, None

    @staticmethod
    def jvp(ctx: Context, dx: Array, low: None, high: None) -> Array:
        return np.where(Clamp.inside(ctx), dx, 0)


class Where(Operation):
    """x where the condition holds, else y"""

    _other_edge = None  # a number is an operand

    @staticmethod
    def forward(ctx: Context, condition: Tensor, x: Operand, y: Operand) -> Array:
        ctx.edges = (NO_TENSOR, *ctx.edges[1:])  # as in PyTorch, the condition is no operand
        ctx.save_for_backward(condition)
        return np.where(condition.data, plain(x), plain(y))

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[None, Any, Any]:
        condition = ctx.saved_tensors[0].data
        _, need_x, need_y = ctx.edges
        return (
            None,
            np.where(condition, adj, 0) if need_x else None,
            np.where(condition, 0, adj) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, _: None, dx: Array, dy: Array) -> Array:
        condition = ctx.saved_tensors[0].data
        return broadcast(ctx, np.where(condition, dx, dy))


def abs(x: Any) -> Tensor:
    """|x|. Convention (PyTorch's): the derivative at 0 is 0."""
    return Abs.apply(as_tensor(x))


def maximum(x: Any, y: Any) -> Tensor:
    """The larger of x and y, element by element. Convention (PyTorch's): at a tie each gets half of the adjoint."""
    return Maximum.apply(operand(x), operand(y))


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller of x and y, element by element. Convention (PyTorch's): at a tie each gets half of the adjoint."""
    return Minimum.apply(operand(x), operand(y))


def clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    """x limited to [low, high]: constants that broadcast, or None for no limit; where low > high, high counts.

    Convention (PyTorch's): at a bound x still counts as inside, with the derivative 1.
    Errors: InputError for a bound that requires a gradient.
    """
    for bound in (low, high):
        if type(bound) is Tensor and bound.requires_grad:
            raise InputError("clip", "bounds are constants", bound, "Use maximum and minimum, or detach() the bound.")
    return Clamp.apply(as_tensor(x), None if low is None else operand(low), None if high is None else operand(high))


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """x where `condition` (a constant) is true, else y; the three broadcast. The gradient flows to the one chosen."""
    return Where.apply(as_tensor(condition), operand(x), operand(y))
