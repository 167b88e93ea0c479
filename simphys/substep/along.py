"""Sums along the axes of a grid, such as differences, with the weights of a banded matrix for each array.

The matrices are the whole declaration: the tangent is the same sum, and the adjoint takes the transposed ones. Each
cell writes to itself alone, forward and back, so that loops run in parallel. Along the last axis, rows of cells have
the same weights but near the ends of the axis, so that the loop is vectorized; along others a row has one set of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Shape

from .action import Access, Slot
from .contribution import append_map, write_own
from .function import declare
from .grid import CELLS, GridPattern, locate_cell
from .linear_map import LinearMap
from .pattern import Source
from .program import Domain, ElementView, Op, Value, make_local
from .relation import cached, find_attribute
from .scope import Scope, adjoint_slot
from .site import Site

BLOCK = 16
"""Cells within a row that are computed together."""


class Along(NamedTuple):
    """The matrix that acts on an array, and the axis along which it does."""

    matrix: str
    """Attribute of the model with the matrix: an array [rows, columns], nearly all zeros but for a band."""
    axis: int
    of: str = CELLS
    """Attribute of the model with the shape of the array, which differs from the result's along the axis alone."""


def along(result: str, terms: Mapping[str, Along], *, over: str = CELLS) -> Any:
    """Declare a sub-step that adds up products of matrices with arrays of a grid, each along one axis.

    `terms` has the matrix of each array; `over` is the attribute of the model with the shape of the result.

    Returns a Function, to be applied to the model and the arrays, in order.
    """
    return declare(SumsAlong(result, terms, over))


@dataclass(frozen=True)
class Band:
    """A banded matrix: row i has `weights[i, k]` in column `first[i] + k`."""

    first: Array
    weights: Array
    margin: int
    """Rows at either end whose weights may differ from those of the rows between, relative to the diagonal."""
    offset: int
    """First column less row, between the margins."""
    inner: tuple[float, ...]
    """Weights of a row between the margins."""

    @property
    def text(self) -> tuple[Any, ...]:
        """All that the text of a loop depends on."""
        return self.margin, self.offset, self.inner


def find_band(matrix: Array) -> Band:
    """Find the band of a matrix."""
    rows, columns = matrix.shape
    used = matrix != 0
    low = np.where(used.any(1), used.argmax(1), 0)
    high = np.where(used.any(1), columns - used[:, ::-1].argmax(1), 0)
    width = max(int((high - low).max(initial=0)), 1)
    low = np.clip(np.where(used.any(1), low, np.arange(rows)), 0, columns - width)
    weights = np.take_along_axis(matrix, low[:, None] + np.arange(width), 1)
    middle = rows // 2
    same = (weights == weights[middle]).all(1) & (low - np.arange(rows) == low[middle] - middle)
    same |= ~weights.any(1) & ~weights[middle].any()
    before, after = np.flatnonzero(~same[:middle]), np.flatnonzero(~same[middle:])
    margin = max(before[-1] + 1 if before.size else 0, rows - middle - after[0] if after.size else 0)
    return Band(low, weights, int(margin), int(low[middle] - middle), tuple(map(float, weights[middle])))


class SumsAlong(LinearMap, GridPattern):
    """The pattern of `along`."""

    def __init__(self, result: str, terms: Mapping[str, Along], over: str) -> None:
        super().__init__(result, {name: Source("near", name) for name in terms}, over=over)
        self.terms, self.grid_name = dict(terms), over

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.read_grid(model)
        cells = domain.grid
        views, extra = {}, {}
        relations: dict[str, Array] = {}
        for name, value in inputs.items():
            matrix, axis, of = self.terms[name]
            shape = tuple(getattr(model, of))
            if axis not in range(len(cells)):
                constraint = f"the axis of {name} is one of the {len(cells)} of `{self.grid_name}`, 0 the first"
                raise InputError(self.source, constraint, f"{axis!r}", "Correct the declaration.")
            if not isinstance(value, Value) or value.shape != shape:
                found = f"{list(value.shape)}" if isinstance(value, Value) else f"{value}"
                raise InputError(self.source, f"{name} has the shape {list(shape)} of `{of}`", found, "Correct it.")
            if (*shape[:axis], cells[axis], *shape[axis + 1 :]) != cells:
                constraint = f"`{of}` has the shape of `{self.grid_name}` but along axis {axis}"
                raise InputError(self.source, constraint, f"{list(shape)} and {list(cells)}", "Correct the model.")
            views[name] = ElementView(Domain(of, math.prod(shape), shape), ())
            extra[name] = self._read_matrix(model, matrix, (cells[axis], shape[axis]))
            for kind, tables in zip(("rows", "columns"), extra[name], strict=True):
                relations |= {f"{name}_{kind}_first": tables.first, f"{name}_{kind}_weight": tables.weight}
        variant = cells, tuple([(tables[0].band.text, tables[1].band.text) for tables in extra.values()])
        op = Op(self, inputs, domain, views, relations=relations, variant=variant, extra=extra)
        op.outputs = (make_local(next(iter(self.results)), domain),)
        return op

    def _read_matrix(self, model: Any, name: str, shape: Shape) -> tuple[_Tables, _Tables]:
        """Read a matrix and its transpose. Errors: InputError for one of another shape."""
        matrix = find_attribute(model, name)
        if np.shape(matrix) != shape:
            constraint = f"`{name}` of the model is a matrix {list(shape)}"
            raise InputError(self.source, constraint, f"{list(np.shape(matrix))}", "Correct the model.")
        key = f"{name} along an axis, {runtime.real_dtype()}"
        found: tuple[_Tables, _Tables] = cached(model, key, lambda: (_tabulate(matrix), _tabulate(matrix.T)))
        return found

    def choose_width(self, op: Op) -> int:
        return BLOCK

    def choose_margin(self, op: Op, names: Sequence[str], *, transposed: bool) -> int:
        """Find the cells at either end of a row that have weights of their own."""
        last = len(op.domain.grid) - 1
        bands = [op.extra[name][transposed].band for name in names if self.terms[name].axis == last]
        return max([1, *[band.margin for band in bands]])

    # --- the three passes

    def map(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        target, names = self.write_result(op, scope, op.outputs[0], kind), self.list_terms(op, scope, kind)
        slots = {name: Slot(kind, op.array(name)) for name in names}

        def add_up(site: Site) -> str:
            return _join([self._add_up(site, op, scope, name, slot, transposed=False) for name, slot in slots.items()])

        margin = self.choose_margin(op, names, transposed=False)
        reads: dict[Slot, Access] = dict.fromkeys(slots.values(), "other")
        append_map(scope, op.domain, target, add_up, reads, width=BLOCK, margin=margin)

    def adjoint(self, op: Op, scope: Scope) -> None:
        given = Slot("adjoint", op.outputs[0])
        for name, value in op.arrays.items():
            if not scope.wants(value):
                continue

            def add_up(site: Site, name: str = name) -> str:
                return _join([self._add_up(site, op, scope, name, given, transposed=True)])

            view, margin = op.views[name], self.choose_margin(op, [name], transposed=True)
            target = write_own(adjoint_slot(value), view, scope)
            append_map(scope, view.domain, target, add_up, {given: "other"}, width=BLOCK, margin=margin)

    def _add_up(self, site: Site, op: Op, scope: Scope, name: str, slot: Slot, *, transposed: bool) -> str:
        """Write the sum of an array's terms in the loop's cell; empty without any."""
        tables: _Tables = op.extra[name][transposed]
        axis, here, there = self.terms[name].axis, op.domain.grid, op.views[name].domain.grid
        view, band = op.views[name], tables.band
        if transposed:
            here, there, view = there, here, op.outputs[0].elements
        if site.row and axis == len(here) - 1:
            line = f" + {site.row} // {here[axis]} * {there[axis] - here[axis]}" if here != there else ""
            begin = site.once(f"{site.index} {band.offset:+d}{line}")
            weights = [(f"{weight!r}", k) for k, weight in enumerate(band.inner) if weight]
        else:
            kind = "columns" if transposed else "rows"
            first, weight = (scope.relation(op, f"{name}_{kind}_{part}") for part in ("first", "weight"))
            at, stride = locate_cell(site, here, axis), math.prod(here[axis + 1 :])
            outer = f" + {site.index} // {here[axis] * stride} * {(there[axis] - here[axis]) * stride}"
            shift = f"({first}[{at}] - {at})" + (f" * {stride}" if stride > 1 else "")
            begin = site.once(f"{site.index} + {shift}" + (outer if axis and here != there else ""))
            width = band.weights.shape[1]
            entries = [site.read_constant(weight, f"{at} * {width} + {k}") for k in range(width)]
            weights = [(entry, k * stride) for k, entry in enumerate(entries)]
        parts = [f"{each} * {site.load_at(slot, view, f'({begin} + {steps})')}" for each, steps in weights]
        return site.assign("sum", " + ".join(parts)) if parts else ""


class _Tables(NamedTuple):
    """A band, and its numbers as a kernel takes them."""

    band: Band
    first: Array
    weight: Array


def _tabulate(matrix: Array) -> _Tables:
    band = find_band(matrix)
    return _Tables(band, band.first.astype(np.int32), band.weights.reshape(-1).astype(runtime.real_dtype()))


def _join(terms: Sequence[str]) -> str:
    return " + ".join([term for term in terms if term]) or "real(0.0)"
