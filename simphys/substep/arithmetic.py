"""Sums and multiples of values in a recorded step, as sub-steps of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.numerics.element import element

from .pattern import Source
from .per_element import PerElement
from .program import WHOLE, Op, Value, View
from .trace import NotDeclared, Recording, Symbol


@element
def sum_of(a, b):
    return a + b


@sum_of.adjoint
def adj_sum_of(a, b, adj):
    return adj, adj


@element
def difference_of(a, b):
    return a - b


@difference_of.adjoint
def adj_difference_of(a, b, adj):
    return adj, -adj


@element
def multiple_of(a, factor):
    return factor * a


@multiple_of.adjoint
def adj_multiple_of(a, factor, adj):
    return factor * adj


class Elementwise(PerElement):
    """An operation on arrays of one shape, seen as elements like the operands that a sub-step has made."""

    def make_op(self, recording: Recording, inputs: Mapping[str, Value | float]) -> Op:
        values = [value for value in inputs.values() if isinstance(value, Value)]
        shapes = {value.shape for value in values}
        if len(shapes) != 1:
            raise NotDeclared(f"{self.element.name} of arrays of shapes {sorted(shapes)}")
        shape = values[0].shape
        view = next((value.view for value in values if value.view is not None), None)
        if view is None and len(shape) > 3:  # elements are matrices at most
            view = View(recording.domain("entries", values[0].size), ())
        if view is None:
            rows = recording.domain("rows", shape[0]) if shape and shape[0] != 1 else None
            view = View(WHOLE, shape) if rows is None else View(rows, shape[1:])
        op = Op(self, inputs, view.domain, {n: view for n, v in inputs.items() if isinstance(v, Value)})
        op.outputs = (Value(self.element.name, shape, "local", view),)
        return op


_OWN = {"a": Source("own", "a"), "b": Source("own", "b")}
_SUM = Elementwise(sum_of, _OWN, results=None, over="rows")
_DIFFERENCE = Elementwise(difference_of, _OWN, results=None, over="rows")
_MULTIPLE = Elementwise(
    multiple_of, {"a": Source("own", "a"), "factor": Source("constant", "factor")}, results=None, over="rows"
)


def _binary(pattern: Elementwise, recording: Recording, a: Symbol, b: Any) -> Symbol:
    if not isinstance(b, Symbol):
        raise NotDeclared(f"{pattern.element.name} of {a.value.name} and {type(b).__name__}")
    return recording.add(pattern.make_op(recording, {"a": a.value, "b": b.value}))[0]


def _scale(recording: Recording, a: Symbol, factor: Any) -> Symbol:
    if isinstance(factor, Tensor) and factor.size == 1 and not factor.requires_grad:
        factor = factor.item()
    if not isinstance(factor, float | int | np.floating | np.integer):
        raise NotDeclared(f"a product of {a.value.name} and {type(factor).__name__}")
    return recording.add(_MULTIPLE.make_op(recording, {"a": a.value, "factor": float(factor)}))[0]


def copy(recording: Recording, a: Symbol) -> Symbol:
    """Copy a value, which a field of the new state must not share with another one."""
    return _scale(recording, a, 1.0)


RULES = {
    "add": lambda recording, a, b: _binary(_SUM, recording, a, b),
    "subtract": lambda recording, a, b: _binary(_DIFFERENCE, recording, a, b),
    "scale": _scale,
    "copy": lambda recording, a, _: copy(recording, a),
}
