"""Elementary functions, element by element: the derivative of each stands beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Array, Tensor
from .operands import as_tensor, elementwise


def _sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))  # no overflow at either end, and no digits lost where it is small


Exp = elementwise("Exp", np.exp, x=lambda d, z: d * z)
Log = elementwise("Log", np.log, x=lambda d, x: d * (1 / x))
Sqrt = elementwise("Sqrt", np.sqrt, x=lambda d, z: d * (0.5 / z))
Sin = elementwise("Sin", np.sin, x=lambda d, x: d * np.cos(x))
Cos = elementwise("Cos", np.cos, x=lambda d, x: d * -np.sin(x))
Tanh = elementwise("Tanh", np.tanh, x=lambda d, z: d * (1 - z * z))
Sigmoid = elementwise("Sigmoid", _sigmoid, x=lambda d, z: d * (z * (1 - z)))
Softplus = elementwise(
    "Softplus",
    lambda x: np.logaddexp(0, x),
    x=lambda d, x: d * (sigmoid(x) if type(x) is Tensor else _sigmoid(x)),
)


def exp(x: Any) -> Tensor:
    """e^x"""
    return Exp.apply(as_tensor(x))


def log(x: Any) -> Tensor:
    """The natural logarithm. At 0 it is -inf and its derivative inf (PyTorch's convention), with NumPy's warning."""
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
