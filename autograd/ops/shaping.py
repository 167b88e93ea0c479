"""Changes of shape: the rule of each operation stands beside its forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..function import Context, Function
from ..tensor import Array, Tensor
from .operands import as_tensor, broadcast, unbroadcast


class Reshape(Function):
    """The same elements in another shape"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, shape: int | tuple[int, ...]) -> Array:
        ctx.shape = x.data.shape
        return x.data.reshape(shape)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Array, None]:
        return adj.data.reshape(ctx.shape), None

    @staticmethod
    def jvp(ctx: Context, dx: Array, shape: None) -> Array:
        return dx.reshape(ctx.outputs[0][0])


class Transpose(Function):
    """Axes in another order"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, axes: tuple[int, ...] | None) -> Array:
        ctx.axes = axes
        return x.data.transpose(axes)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Array, None]:
        axes = ctx.axes
        return adj.data.transpose(None if axes is None else np.argsort([a % len(axes) for a in axes])), None

    @staticmethod
    def jvp(ctx: Context, dx: Array, axes: None) -> Array:
        return dx.transpose(ctx.axes)


class Expand(Function):
    """Repeated along new axes and along those of length 1"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(x.data, shape)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Array, None]:
        return unbroadcast(ctx, 0, adj.data), None

    @staticmethod
    def jvp(ctx: Context, dx: Array, shape: None) -> Array:
        return broadcast(ctx, dx)


class Clone(Function):
    """A copy"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        return x.data.copy()

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> Array:
        return adj.data

    @staticmethod
    def jvp(ctx: Context, dx: Array) -> Array:
        return dx


class Stack(Function):
    """Tensors of one shape, side by side along a new axis"""

    @staticmethod
    def forward(ctx: Context, axis: int, *parts: Tensor) -> Array:
        ctx.axis = axis
        return np.stack([part.data for part in parts], axis)

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Array | None, ...]:
        return (None, *np.moveaxis(adj.data, ctx.axis, 0))

    @staticmethod
    def jvp(ctx: Context, axis: None, *tangents: Array | None) -> Array:
        shape, dtype = ctx.outputs[0]
        result = np.zeros(shape, dtype)
        slots = np.moveaxis(result, ctx.axis, 0)
        for i, tangent in enumerate(tangents):
            slots[i] = 0 if tangent is None else tangent
        return result


class Cat(Function):
    """Tensors joined along an axis that they have"""

    @staticmethod
    def forward(ctx: Context, axis: int, *parts: Tensor) -> Array:
        result = np.concatenate([part.data for part in parts], axis)
        ctx.axis = axis
        ctx.cuts = np.cumsum([part.data.shape[axis] for part in parts])[:-1]
        return result

    @staticmethod
    def backward(ctx: Context, adj: Tensor) -> tuple[Array | None, ...]:
        return (None, *np.split(adj.data, ctx.cuts, ctx.axis))

    @staticmethod
    def jvp(ctx: Context, axis: None, *tangents: Array | None) -> Array:
        shape, dtype = ctx.outputs[0]
        result = np.zeros(shape, dtype)
        for slot, tangent in zip(np.split(result, ctx.cuts, ctx.axis), tangents, strict=True):
            slot[...] = 0 if tangent is None else tangent
        return result


def reshape(x: Any, shape: int | tuple[int, ...]) -> Tensor:
    """The elements of x, in C order, in another shape; one length may be -1, to be found."""
    return Reshape.apply(as_tensor(x), shape)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """x with axis i of the result being axis `axes[i]` of x; None reverses the axes."""
    return Transpose.apply(as_tensor(x), None if axes is None else tuple(axes))


def broadcast_to(x: Any, shape: int | tuple[int, ...]) -> Tensor:
    """x repeated to `shape`, by NumPy's broadcasting."""
    return Expand.apply(as_tensor(x), shape)


def clone(x: Any) -> Tensor:
    """A differentiable copy."""
    return Clone.apply(as_tensor(x))


def stack(parts: Sequence[Any], axis: int = 0) -> Tensor:
    """Parts of one shape, side by side along a new axis at place `axis` of the result."""
    return Stack.apply(axis, *[as_tensor(part) for part in parts])


def concatenate(parts: Sequence[Any], axis: int = 0) -> Tensor:
    """Parts joined along an axis that they have; their other lengths agree."""
    return Cat.apply(axis, *[as_tensor(part) for part in parts])
