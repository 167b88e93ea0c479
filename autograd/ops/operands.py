"""Operands of operations, and `elementwise`, which makes an operation of a function and its derivatives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..context import Context
from ..errors import InputError
from ..function import Function
from ..node import NO_TENSOR
from ..tensor import Tensor

Operand = Any
"""A Tensor, or a constant: a number, or an array (copied, so that later changes to it do not reach backward)."""

Rule = Callable[..., Any]
"""A linear function of its first argument d, with further arguments by name: x and y (the operands), z (the result)."""


def constant(x: Any) -> Tensor:
    """A Tensor over a copy of `x`, without a gradient."""
    array = np.array(x, order="C")
    if array.dtype.kind not in "fiub":
        raise InputError(
            "operand", "an operand is a Tensor, a number or an array of real numbers", x, "Join Tensors by stack first."
        )
    return Tensor(array)


def operand(x: Any) -> Operand:
    """Return a Tensor or a plain number (which does not widen a dtype) as it is; make a constant Tensor of the rest."""
    return x if type(x) in _OPERANDS else constant(x)


_OPERANDS = frozenset((Tensor, float, int))


def as_tensor(x: Any) -> Tensor:
    """Return a Tensor as it is; make a constant Tensor of anything else, numbers too."""
    return x if type(x) is Tensor else constant(x)


def plain(x: Operand) -> Any:
    """The array or number behind an operand."""
    return x.data if type(x) is Tensor else x


class Operation(Function):
    """A Function whose rules are written once, for arrays and for Tensors.

    `backward` and `jvp` call `ctx.read_saved()` and receive arrays. While a second derivative is recorded, `backward`
    receives Tensors, and NumPy's functions and operators in it become operations of the graph. `plain` gives the values
    that a rule only compares. An adjoint may have the result's shape: it is then summed over the axes along which the
    input was broadcast.
    """

    once_differentiable = False
    _on_arrays = True


class OptionalTangents(Operation):
    """An Operation whose jvp skips an operand without a tangent, None, instead of computing with zeros."""

    _materializes = False


def elementwise(
    name: str, f: Callable[..., Any], *, x: Rule, y: Rule | None = None, wraps_numbers: bool = True
) -> type[Operation]:
    """A Function of that name, z = f(x) or z = f(x, y), with a rule for the derivative of z by each operand.

    The Jacobian of an elementwise function is diagonal. So one rule maps the adjoint of z to the operand's adjoint, and
    the operand's tangent to its part of the tangent of z. A rule names what it reads as its arguments, and only that is
    saved: of two operands, each only for a rule that will run; of one, the operand or z.
    With `wraps_numbers` a number is an operand in next_functions, like a Tensor without a gradient.
    """
    members = _one_operand(f, x) if y is None else _two_operands(f, x, y)
    members |= {"__module__": x.__module__, "_other_edge": None if wraps_numbers else NO_TENSOR}
    return type(name, (OptionalTangents,), members)


def _one_operand(f: Callable[..., Any], rule: Rule) -> dict[str, Any]:
    """The forward, backward and jvp of z = f(x)."""
    _, *reads = inspect.signature(rule).parameters
    reads_x, reads_z = "x" in reads, "z" in reads

    def forward(ctx: Context, x: Tensor) -> Any:
        z = f(x.data)
        if reads_x:
            ctx.keep((x,))
        elif reads_z:
            z = Tensor(np.asarray(z))
            ctx.keep((z,))
        return z

    def backward(ctx: Context, adj: Any) -> Any:
        return rule(adj, *ctx.read_saved())

    return {"forward": staticmethod(forward), "backward": staticmethod(backward), "jvp": staticmethod(backward)}


def _two_operands(f: Callable[..., Any], rule_x: Rule, rule_y: Rule) -> dict[str, Any]:
    """The forward, backward and jvp of z = f(x, y)."""
    (x_for_x, y_for_x), by_x = _read_names(rule_x)
    (x_for_y, y_for_y), by_y = _read_names(rule_y)
    saves = x_for_x or y_for_x or x_for_y or y_for_y

    def forward(ctx: Context, x: Operand, y: Operand) -> Any:
        if saves:
            need_x, need_y = ctx.edges
            saved_x = x if (need_x and x_for_x) or (need_y and x_for_y) else None
            saved_y = y if (need_x and y_for_x) or (need_y and y_for_y) else None
            ctx.keep((saved_x, saved_y))
        return f(x.data if type(x) is Tensor else x, y.data if type(y) is Tensor else y)

    def backward(ctx: Context, adj: Any) -> tuple[Any, Any]:
        need_x, need_y = ctx.edges
        saved = ctx.read_saved() if saves else None
        return by_x(adj, saved) if need_x else None, by_y(adj, saved) if need_y else None

    def jvp(ctx: Context, dx: Any, dy: Any) -> Any:
        saved = ctx.read_saved() if saves else None
        return broadcast(ctx, sum([rule(d, saved) for rule, d in ((by_x, dx), (by_y, dy)) if d is not None]))

    return {"forward": staticmethod(forward), "backward": staticmethod(backward), "jvp": staticmethod(jvp)}


def _read_names(rule: Rule) -> tuple[tuple[bool, bool], Callable[[Any, Any], Any]]:
    """True for each operand that a rule reads, and the rule as a function of d and the two saved operands."""
    _, *names = inspect.signature(rule).parameters
    if names == ["x", "y"]:
        return (True, True), lambda d, saved: rule(d, saved[0], saved[1])
    if names == ["x"]:
        return (True, False), lambda d, saved: rule(d, saved[0])
    if names == ["y"]:
        return (False, True), lambda d, saved: rule(d, saved[1])
    return (False, False), lambda d, saved: rule(d)


def broadcast(ctx: Context, tangent: Any) -> Any:
    """A tangent, broadcast to the result's shape."""
    shape = ctx.outputs[0][0]
    return tangent if np.shape(tangent) == shape else np.broadcast_to(tangent, shape)
