"""Elementwise arithmetic, broadcasting as in NumPy: the rules of each operation stand beside it.

A factor is saved only where the other factor needs a gradient: a write to an operand that no rule reads is allowed.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..tensor import Tensor
from .operands import as_tensor, elementwise, operand, plain

Add = elementwise("Add", operator.add, x=lambda d: d, y=lambda d: d)
Sub = elementwise("Sub", operator.sub, x=lambda d: d, y=lambda d: -d)
Mul = elementwise("Mul", operator.mul, x=lambda d, y: d * y, y=lambda d, x: d * x)
Div = elementwise("Div", operator.truediv, x=lambda d, y: d / y, y=lambda d, x, y: -(d / y) * x / y)
Neg = elementwise("Neg", operator.neg, x=lambda d: -d)


def slope_in_base(x: Any, y: Any) -> Any:
    """The derivative y x^(y-1) of x^y; 0 where y = 0, also at x = 0."""
    if type(y) in (float, int):
        if y == 2:  # the most frequent exponent, without a call of power
            return 2 * x
        return y * x ** (y - 1 if y else 0)
    return y * x ** np.where((plain(x) == 0) & (plain(y) == 0), 0, y - 1)


def slope_in_exponent(x: Any, y: Any) -> Any:
    """The derivative x^y log x of x^y; its limit 0 at x = 0 for y > 0, and 0 for y = 0 too."""
    base = plain(x)
    return x**y * np.log(np.where((base == 0) & (plain(y) >= 0), 1, x))


Pow = elementwise(
    "Pow",
    operator.pow,
    x=lambda d, x, y: d * slope_in_base(x, y),
    y=lambda d, x, y: d * slope_in_exponent(x, y),
    wraps_numbers=False,  # as in PyTorch, where the exponent is a plain argument
)


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

    Convention (PyTorch's): for y = 0 the derivative by x is 0, also at x = 0. At x = 0 the derivative by y is 0 for
    y >= 0, and that by x is inf for 0 < y < 1 (with NumPy's warning). At x < 0 the derivative by y is NaN.
    """
    return Pow.apply(operand(x), operand(y))


def square(x: Any) -> Tensor:
    """x ** 2, a PowBackward node"""
    return Pow.apply(as_tensor(x), 2)
