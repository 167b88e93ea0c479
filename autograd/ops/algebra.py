"""Elementwise arithmetic, broadcasting as in NumPy: the rule of each operation stands beside its forward.

A factor is saved only where the other factor needs a gradient, so that writing to what no rule reads is allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..function import Context, Function
from ..tensor import Array, Tensor
from .operands import Operand, Tangent, as_tensor, broadcast, operand, unbroadcast, value

Pair = tuple[Array | None, Array | None]


class Add(Function):
    """x + y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        return value(x) + value(y)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Pair:
        need_x, need_y = ctx.needs_input_grad
        return (
            unbroadcast(ctx, 0, adj.data) if need_x else None,
            unbroadcast(ctx, 1, adj.data) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        return broadcast(ctx, (0 if dx is None else dx) + (0 if dy is None else dy))


class Sub(Function):
    """x - y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        return value(x) - value(y)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Pair:
        need_x, need_y = ctx.needs_input_grad
        return (
            unbroadcast(ctx, 0, adj.data) if need_x else None,
            -unbroadcast(ctx, 1, adj.data) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        return broadcast(ctx, (0 if dx is None else dx) - (0 if dy is None else dy))


class Mul(Function):
    """x * y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        need_x, need_y = ctx.needs_input_grad
        ctx.save_for_backward(x if need_y else None, y if need_x else None)
        return value(x) * value(y)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Pair:
        x, y = ctx.saved_tensors
        need_x, need_y = ctx.needs_input_grad
        return (
            unbroadcast(ctx, 0, adj.data * value(y)) if need_x else None,
            unbroadcast(ctx, 1, adj.data * value(x)) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        x, y = ctx.saved_tensors
        return (0 if dx is None else dx * value(y)) + (0 if dy is None else value(x) * dy)


class Div(Function):
    """x / y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, y)
        return value(x) / value(y)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Pair:
        x, y = ctx.saved_tensors
        need_x, need_y = ctx.needs_input_grad
        adj_x = adj.data / value(y)
        return (
            unbroadcast(ctx, 0, adj_x) if need_x else None,
            unbroadcast(ctx, 1, -adj_x * value(x) / value(y)) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        x, y = ctx.saved_tensors
        return ((0 if dx is None else dx) - (0 if dy is None else dy * value(x) / value(y))) / value(y)


class Neg(Function):
    """-x"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        return -x.data

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Array:
        return -adj.data

    @staticmethod
    def jvp(ctx: Context, dx: Array) -> Array:
        return -dx


class Pow(Function):
    """x ** y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        ctx.save_for_backward(x, y)
        return value(x) ** value(y)

    @staticmethod
    def by_base(x: Any, y: Any) -> Any:
        """y x^(y-1); 0 where y = 0, also at x = 0."""
        if type(y) is Tensor:
            exponent = y.data
            return exponent * value(x) ** np.where(exponent == 0, 0, exponent - 1)
        if y == 2:  # the usual one, without a call of power
            return 2 * value(x)
        return y * value(x) ** (y - 1 if y else 0)

    @staticmethod
    def by_exponent(x: Any, y: Any) -> Any:
        """x^y log x; its limit 0 at x = 0 for y > 0, and 0 for y = 0 too."""
        base, exponent = value(x), value(y)
        return base**exponent * np.log(np.where((base == 0) & (exponent >= 0), 1, base))

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Pair:
        need_x, need_y = ctx.needs_input_grad
        x, y = ctx.saved_tensors
        return (
            unbroadcast(ctx, 0, adj.data * Pow.by_base(x, y)) if need_x else None,
            unbroadcast(ctx, 1, adj.data * Pow.by_exponent(x, y)) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        x, y = ctx.saved_tensors
        return (0 if dx is None else dx * Pow.by_base(x, y)) + (0 if dy is None else dy * Pow.by_exponent(x, y))


def add(x: Any, y: Any) -> Tensor:
    """x + y"""
    return Add.apply(operand(x), operand(y))


def sub(x: Any, y: Any) -> Tensor:
    """x - y"""
    return Sub.apply(operand(x), operand(y))


def mul(x: Any, y: Any) -> Tensor:
    """x * y"""
    return Mul.apply(operand(x), operand(y))


def div(x: Any, y: Any) -> Tensor:
    """x / y, true division"""
    return Div.apply(operand(x), operand(y))


def neg(x: Any) -> Tensor:
    """-x"""
    return Neg.apply(as_tensor(x))


def pow(x: Any, y: Any) -> Tensor:
    """x ** y

    Convention (PyTorch's): for y = 0 the derivative by x is 0, also at x = 0; at x = 0 the derivative by y is 0 for
    y >= 0, that by x is inf for 0 < y < 1 (with NumPy's warning); at x < 0 the derivative by y is NaN.
    """
    return Pow.apply(operand(x), operand(y))


def square(x: Any) -> Tensor:
    """x ** 2, a PowBackward node"""
    return Pow.apply(as_tensor(x), 2)
