"""Changes of shape: the rule of each operation stands beside its forward."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..context import Context
from ..tensor import Array, Tensor
from .operands import Operation, as_tensor, broadcast


class Reshape(Operation):
    """The same elements in another shape"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, shape: int | tuple[int, ...]) -> Array:
        ctx.shape = x.data.shape
        return x.data.reshape(shape)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None]:
        return adj.reshape(ctx.shape), None

    @staticmethod
    def jvp(ctx: Context, dx: Array, shape: None) -> Array:
        return dx.reshape(ctx.outputs[0][0])


class Transpose(Operation):
    """Axes in another order"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, axes: tuple[int, ...] | None) -> Array:
        ctx.axes = axes
        return x.data.transpose(axes)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None]:
        axes = ctx.axes
        inverse = None if axes is None else tuple(np.argsort([a % len(axes) for a in axes]).tolist())
        return np.transpose(adj, inverse), None

    @staticmethod
    def jvp(ctx: Context, dx: Array, axes: None) -> Array:
        return dx.transpose(ctx.axes)


class Expand(Operation):
    """Broadcast along new axes and along those of length 1"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(x.data, shape)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None]:
        return adj, None

    @staticmethod
    def jvp(ctx: Context, dx: Array, shape: None) -> Array:
        return broadcast(ctx, dx)


class Clone(Operation):
    """A copy"""

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> Array:
        return x.data.copy()

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Any:
        return adj

    @staticmethod
    def jvp(ctx: Context, dx: Array) -> Array:
        return dx


class ToCopy(Operation):
    """The same values in another dtype"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, dtype: npt.DTypeLike) -> Array:
        ctx.dtype = x.data.dtype
        return x.data.astype(dtype)

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None]:
        return adj.astype(ctx.dtype), None

    @staticmethod
    def jvp(ctx: Context, dx: Array, dtype: None) -> Array:
        return dx.astype(ctx.outputs[0][1])


class Stack(Operation):
    """Tensors of one shape, side by side along a new axis"""

    @staticmethod
    def forward(ctx: Context, axis: int, *parts: Tensor) -> Array:
        result = np.stack([part.data for part in parts], axis)
        ctx.axis = axis % result.ndim
        return result

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, ...]:
        before = (slice(None),) * ctx.axis
        return (None, *[adj[(*before, i)] for i in range(len(ctx.edges) - 1)])

    @staticmethod
    def jvp(ctx: Context, axis: None, *tangents: Array) -> Array:
        shape, dtype = ctx.outputs[0]
        result = np.zeros(shape, dtype)
        slots = np.moveaxis(result, ctx.axis, 0)
        for i, tangent in enumerate(tangents):
            slots[i] = tangent
        return result


class Cat(Operation):
    """Tensors joined along an axis that they have"""

    @staticmethod
    def forward(ctx: Context, axis: int, *parts: Tensor) -> Array:
        result = np.concatenate([part.data for part in parts], axis)
        ctx.axis = axis % result.ndim
        ctx.cuts = list(itertools.accumulate([part.data.shape[axis] for part in parts], initial=0))
        return result

    @staticmethod
    def slots(ctx: Context) -> list[tuple[slice, ...]]:
        """The index of each part in the result."""
        before = (slice(None),) * ctx.axis
        return [(*before, slice(*ends)) for ends in itertools.pairwise(ctx.cuts)]

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, ...]:
        return (None, *[adj[slot] for slot in Cat.slots(ctx)])

    @staticmethod
    def jvp(ctx: Context, axis: None, *tangents: Array) -> Array:
        shape, dtype = ctx.outputs[0]
        result = np.zeros(shape, dtype)
        for slot, tangent in zip(Cat.slots(ctx), tangents, strict=True):
            result[slot] = tangent
        return result


def reshape(x: Any, shape: int | tuple[int, ...]) -> Tensor:
    """The elements of x, in C order, in another shape; one length may be -1, to be computed."""
    return Reshape.apply(as_tensor(x), shape)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Tensor:
    """x with its axes in another order: axis i of the result is axis `axes[i]` of x; None reverses them."""
    return Transpose.apply(as_tensor(x), None if axes is None else tuple(axes))


def broadcast_to(x: Any, shape: int | tuple[int, ...]) -> Tensor:
    """x broadcast to `shape`."""
    return Expand.apply(as_tensor(x), shape)


def clone(x: Any) -> Tensor:
    """A differentiable copy."""
    return Clone.apply(as_tensor(x))


def astype(x: Any, dtype: npt.DTypeLike) -> Tensor:
    """A copy of x in another dtype. The gradient has the dtype of x; integers carry none."""
    return ToCopy.apply(as_tensor(x), dtype)


def stack(parts: Sequence[Any], axis: int = 0) -> Tensor:
    """Parts of one shape, side by side along a new axis: axis `axis` of the result."""
    return Stack.apply(axis, *[as_tensor(part) for part in parts])


def concatenate(parts: Sequence[Any], axis: int = 0) -> Tensor:
    """Parts joined along one of their axes; their other lengths agree."""
    return Cat.apply(axis, *[as_tensor(part) for part in parts])
