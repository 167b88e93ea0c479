"""Elementwise arithmetic, broadcasting as in NumPy: the rule of each operation stands beside its forward.

A factor is saved only where the other factor needs a gradient, so that writing to what no rule reads is allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..context import Context
from ..tensor import Array, Tensor
from .operands import Operand, Operation, Tangent, as_tensor, broadcast, operand, plain

Pair = tuple[Any, Any]


class Add(Operation):
    """x + y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        return plain(x) + plain(y)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Pair:
        need_x, need_y = ctx.edges
        return (
            adj if need_x else None,
            adj if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        return broadcast(ctx, (0 if dx is None else dx) + (0 if dy is None else dy))


class Sub(Operation):
    """x - y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        return plain(x) - plain(y)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Pair:
        need_x, need_y = ctx.edges
        return (
            adj if need_x else None,
            -adj if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        return broadcast(ctx, (0 if dx is None else dx) - (0 if dy is None else dy))


class Mul(Operation):
    """x * y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        need_x, need_y = ctx.edges
        ctx.save_for_backward(x if need_y else None, y if need_x else None)
        return plain(x) * plain(y)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Pair:
        x, y = ctx.saved
        need_x, need_y = ctx.edges
        return (
            adj * y if need_x else None,
            adj * x if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        x, y = ctx.saved
        return (0 if dx is None else dx * y) + (0 if dy is None else x * dy)


class Div(Operation):
    """x / y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        ctx.save_for_backward(x if ctx.edges[1] else None, y)
        return plain(x) / plain(y)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Pair:
        x, y = ctx.saved
        need_x, need_y = ctx.edges
        adj_x = adj / y
        return (
            adj_x if need_x else None,
            -adj_x * x / y if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        x, y = ctx.saved
        return ((0 if dx is None else dx) - (0 if dy is None else dy * x / y)) / y


class Neg(Operation):
    """-x"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        return -x.data

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Any:
        return -adj

    @staticmethod
    def jvp(ctx: Context, dx: Array) -> Array:
        return -dx


class Pow(Operation):
    """x ** y"""

    @staticmethod
    def forward(ctx: Context, x: Operand, y: Operand) -> Array:
        ctx.save_for_backward(x, y)
        return plain(x) ** plain(y)

    @staticmethod
    def by_base(x: Any, y: Any) -> Any:
        """y x^(y-1); 0 where y = 0, also at x = 0."""
        if type(y) in (float, int):
            if y == 2:  # the usual one, without a call of power
                return 2 * x
            return y * x ** (y - 1 if y else 0)
        return y * x ** np.where((plain(x) == 0) & (plain(y) == 0), 0, y - 1)

    @staticmethod
    def by_exponent(x: Any, y: Any) -> Any:
        """x^y log x; its limit 0 at x = 0 for y > 0, and 0 for y = 0 too."""
        base = plain(x)
        return x**y * np.log(np.where((base == 0) & (plain(y) >= 0), 1, x))

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Pair:
        need_x, need_y = ctx.edges
        x, y = ctx.saved
        return (
            adj * Pow.by_base(x, y) if need_x else None,
            adj * Pow.by_exponent(x, y) if need_y else None,
        )

    @staticmethod
    def jvp(ctx: Context, dx: Tangent, dy: Tangent) -> Tangent:
        x, y = ctx.saved
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
