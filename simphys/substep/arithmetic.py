"""Sums and multiples of values in a program, as sub-steps of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simphys.autograd import Tensor
from simphys.numerics.element import element

from .draft import Draft, NotDeclared, Symbol
from .pattern import Source
from .per_element import PerElement
from .program import WHOLE, ElementView, Op, Value


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

    def make_op(self, draft: Draft, inputs: Mapping[str, Value | float]) -> Op:
        values = [value for value in inputs.values() if isinstance(value, Value)]
        shapes = {value.shape for value in values}
        if len(shapes) != 1:
            raise NotDeclared(f"{self.element.name} of arrays of shapes {sorted(shapes)}")
        shape = values[0].shape
        view = next((value.view for value in values if value.view is not None), None)
        if view is None and len(shape) > 3:  # elements are matrices at most
            view = ElementView(draft.domain("entries", values[0].size), ())
        if view is None:
            rows = draft.domain("rows", shape[0]) if shape and shape[0] != 1 else None
            view = ElementView(WHOLE, shape) if rows is None else ElementView(rows, shape[1:])
        op = Op(self, inputs, view.domain, {n: view for n, v in inputs.items() if isinstance(v, Value)})
        op.outputs = (Value(self.element.name, shape, "local", view),)
        return op


_OWN = {"a": Source("own", "a"), "b": Source("own", "b")}
_SUM = Elementwise(sum_of, _OWN, results=None, over="rows")
_DIFFERENCE = Elementwise(difference_of, _OWN, results=None, over="rows")
_MULTIPLE = Elementwise(
    multiple_of, {"a": Source("own", "a"), "factor": Source("constant", "factor")}, results=None, over="rows"
)


def _binary(pattern: Elementwise, draft: Draft, a: Symbol, b: Any) -> Symbol:
    if not isinstance(b, Symbol):
        raise NotDeclared(f"{pattern.element.name} of {a.value.name} and {type(b).__name__}")
    return draft.add(pattern.make_op(draft, {"a": a.value, "b": b.value}))[0]


def _scale(draft: Draft, a: Symbol, factor: Any) -> Symbol:
    if isinstance(factor, Tensor) and factor.size == 1 and not factor.requires_grad:
        factor = factor.item()
    if not isinstance(factor, float | int | np.floating | np.integer):
        raise NotDeclared(f"a product of {a.value.name} and {type(factor).__name__}")
    return draft.add(_MULTIPLE.make_op(draft, {"a": a.value, "factor": float(factor)}))[0]


def copy(draft: Draft, a: Symbol) -> Symbol:
    """Copy a value, which a field of the new state must not share with another one."""
    return _scale(draft, a, 1.0)


RULES = {
    "add": lambda draft, a, b: _binary(_SUM, draft, a, b),
    "subtract": lambda draft, a, b: _binary(_DIFFERENCE, draft, a, b),
    "scale": _scale,
    "copy": lambda draft, a, _: copy(draft, a),
}
