"""Sums, means and extremes over axes: the rule of each operation stands beside its forward."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..context import Context
from ..tensor import Array, Tensor
from .operands import Operation, as_tensor, plain
from .shaping import broadcast_to

Axis = int | tuple[int, ...] | None

# Faster than ndarray.sum. Any: NumPy declares `keepdims` for literals only.
sum_over: Any = np.add.reduce
max_over: Any = np.maximum.reduce
min_over: Any = np.minimum.reduce


def _over(shape: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    """The axes that are reduced, from 0."""
    if axis is None:
        return tuple(range(len(shape)))
    return (axis % len(shape),) if isinstance(axis, int) else tuple([a % len(shape) for a in axis])


def keepdims_shape(shape: tuple[int, ...], axis: Axis) -> tuple[int, ...]:
    """`shape` with length 1 along the reduced axes, as keepdims gives."""
    over = _over(shape, axis)
    return tuple([1 if i in over else n for i, n in enumerate(shape)])


def broadcast_back(reduced: Any, shape: tuple[int, ...], axis: Axis) -> Any:
    """A reduced array or Tensor, broadcast along the reduced axes."""
    if type(reduced) is Tensor:
        return broadcast_to(reduced.reshape(keepdims_shape(shape, axis)), shape)
    result = np.empty(shape, reduced.dtype)
    result[...] = reduced if axis is None else reduced.reshape(keepdims_shape(shape, axis))
    return result


class Sum(Operation):
    """The sum over axes"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, axis: Axis, keepdims: bool) -> Array:
        ctx.shape = x.data.shape
        ctx.axis = axis
        ctx.keepdims = keepdims
        return sum_over(x.data, axis=axis, keepdims=keepdims)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None, None]:
        return broadcast_back(adj, ctx.shape, ctx.axis), None, None

    @staticmethod
    def jvp(ctx: Context, dx: Array, axis: None, keepdims: None) -> Array:
        return sum_over(dx, axis=ctx.axis, keepdims=ctx.keepdims)


class Mean(Operation):
    """The mean over axes"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, axis: Axis, keepdims: bool) -> Array:
        ctx.shape = x.data.shape
        ctx.axis = axis
        ctx.keepdims = keepdims
        total = sum_over(x.data, axis=axis, keepdims=keepdims)
        ctx.count = x.data.size // total.size if total.size else 1
        return total / ctx.count

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None, None]:
        # Over no elements the mean is NaN and its adjoint empty.
        return broadcast_back(adj, ctx.shape, ctx.axis) / (ctx.count or 1), None, None

    @staticmethod
    def jvp(ctx: Context, dx: Array, axis: None, keepdims: None) -> Array:
        return sum_over(dx, axis=ctx.axis, keepdims=ctx.keepdims) / (ctx.count or 1)


def _shares(ctx: Context) -> Array:
    """The derivative of an extreme: 1 at its element, shared evenly between tied ones."""
    x, y = map(plain, ctx.saved_tensors)
    extreme = y.reshape(keepdims_shape(x.shape, ctx.axis)) == x
    return extreme / sum_over(extreme, axis=ctx.axis, keepdims=True, dtype=x.dtype)


class Amax(Operation):
    """The largest element over axes"""

    extreme = staticmethod(max_over)

    @staticmethod
    def forward(ctx: Context, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
        ctx.axis = axis
        ctx.keepdims = keepdims
        y = Tensor(np.asarray(ctx.function.extreme(x.data, axis=axis, keepdims=keepdims)))
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None, None]:
        shares = _shares(ctx)
        return shares * broadcast_back(adj, shares.shape, ctx.axis), None, None

    @staticmethod
    def jvp(ctx: Context, dx: Array, axis: None, keepdims: None) -> Array:
        return sum_over(_shares(ctx) * dx, axis=ctx.axis, keepdims=ctx.keepdims)


class Amin(Amax):
    """The smallest element over axes"""

    extreme = staticmethod(min_over)


def sum(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The sum over `axis`: an int, a tuple of ints, or None for all axes. With `keepdims` these stay, with length 1."""
    return Sum.apply(as_tensor(x), axis, keepdims)


def mean(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The mean over `axis` (as in `sum`); over no elements it is NaN, with NumPy's warning."""
    return Mean.apply(as_tensor(x), axis, keepdims)


def max(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The largest element over `axis` (as in `sum`); over no elements NumPy's ValueError.

    Convention (that of PyTorch's amax): tied elements share the adjoint evenly.
    """
    return Amax.apply(as_tensor(x), axis, keepdims)


def min(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element over `axis` (as in `sum`); over no elements NumPy's ValueError.

    Convention (that of PyTorch's amin): tied elements share the adjoint evenly.
    """
    return Amin.apply(as_tensor(x), axis, keepdims)
