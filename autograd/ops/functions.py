"""Elementary functions, element by element: the derivative of each stands beside its forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..context import Context
from ..tensor import Array, Tensor
from .operands import Elementwise, as_tensor


def _saved(ctx: Context, y: Any) -> Tensor:
    """The result, saved: the derivative is written in terms of it."""
    result = Tensor(np.asarray(y))
    ctx.save_for_backward(result)
    return result


def _sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))  # neither end overflows, and the small one keeps its digits


class Exp(Elementwise):
    """e^x"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        return _saved(ctx, np.exp(x.data))

    @staticmethod
    def derivative(ctx: Context) -> Any:
        (y,) = ctx.saved
        return y


class Log(Elementwise):
    """The natural logarithm"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        ctx.save_for_backward(x)
        return np.log(x.data)

    @staticmethod
    def derivative(ctx: Context) -> Any:
        (x,) = ctx.saved
        return 1 / x


class Sqrt(Elementwise):
    """The square root"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        return _saved(ctx, np.sqrt(x.data))

    @staticmethod
    def derivative(ctx: Context) -> Any:
        (y,) = ctx.saved
        return 0.5 / y


class Sin(Elementwise):
    """sin x"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        ctx.save_for_backward(x)
        return np.sin(x.data)

    @staticmethod
    def derivative(ctx: Context) -> Any:
        (x,) = ctx.saved
        return np.cos(x)


class Cos(Elementwise):
    """cos x"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        ctx.save_for_backward(x)
        return np.cos(x.data)

    @staticmethod
    def derivative(ctx: Context) -> Any:
        (x,) = ctx.saved
        return -np.sin(x)


class Tanh(Elementwise):
    """tanh x"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        return _saved(ctx, np.tanh(x.data))

    @staticmethod
    def derivative(ctx: Context) -> Any:
        (y,) = ctx.saved
        return 1 - y * y


class Sigmoid(Elementwise):
    """1 / (1 + e^-x)"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Tensor:
        return _saved(ctx, _sigmoid(x.data))

    @staticmethod
    def derivative(ctx: Context) -> Any:
        (y,) = ctx.saved
        return y * (1 - y)


class Softplus(Elementwise):
    """log(1 + e^x)"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        ctx.save_for_backward(x)
        return np.logaddexp(0, x.data)

    @staticmethod
    def derivative(ctx: Context) -> Any:
        (x,) = ctx.saved
        return sigmoid(x) if type(x) is Tensor else _sigmoid(x)


def exp(x: Any) -> Tensor:
    """e^x"""
    return Exp.apply(as_tensor(x))


def log(x: Any) -> Tensor:
    """The natural logarithm; at 0 it is -inf and its derivative inf (PyTorch's convention), with NumPy's warning."""
    return Log.apply(as_tensor(x))


def sqrt(x: Any) -> Tensor:
    """The square root. Convention (PyTorch's): the derivative at 0 is inf, with NumPy's warning."""
    return Sqrt.apply(as_tensor(x))


def sin(x: Any) -> Tensor:
    """sin x, x in radians"""
    return Sin.apply(as_tensor(x))


def cos(x: Any) -> Tensor:
    """cos x, x in radians"""
    return Cos.apply(as_tensor(x))


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent"""
    return Tanh.apply(as_tensor(x))


def sigmoid(x: Any) -> Tensor:
    """1 / (1 + e^-x), without overflow for any x"""
    return Sigmoid.apply(as_tensor(x))


def softplus(x: Any) -> Tensor:
    """log(1 + e^x), a smooth maximum of x and 0, without overflow for any x"""
    return Softplus.apply(as_tensor(x))
