"""Sums of an array's entries with fixed weights: any sparse matrix, from one index set of the model to another.

The matrix is the whole declaration: the tangent is the same sum, and the adjoint gathers with the transposed matrix.
Each element writes to itself alone, forward and back, so that loops run in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Shape

from .action import Slot
from .contribution import append_map, write_own
from .function import declare
from .grid import CELLS
from .linear_map import LinearMap
from .pattern import Source
from .program import Domain, ElementView, Op, Value, make_local
from .relation import cached, invert, read_relation
from .scope import Scope, adjoint_slot
from .site import Site


class Weights(NamedTuple):
    """A sparse matrix: row i has `weights[i, k]` in column `columns[i, k]`, and nothing where that is -1."""

    columns: Array
    """[rows, K], integers."""
    weights: Array
    """[rows, K]."""


def weighted(result: str, *, of: str, by: str, rows: str, columns: str) -> Any:
    """Declare a sub-step that computes weighted sums of the entries of an array.

    - `result`, `of`: names of the result and of the array.
    - `by`: attribute of the model with the `Weights`.
    - `rows`, `columns`: the index sets of the result and of the array, which are attributes of the model with their
      shape or size, such as "cells".

    Returns a Function, to be applied to the model and the array.
    """
    return declare(Weighted(result, of, by, rows, columns))


class Weighted(LinearMap):
    """The pattern of `weighted`."""

    def __init__(self, result: str, of: str, by: str, rows: str, columns: str) -> None:
        super().__init__(result, {of: Source("near", of, by)}, over=rows)
        self._columns, self._by = columns, by

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        (name,) = self.arguments
        value = inputs[name]
        assert isinstance(value, Value), "an array"
        rows, columns = _read_set(model, self.over), _read_set(model, self._columns)
        whole = columns.grid or (columns.size,)
        if value.shape != whole:
            constraint = f"{name} has an entry for each of {self._columns}: its shape is {list(whole)}"
            raise InputError(self.source, constraint, f"{list(value.shape)}", "Correct it.")
        shape, real = (rows.size, columns.size), runtime.real_dtype()
        count, relations = cached(
            model, f"{self._by} {real} {shape}", lambda: _read_matrix(model, self._by, shape, self.source)
        )
        op = Op(self, inputs, rows, {name: ElementView(columns, ())}, relations=relations, variant=(count, columns))
        op.outputs = (make_local(next(iter(self.results)), rows),)
        return op

    def map(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        (value,) = op.values()
        source, view, result = Slot(kind, value), op.views[self.arguments[0]], op.outputs[0]
        target, count = write_own(Slot(kind, result), result.elements, scope), op.variant[0]
        index, weight = (scope.relation(op, name) for name in ("index", "weight"))

        def add_up(site: Site) -> str:
            total = site.assign("total", "real(0.0)")
            for k in site.each("k", count):
                entry = f"{count} * {site.index} + {k}"
                at = site.integer("at", f"ti.max({index}[{entry}], 0)")
                site.line(f"{total} += {site.read_constant(weight, entry)} * {site.load_at(source, view, at)}")
            return total

        append_map(scope, op.domain, target, add_up, {source: "other"})

    def adjoint(self, op: Op, scope: Scope) -> None:
        (value,) = op.values()
        source, view, result = Slot("adjoint", op.outputs[0]), op.views[self.arguments[0]], op.outputs[0].elements
        target, count = write_own(adjoint_slot(value), view, scope), op.variant[0]
        start, entries, weight = (scope.relation(op, name) for name in ("start", "entries", "weight"))

        def add_up(site: Site) -> str:
            total = site.assign("total", "real(0.0)")
            for k in site.each("k", f"{start}[{site.index}]", f"{start}[{site.index} + 1]"):
                e = site.integer("entry", f"{entries}[{k}]")
                term = site.load_at(source, result, f"({e} // {count})")
                site.line(f"{total} += {site.read_constant(weight, e)} * {term}")
            return total

        append_map(scope, view.domain, target, add_up, {source: "other"})


def _read_matrix(model: Any, by: str, shape: Shape, source: str) -> tuple[int, dict[str, Array]]:
    """Read a matrix of this shape, and transpose it. Errors: InputError for one that does not fit."""
    given: Weights = getattr(model, by)
    count = given.columns.shape[1]
    index = read_relation(model, by, (shape[0], count), shape[1], source, given=given.columns)
    weight = np.where(index >= 0, given.weights, 0.0).astype(runtime.real_dtype()).reshape(-1)
    start, entries = invert(model, by, index, shape[1])
    return count, {"index": index.reshape(-1), "weight": weight, "start": start, "entries": entries}


def _read_set(model: Any, name: str) -> Domain:
    size = getattr(model, name)
    return (
        Domain(name, math.prod(size), size if name == CELLS else ()) if isinstance(size, tuple) else Domain(name, size)
    )
