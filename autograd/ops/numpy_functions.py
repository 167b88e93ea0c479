"""NumPy's own functions, called with Tensors: the operation for each of them (NEP 13 and NEP 18)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import InputError
from .algebra import add, div, mul, neg, pow, square, sub
from .functions import cos, exp, log, sin, sqrt, tanh
from .linear import matmul, norm
from .piecewise import abs, clip, maximum, minimum, where
from .reductions import max, mean, min, sum
from .shaping import broadcast_to, clone, concatenate, reshape, stack, transpose

_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.absolute: abs,
    np.add: add,
    np.cos: cos,
    np.divide: div,
    np.exp: exp,
    np.log: log,
    np.matmul: matmul,
    np.maximum: maximum,
    np.minimum: minimum,
    np.multiply: mul,
    np.negative: neg,
    np.power: pow,
    np.sin: sin,
    np.sqrt: sqrt,
    np.square: square,
    np.subtract: sub,
    np.tanh: tanh,
}
_REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {np.add: sum, np.maximum: max, np.minimum: min}
_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.broadcast_to: broadcast_to,
    np.clip: clip,
    np.concatenate: concatenate,
    np.copy: clone,
    np.linalg.norm: lambda x, ord=None, axis=None, keepdims=False: (
        norm(x, axis, keepdims=keepdims) if ord in (None, 2) and (ord is None or axis is not None) else NotImplemented
    ),
    np.max: lambda x, axis=None, keepdims=False: max(x, axis, keepdims=keepdims),
    np.mean: lambda x, axis=None, keepdims=False: mean(x, axis, keepdims=keepdims),
    np.min: lambda x, axis=None, keepdims=False: min(x, axis, keepdims=keepdims),
    np.reshape: reshape,
    np.stack: stack,
    np.sum: lambda x, axis=None, keepdims=False: sum(x, axis, keepdims=keepdims),
    np.transpose: transpose,
    np.where: where,
}


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A ufunc, or its `reduce`, of Tensors. Errors: InputError for one that `ops` has no rule for."""
    if method == "__call__" and ufunc in _UFUNCS and not options:
        return _UFUNCS[ufunc](*inputs)
    if method == "reduce" and ufunc in _REDUCTIONS and options.keys() <= {"axis", "keepdims"}:
        axis = inputs[1] if len(inputs) > 1 else options.get("axis", 0)
        return _REDUCTIONS[ufunc](inputs[0], axis, keepdims=options.get("keepdims", False))
    raise _unknown(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"), options)


def apply_function(function: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A function of NumPy, called with Tensors. Errors: InputError for one that `ops` has no rule for."""
    operation = _FUNCTIONS.get(function)
    if operation is not None and _takes(operation, inputs, options):
        result = operation(*inputs, **options)
        if result is not NotImplemented:
            return result
    raise _unknown(f"{function.__module__}.{function.__name__}", options)


def _takes(operation: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> bool:
    try:
        inspect.signature(operation).bind(*inputs, **options)
    except TypeError:
        return False
    return True


def _unknown(name: str, options: dict[str, Any]) -> InputError:
    found = f"a call with {', '.join(options)}" if options else "a call with a Tensor"
    remedy = "Use simphys.autograd.ops, or x.numpy() for values without a gradient."
    return InputError(name, "a function of Tensors has a rule in ops, for these options", found, remedy)
