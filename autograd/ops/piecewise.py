"""Elementwise operations with kinks: each names the derivative that it takes where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..context import Context
from ..errors import InputError
from ..tensor import Array, Tensor
from .algebra import Pair
from .operands import Elementwise, Operand, Operation, Tangent, as_tensor, broadcast, operand, plain


class Abs(Elementwise):
    """|x|"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        ctx.save_for_backward(x)
        return np.absolute(x.data)

    @staticmethod
    def derivative(ctx: Context) -> Array:
        (x,) = ctx.saved_tensors
        return np.sign(x.data)


def _share(flow: Any, loses: Any, ties: Any) -> Any:
    """The part of an adjoint or tangent that concerns one of two: nothing where it loses, half where they tie."""
    return np.where(ties, flow * 0.5, np.where(loses, 0, flow))


class Maximum(Operation):
    """The larger of x and y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        ctx.save_for_backward(x, y)
        return np.maximum(plain(x), plain(y))

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Pair:
        x, y = map(plain, ctx.saved_tensors)
        need_x, need_y = ctx.edges
        return (
            _share(adj, x < y, x == y) if need_x else None,
            _share(adj, y < x, x == y) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        x, y = map(plain, ctx.saved_tensors)
        return (0 if dx is None else _share(dx, x < y, x == y)) + (0 if dy is None else _share(dy, y < x, x == y))


class Minimum(Operation):
    """The smaller of x and y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        ctx.save_for_backward(x, y)
        return np.minimum(plain(x), plain(y))

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Pair:
        x, y = map(plain, ctx.saved_tensors)
        need_x, need_y = ctx.edges
        return (
            _share(adj, x > y, x == y) if need_x else None,
            _share(adj, y > x, x == y) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        x, y = map(plain, ctx.saved_tensors)
        return (0 if dx is None else _share(dx, x > y, x == y)) + (0 if dy is None else _share(dy, y > x, x == y))


class Clamp(Operation):
    """x, moved to the nearest of low <= x <= high"""

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

    @staticmethod
    def forward(ctx: Context, condition: Tensor, x: Operand, y: Operand) -> Array:
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
    def jvp(ctx: Context, _: None, dx: Tangent, dy: Tangent) -> Tangent:
        condition = ctx.saved_tensors[0].data
        return broadcast(ctx, np.where(condition, 0 if dx is None else dx, 0 if dy is None else dy))


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
    """x limited to [low, high]: constants that broadcast, or None for no limit; high wins where low > high.

    Convention (PyTorch's): at a bound x still counts as inside, its derivative is 1.
    Errors: InputError when a bound requires a gradient.
    """
    for bound in (low, high):
        if type(bound) is Tensor and bound.requires_grad:
            raise InputError("clip", "bounds are constants", bound, "Use maximum and minimum, or detach() the bound.")
    return Clamp.apply(as_tensor(x), None if low is None else operand(low), None if high is None else operand(high))


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """x where `condition` (a constant) is true, else y; the three broadcast. The gradient flows to what was taken."""
    return Where.apply(as_tensor(condition), operand(x), operand(y))
