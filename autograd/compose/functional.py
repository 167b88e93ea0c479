"""Derivatives of functions of Tensors: forward (`jvp`, `linearize`), reverse (`vjp`) and whole (`jacobian`).

A reverse pass gives one row of a Jacobian, a forward pass one column. Both run on one recorded graph, any number of
times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import GraphError, InputError, MissingJvp
from ..graph import Key, between, grad, origin
from ..mode import enable_grad, no_grad
from ..rules import run_jvp
from ..tensor import Array, Tensor

Tensors = Tensor | Sequence[Tensor]
Outputs = Tensor | tuple[Tensor, ...]
Result = TypeVar("Result", bound=Outputs)
Mode = Literal["auto", "forward", "reverse"]
Push = Callable[..., tuple[Array, ...]]
Pull = Callable[..., tuple[Array, ...]]


def linearize(outputs: Tensors, inputs: Tensors) -> Push:
    """The derivative of a recorded computation as a function: `push(*tangents)` returns the tangent of each output.

    `inputs` are leaves or intermediate results that the outputs were computed from. A tangent is an array of its
    input's shape, or None for zero. The graph is kept, so any number of tangents can be pushed through it.
    Errors: MissingJvp for a Function without a `jvp` (raised by push for one inside a combined node); GraphError for
    a node that was freed, or whose saved state was changed.
    """
    outputs, inputs = tuple_of(outputs), tuple_of(inputs)
    for position, x in enumerate(inputs):
        if not x.requires_grad:
            remedy = "Set requires_grad=True on it before the computation."
            raise InputError("linearize", f"input {position} requires a gradient", repr(x), remedy)
    sources = [origin(x) for x in inputs]
    nodes = between(outputs, set(sources))
    for node in nodes:
        node.function.require_jvp(node.name())

    def push(*tangents: npt.ArrayLike | Tensor | None) -> tuple[Array, ...]:
        known: dict[Key, Array] = {}
        for x, source, tangent in zip(inputs, sources, tangents, strict=True):
            if tangent is not None:
                known[source] = as_array_like("push", "tangent", tangent, x) + known.get(source, 0)
        with no_grad():
            for node in nodes:
                if node.freed:
                    raise GraphError(
                        f"{node.name()} was freed after linearize. Pass retain_graph=True to that backward."
                    )
                arriving = [known.get((edge[0].sequence, edge[1])) if edge else None for edge in node.edges]
                if any(tangent is not None for tangent in arriving):
                    for index, tangent in enumerate(run_jvp(node, arriving)):
                        if tangent is not None:
                            key = (node.sequence, index)  # known already where an input is itself computed from inputs
                            known[key] = tangent + known[key] if key in known else tangent
        pushed = [known.get(origin(y)) if y.requires_grad else None for y in outputs]
        return tuple(
            [np.zeros(y.shape, y.dtype) if dy is None else dy.copy() for y, dy in zip(outputs, pushed, strict=True)]
        )

    return push


def jvp(
    fn: Callable[..., Result], inputs: Tensors, tangents: Sequence[npt.ArrayLike | None]
) -> tuple[Result, tuple[Array, ...]]:
    """(outputs, J v) of `outputs = fn(*inputs)`, by a forward pass.

    v = `tangents` has an array of its shape for each input, or None for an input that does not move.
    """
    leaves, outputs = record(fn, inputs)
    return outputs, linearize(outputs, leaves)(*tangents)


def vjp(fn: Callable[..., Result], inputs: Tensors) -> tuple[Result, Pull]:
    """(outputs, pull) of `outputs = fn(*inputs)`: `pull(*adjoints)` returns J^T u, an array for each input.

    It takes an adjoint for each output, or None for zero, and can be called any number of times.
    """
    leaves, outputs = record(fn, inputs)
    return outputs, _pull(tuple_of(outputs), leaves)


def jacobian(fn: Callable[..., Outputs], inputs: Tensors, *, mode: Mode = "auto") -> Any:
    """The Jacobian of fn(*inputs): an array of shape (*output.shape, *input.shape).

    It is a tuple over inputs if `inputs` is a sequence, and a tuple over outputs of these if fn returns a tuple. `auto`
    takes a forward pass for each input element, if these are not more than the output elements and every Function has
    a jvp. Otherwise it takes a reverse pass for each output element.
    """
    leaves, result = record(fn, inputs)
    outputs = tuple_of(result)
    fewer = sum(x.size for x in leaves) <= sum(y.size for y in outputs)
    if mode == "reverse" or (mode == "auto" and not fewer):
        blocks = _by_rows(outputs, leaves)
    else:
        try:
            blocks = _by_columns(outputs, leaves)
        except MissingJvp:
            if mode == "forward":
                raise
            blocks = _by_rows(outputs, leaves)
    rows = tuple([row[0] if isinstance(inputs, Tensor) else tuple(row) for row in blocks])
    return rows[0] if isinstance(result, Tensor) else rows


def _by_columns(outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> list[list[Array]]:
    push = linearize(outputs, inputs)
    blocks = [[np.empty((*y.shape, x.size), y.dtype) for x in inputs] for y in outputs]
    for position, x in enumerate(inputs):
        for element in range(x.size):
            tangents: list[Array | None] = [None] * len(inputs)
            tangents[position] = _one_hot(x, element)
            for row, column in zip(blocks, push(*tangents), strict=True):
                row[position][..., element] = column
    return [
        [block.reshape((*y.shape, *x.shape)) for block, x in zip(row, inputs, strict=True)]
        for row, y in zip(blocks, outputs, strict=True)
    ]


def _by_rows(outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> list[list[Array]]:
    blocks = []
    for y in outputs:
        pull = _pull((y,), inputs)
        rows = [pull(_one_hot(y, element)) for element in range(y.size)]
        blocks.append(
            [np.array([row[i] for row in rows], y.dtype).reshape((*y.shape, *x.shape)) for i, x in enumerate(inputs)]
        )
    return blocks


def _one_hot(x: Tensor, element: int) -> Array:
    array = np.zeros(x.size, x.dtype)
    array[element] = 1.0
    return array.reshape(x.shape)


def _pull(outputs: tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> Pull:
    def pull(*adjoints: npt.ArrayLike | Tensor | None) -> tuple[Array, ...]:
        pairs = [
            (y, as_array_like("pull", "adjoint", u, y))
            for y, u in zip(outputs, adjoints, strict=True)
            if u is not None and y.requires_grad
        ]
        if not pairs:
            return tuple([np.zeros(x.shape, x.dtype) for x in inputs])
        gradients = grad([y for y, _ in pairs], inputs, [u for _, u in pairs], retain_graph=True, allow_unused=True)
        return tuple(
            [np.zeros(x.shape, x.dtype) if g is None else g.data for x, g in zip(inputs, gradients, strict=True)]
        )

    return pull


def record(fn: Callable[..., Result], inputs: Tensors) -> tuple[tuple[Tensor, ...], Result]:
    """Run fn on leaves over the inputs' memory: the graph and `.grad` of the inputs stay as they are."""
    leaves = tuple([x.detach().requires_grad_() for x in tuple_of(inputs)])
    with enable_grad():
        return leaves, fn(*leaves)


def as_array_like(source: str, noun: str, value: npt.ArrayLike | Tensor, like: Tensor) -> Array:
    array = np.asarray(value.data if isinstance(value, Tensor) else value, like.dtype)
    if array.shape != like.shape:
        raise InputError(
            source, f"this {noun} has shape {like.shape}", f"shape {array.shape}", "Pass an array of that shape."
        )
    return array


def tuple_of(tensors: Tensors) -> tuple[Tensor, ...]:
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
