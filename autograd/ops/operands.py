"""What operations take, and how adjoints and tangents follow NumPy's broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..function import Context, Function
from ..tensor import Array, Tensor

Operand = Any
"""A Tensor, or a constant: a number, or an array (copied, so that later changes to it do not reach backward)."""

Tangent = Any
"""An array like the input, or None where the input has no tangent."""


def constant(x: Any) -> Tensor:
    """A Tensor over a copy of `x`, without a gradient."""
    array = np.array(x, order="C")
    if array.dtype.kind not in "fiub":
        raise InputError(
            "operand", "an operand is a Tensor, a number or an array of real numbers", x, "Join Tensors by stack first."
        )
    return Tensor(array)


def operand(x: Any) -> Operand:
    """Tensors and plain numbers (which do not widen a dtype) as they are; anything else becomes a constant Tensor."""
    return x if type(x) in (Tensor, float, int) else constant(x)


def as_tensor(x: Any) -> Tensor:
    """Tensors as they are; anything else, numbers too, becomes a constant Tensor."""
    return x if type(x) is Tensor else constant(x)


def plain(x: Operand) -> Any:
    """The array or number behind an operand."""
    return x.data if type(x) is Tensor else x


class Operation(Function):
    """A Function whose rules are written once, for arrays and for Tensors.

    `backward` and `jvp` read `ctx.saved` and receive arrays; while a second derivative is recorded `backward` receives
    Tensors, and NumPy's functions and operators in it become operations of the graph. `plain` gives the values that a
    rule only decides by. An adjoint may have the result's shape: it is then summed over the axes along which the input
    was broadcast.
    """

    once_differentiable = False
    _on_arrays = True


def broadcast(ctx: Context, tangent: Any) -> Array:
    """A tangent, broadcast to the result's shape."""
    return np.broadcast_to(tangent, ctx.outputs[0][0])


class Elementwise(Operation):
    """y = f(x), element by element: a subclass has f as `forward`, and `derivative(ctx)`, dy/dx like x."""

    @staticmethod
    def derivative(ctx: Context) -> Any:
        raise TypeError("an Elementwise must define derivative(ctx)")

    @staticmethod
    def backward(ctx: Context, adj: Any) -> Any:
        function: Any = ctx.function
        return adj * function.derivative(ctx)

    @staticmethod
    def jvp(ctx: Context, dx: Array) -> Array:
        function: Any = ctx.function
        return dx * function.derivative(ctx)
