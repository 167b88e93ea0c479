"""Sums of neighbouring cells' values with fixed weights: means, differences and shifts on a regular grid.

They are linear, so that the weights are the whole declaration: the tangent is the same sum, and the adjoint gathers
with the weights transposed. Each cell writes to itself alone, forward and back, so that loops run in parallel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from simphys.autograd.errors import InputError
from simphys.simulator import Shape

from .action import Access, Slot
from .contribution import Contribution
from .expressions import build_element
from .function import declare
from .grid import CELLS, GridPattern, locate_cell
from .linear_map import LinearMap
from .pattern import Source
from .program import Domain, ElementView, Op, Value, arrays_of, make_local
from .scope import Scope
from .site import Site


class Term(NamedTuple):
    """A term of a sum: a neighbour's value times a weight."""

    weight: float
    shift: tuple[int, ...]
    """Steps to the neighbour along each axis: -1, 0 or 1."""
    component: int = 0
    """Component of a vector; 0 for numbers."""


Sum = Sequence[Term]
Weights = Callable[[int], Sum | Sequence[Sum]]
"""For a number of dimensions: the sum that a number is, or those that the components of a vector are."""


def stencil(result: str, weights: Mapping[str, Weights]) -> Any:
    """Declare a sub-step that computes weighted sums of the values of neighbouring cells, on the grid of `model.cells`.

    `weights` has those of each array, which is [*cells], or [c, *cells] for vectors; the result is the sum over all
    arrays, of the same form. A sum without terms is 0. The grid wraps around: behind the last cell of each axis lies
    the first one. On a grid with walls, values there that are zero keep its ends apart.

    Returns a Function, to be applied to the model and the arrays, in order.
    """
    return declare(Stencil(result, weights))


class Stencil(LinearMap, GridPattern):
    """The pattern of `stencil`."""

    element_us = 0.004

    def __init__(self, result: str, weights: Mapping[str, Weights]) -> None:
        super().__init__(result, {name: Source("near", name) for name in weights}, over=CELLS)
        self.weights = dict(weights)

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.read_grid(model)
        cells = domain.grid
        views = {n: self._view(n, value, domain) for n, value in arrays_of(inputs).items()}
        op = Op(self, inputs, domain, views, variant=cells)
        element = self._result_element(len(cells))
        op.outputs = (make_local(next(iter(self.results)), domain, element, components_first=bool(element)),)
        return op

    def _result_element(self, dim: int) -> Shape:
        """Shape of an element of the result. Errors: InputError for weights that do not fit."""
        given = [weights(dim) for weights in self.weights.values()]
        found = {() if _is_number(each) else (len(each),) for each in given}
        if len(found) != 1:
            constraint, remedy = "the sums of all arrays are a number, or as many components", "Correct the weights."
            raise InputError(self.source, constraint, f"shapes {sorted(found)}", remedy)
        for name in self.weights:
            for term in itertools.chain(*self._rows(name, dim)):
                if len(term.shift) != dim or not set(term.shift) <= {-1, 0, 1}:
                    constraint = f"a shift has -1, 0 or 1 for each of the {dim} axes"
                    raise InputError(self.source, constraint, repr(term.shift), "Correct the weights.")
        return found.pop()

    def _view(self, name: str, value: Value, domain: Domain) -> ElementView:
        cells, rows = domain.grid, self._rows(name, len(domain.grid))
        element = value.shape[: -len(cells)]
        count = 1 + max([term.component for row in rows for term in row], default=0)
        if value.shape[-len(cells) :] != cells or len(element) > 1 or math.prod(element) < count:
            vectors = f", or [c, ...] with {count} or more components" if count > 1 else ""
            constraint = f"{name} has an entry for each cell: its shape is {list(cells)}{vectors}"
            raise InputError(self.source, constraint, f"{list(value.shape)}", "Correct it.")
        return ElementView(domain, element, components_first=bool(element))

    def _rows(self, name: str, dim: int) -> Sequence[Sum]:
        """List the sum that gives each component of the result."""
        given: Any = self.weights[name](dim)
        return [given] if _is_number(given) else given

    def choose_width(self, op: Op) -> int:
        return max(op.domain.grid[-1], 2)  # row by row; blocks of many sums take longer to compile than they save

    def input_access(self, name: str, op: Op) -> Access:
        return "other"

    # --- the three passes

    def map(self, op: Op, scope: Scope, kind: Literal["value", "tangent"]) -> None:
        result = op.outputs[0]
        target = self.write_result(op, scope, result, kind)
        dim = len(op.domain.grid)
        rows = {name: self._rows(name, dim) for name in self.list_terms(op, scope, kind)}
        terms = {name: sums for name, sums in rows.items() if any(sums)}

        def emit(site: Site) -> None:
            parts = ["" for _ in range(math.prod(result.element))]
            for name, rows in terms.items():
                value = op.array(name)
                parts = [a + b for a, b in zip(parts, _add_up(site, op, Slot(kind, value), rows), strict=True)]
            target.write(site, _assemble(parts, result.element))

        reads = self.input_reads(op, scope, frozenset(terms), kind)
        self._append(op, scope, emit, reads, [target])

    def adjoint(self, op: Op, scope: Scope) -> None:
        adjoint, dim = Slot("adjoint", op.outputs[0]), len(op.domain.grid)
        targets: list[tuple[Contribution, ElementView, Sequence[Sum]]] = []
        for name in op.inputs:
            rows = self._rows(name, dim)
            if scope.wants(op.inputs[name]) and any(rows):
                view = op.views[name]
                targets.append((self.add_adjoint(op, scope, name), view, _transpose(rows, view.components)))

        def emit(site: Site) -> None:
            for target, view, rows in targets:
                target.write(site, _assemble(_add_up(site, op, adjoint, rows), view.element))

        if targets:
            self._append(op, scope, emit, {adjoint: "other"}, [target for target, _, _ in targets])


def _is_number(given: Any) -> bool:
    """True for the weights of a number: a sum, not a list of sums."""
    return all([isinstance(term, Term) for term in given])


def _transpose(rows: Sequence[Sum], count: int) -> list[list[Term]]:
    """Return the weights with which each component of an array takes the adjoints of the sums."""
    found: list[list[Term]] = [[] for _ in range(count)]
    for number, row in enumerate(rows):
        for weight, shift, component in row:
            found[component].append(Term(weight, tuple([-s for s in shift]), number))
    return found


def _add_up(site: Site, op: Op, slot: Slot, rows: Sequence[Sum]) -> list[str]:
    """Write each sum, as text that begins with a sign; empty without terms."""
    view = slot.value.elements
    found = []
    for row in rows:
        groups: dict[float, str] = {}
        for weight, shift, component in row:
            at = find_neighbour(site, op.domain.grid, shift)
            loaded = site.once(site.load_component(slot, view, at, component))
            groups[abs(weight)] = groups.get(abs(weight), "") + f" {'-' if weight < 0 else '+'} {loaded}"
        found.append("".join([text if w == 1 else f" + {w!r} * ({text[1:]})" for w, text in groups.items()]))
    return found


def _assemble(parts: Sequence[str], element: Shape) -> str:
    """Expression of an element from the sums of its components."""
    return build_element([part.removeprefix(" + ").strip() or "0.0" for part in parts], element)


def find_neighbour(site: Site, cells: Shape, shift: Sequence[int]) -> str:
    """Write the index of the cell some steps from the loop's cell."""
    text = site.index
    for axis, (count, steps) in enumerate(zip(cells, shift, strict=True)):
        if steps == 0 or count == 1:
            continue
        if site.row and axis == len(cells) - 1:
            text += f" {steps:+d}"
            continue
        stride, at = math.prod(cells[axis + 1 :]), locate_cell(site, cells, axis)
        last = f"{at} == {count - 1}" if steps > 0 else f"{at} == 0"
        around = -steps * (count - 1) * stride
        text += " + " + site.once(f"ti.select({last}, {around}, {steps * stride})")
    return site.once(text) if text != site.index else text
