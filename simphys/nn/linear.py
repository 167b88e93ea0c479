"""A linear layer, for each of N rows x:

    y = W x + b        W [outputs, inputs], b [outputs]

Adjoint, for g = adj_y:    adj_W = sum over rows of g x^T      adj_b = sum of g      adj_x = W^T g

All rows are multiplied at once, as matrix products in NumPy.
"""

from __future__ import annotations

from ..autograd import Context, Function, Tensor
from ..autograd.errors import InputError
from ..simulator import Array


class Linear(Function):
    """Linear layer: (weight [outputs, inputs], bias [outputs], x [..., inputs]) -> [..., outputs].

    Saved: weight and x. Errors: InputError if the shapes do not match.
    """

    @staticmethod
    def forward(ctx: Context, weight: Tensor, bias: Tensor, x: Tensor) -> Array:
        _require_fit(weight, bias, x)
        ctx.save_for_backward(weight, x)
        y: Array = x.data @ weight.data.T + bias.data
        return y

    @staticmethod
    def backward(ctx: Context, adj_y: Tensor) -> tuple[Array, Array, Array]:
        weight, x = ctx.saved_tensors
        g = adj_y.data.reshape(-1, weight.shape[0])
        adj_weight = g.T @ x.data.reshape(-1, weight.shape[1])
        return adj_weight, g.sum(axis=0), (adj_y.data @ weight.data)

    @staticmethod
    def jvp(ctx: Context, dweight: Array, dbias: Array, dx: Array) -> Array:
        weight, x = ctx.saved_tensors
        dy: Array = x.data @ dweight.T + dbias + dx @ weight.data.T
        return dy


def _require_fit(weight: Tensor, bias: Tensor, x: Tensor) -> None:
    if weight.ndim != 2:
        raise InputError("Linear, weight", "shape [outputs, inputs]", list(weight.shape), "Give a matrix.")
    outputs, inputs = weight.shape
    if bias.shape != (outputs,):
        remedy = "Give one bias per row of weight."
        raise InputError("Linear, bias", f"shape [{outputs}], one entry per row of weight", list(bias.shape), remedy)
    if x.ndim == 0 or x.shape[-1] != inputs:
        remedy = "Give rows of that length."
        raise InputError("Linear, x", f"rows of {inputs}, one entry per column of weight", list(x.shape), remedy)
