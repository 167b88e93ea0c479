"""Products and norms of vectors and matrices: the rule of each operation stands beside its forward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..context import Context
from ..tensor import Array, Tensor
from .operands import Operation, OptionalTangents, as_tensor, plain
from .reductions import Axis, broadcast_back, keepdims_shape, sum_over


class Matmul(OptionalTangents):
    """x @ y: with Z = X Y, adj_X = adj_Z Y^T and adj_Y = X^T adj_Z"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, y: Tensor) -> Array:
        ctx.save_for_backward(x, y)
        return x.data @ y.data

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, Any]:
        need_x, need_y = ctx.edges
        x, y = ctx.read_saved()
        z = adj
        row, column = x.ndim == 1, y.ndim == 1  # a vector is a matrix of one row, or of one column
        if column:
            y, z = y[:, None], z[..., None]
        if row:
            x, z = x[None, :], z[..., None, :]
        adj_x = adj_y = None
        if need_x:
            adj_x = z @ y.mT
            adj_x = adj_x[..., 0, :] if row else adj_x
        if need_y:
            if y.ndim == 2 and x.ndim > 2:  # one matrix for a batch: a single product sums over the batch
                rows = math.prod(x.shape[:-1])
                x, z = x.reshape(rows, x.shape[-1]), z.reshape(rows, z.shape[-1])
            adj_y = x.mT @ z
            adj_y = adj_y[..., 0] if column else adj_y
        return adj_x, adj_y

    @staticmethod
    def jvp(ctx: Context, dx: Array | None, dy: Array | None) -> Any:
        x, y = ctx.read_saved()
        return sum([left @ right for left, right in ((dx, y), (x, dy)) if left is not None and right is not None])


class LinalgVectorNorm(Operation):
    """|x| over axes"""

    @staticmethod
    def forward(ctx: Context, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
        ctx.axis = axis
        ctx.keepdims = keepdims
        length = Tensor(np.asarray(np.sqrt(sum_over(x.data * x.data, axis=axis, keepdims=keepdims))))
        ctx.save_for_backward(x, length)
        return length

    @staticmethod
    def direction(ctx: Context) -> Any:
        """The direction x / |x|; 0, with all its derivatives, at |x| = 0."""
        x, length = ctx.read_saved()
        divisor = length.reshape(keepdims_shape(x.shape, ctx.axis))
        zero = plain(divisor) == 0
        return x * np.where(zero, 0, 1 / np.where(zero, 1, divisor))

    @staticmethod
    def backward(ctx: Context, adj: Any) -> tuple[Any, None, None]:
        direction = LinalgVectorNorm.direction(ctx)
        return direction * broadcast_back(adj, direction.shape, ctx.axis), None, None

    @staticmethod
    def jvp(ctx: Context, dx: Array, axis: None, keepdims: None) -> Array:
        return sum_over(LinalgVectorNorm.direction(ctx) * dx, axis=ctx.axis, keepdims=ctx.keepdims)


def matmul(x: Any, y: Any) -> Tensor:
    """x @ y by NumPy's rules: matrices in the last two axes, earlier axes broadcast.

    A vector is a row on the left and a column on the right; its axis is dropped from the result.
    """
    return Matmul.apply(as_tensor(x), as_tensor(y))


def norm(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The Euclidean length over `axis` (as in `sum`; None: of all elements).

    Convention (PyTorch's): the gradient at length 0 is 0.
    """
    return LinalgVectorNorm.apply(as_tensor(x), axis, keepdims)
