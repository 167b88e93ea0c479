"""Sub-steps over the faces between neighbouring cells of a regular grid: what flows from a cell to the next one.

Each cell gathers from its faces, and so does its adjoint: loops write to their own cells alone, and run in parallel as
they are. A face's flux is computed at both of its cells.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from simphys.autograd.errors import InputError
from simphys.simulator import Array, Shape

from .action import Access, Slot
from .contribution import Contribution
from .expressions import zero_element
from .function import declare
from .grid import CELLS, GridPattern
from .loops import RuleInputs
from .pattern import name_ends, name_sources
from .program import WHOLE, ElementView, Op, Value, arrays_of
from .relation import cached
from .scope import Scope
from .site import Site

FLAGS = "neighbours"
"""Relation with a bit for each face of a cell, set if the next index along the axis is the cell behind that face."""
BLOCK = 16
"""Cells within a row that are computed together, without a branch: their neighbours lie side by side in memory."""
RELATED = ("between", "one", "other")


def faces(
    func: Any,
    *,
    onto: str,
    between: Mapping[str, str] | None = None,
    both: Mapping[tuple[str, str], str] | None = None,
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    periodic: str = "",
) -> Any:
    """Declare a sub-step over the faces between neighbouring cells, along each axis of the grid of `model.cells`.

    The element function returns the flux from the lower cell of a face to the upper one, that with the higher index.
    Each mapping goes from its parameters to names of arrays.

    - `between`: differences of arrays of cells, that at the upper cell less that at the lower one.
    - `both`: two parameters, for the values at the lower and at the upper cell.
    - `shared`, `constant`: numbers or vectors that all faces share; no gradient flows to constants.
    - `onto`: name of the result, an array of cells: the flux is subtracted at the lower cell, and added at the upper.
    - `periodic`: attribute of the model with a bool for each axis: True if its last cells lie next to its first ones.

    Sides without a neighbour are closed: nothing flows. `sides` declares what flows through open ones.
    Returns a Function, to be applied to the model and the arrays, each once, in the order of the parameters.
    """
    lower, upper = name_ends(both)
    sources = name_sources(between=between, one=lower, other=upper, shared=shared, constant=constant)
    first = next((name for name, source in sources.items() if source.kind in RELATED), "")
    if not first:
        constraint = "a flux depends on values at the two cells of its face"
        raise InputError(f"faces of {onto}", constraint, "neither between nor both", "Declare one of these.")
    made = Faces(func, sources, results={onto: first}, over=CELLS)
    made.periodic = periodic
    return declare(made)


class _Face(NamedTuple):
    """A face of the cell of a loop, in the text."""

    upward: bool
    """True for the face to the next cell, at which the loop's cell is the lower one."""
    exists: str
    """Expression of a condition; empty where the face always exists."""
    other: str
    """Expression of the index of the cell behind it; that of the loop's cell where there is none."""


class Faces(GridPattern):
    """The pattern of `faces`."""

    adjoint_access: Access = "other"
    has_own_results = False
    element_us = 0.006
    width = BLOCK

    periodic = ""
    """Attribute of the model with a bool for each axis."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.read_grid(model)
        cells = domain.grid
        wraps = tuple(getattr(model, self.periodic)) if self.periodic else (False,) * len(cells)
        if len(wraps) != len(cells):
            constraint = f"`{self.periodic}` of the model has a bool for each of the {len(cells)} axes"
            raise InputError(self.source, constraint, repr(wraps), "Correct the model.")
        views = {
            n: self.view_cells(n, value, domain) if self.sources[n].kind in RELATED else ElementView(WHOLE, value.shape)
            for n, value in arrays_of(inputs).items()
        }
        flags = cached(model, f"{FLAGS} {wraps}", lambda: find_neighbours(cells))
        op = Op(self, inputs, domain, views, relations={FLAGS: flags}, variant=(cells, wraps))
        op.outputs = self.make_outputs(op, domain)
        return op

    def input_access(self, name: str, op: Op) -> Access:
        return "other"

    # --- parts of the three passes

    def compute(self, site: Site, op: Op, scope: Scope, given: RuleInputs) -> list[str]:
        """Add up the fluxes of the loop's cell, or their tangents."""
        terms = []
        for face in self._list_faces(site, op, scope):
            load = partial(self._load_side, site, op, scope, face)
            (flux,) = self.call(site, given.rule, self.load_arguments(site, op, scope, given, load), scope)
            terms.append(("-" if face.upward else "+", self._guard(face, flux, op.outputs[0].elements)))
        return [_add_up(site, terms)]

    def pull(self, site: Site, op: Op, scope: Scope, given: RuleInputs, targets: Mapping[str, Contribution]) -> None:
        (result,) = op.outputs
        adjoint, view = Slot("adjoint", result), result.elements
        terms: dict[Contribution, list[tuple[str, str]]] = {target: [] for target in targets.values()}
        own = site.load(adjoint, view)
        for face in self._list_faces(site, op, scope):
            arguments = self.load_arguments(site, op, scope, given, partial(self._load_side, site, op, scope, face))
            other = site.assign(result.name, site.load_at(adjoint, view, face.other))
            arguments.append(site.assign("difference", f"{other} - {own}" if face.upward else f"{own} - {other}"))
            found = dict(zip(self.varying, self.call(site, given.rule, arguments, scope), strict=True))
            for name, target in targets.items():
                sign = self._sign(name, face)
                if sign:
                    terms[target].append((sign, self._guard(face, found[name], target.view)))
        for target, each in terms.items():
            target.write(site, _add_up(site, each))

    def make_targets(self, op: Op, scope: Scope, wanted: Collection[str]) -> dict[str, Contribution]:
        """Prepare where the adjoints go; those of a pair's two parameters go to one array."""
        made: dict[Value, Contribution] = {}
        for name in wanted:
            if op.array(name) not in made:
                made[op.array(name)] = self.add_adjoint(op, scope, name)
        return {name: made[op.array(name)] for name in wanted}

    def _sign(self, name: str, face: _Face) -> str:
        """Sign with which a face's adjoint goes to the loop's cell; none if it goes to the other, or is shared."""
        kind = self.sources[name].kind
        if kind == "between":
            return "-" if face.upward else "+"
        return "+" if face.upward == (kind in ("one", "shared")) else ""

    def _list_faces(self, site: Site, op: Op, scope: Scope) -> list[_Face]:
        """List the faces of the loop's cell, the two of each axis in order."""
        cells, wraps = op.variant
        flags = site.once(f"{scope.relation(op, FLAGS)}[{site.row or site.index}]")
        found = []
        for axis, count in enumerate(cells):
            stride = math.prod(cells[axis + 1 :])
            for upward in (False, True):
                if site.row and axis == len(cells) - 1:
                    found.append(_Face(upward, "", f"{site.index} {'+' if upward else '-'} 1"))
                    continue
                bit = site.once(f"({flags} >> {2 * axis + upward}) & 1")
                step, back = ("+", "-") if upward else ("-", "+")
                if wraps[axis]:
                    other = f"{site.index} {step} {stride} {back} (1 - {bit}) * {count * stride}"
                    found.append(_Face(upward, "", site.once(other)))
                else:
                    found.append(_Face(upward, f"{bit} > 0", site.once(f"{site.index} {step} {bit} * {stride}")))
        return found

    def _load_side(self, site: Site, op: Op, scope: Scope, face: _Face, name: str, kind: Any) -> str:
        """Load an input, or its tangent, of the two cells of a face."""
        source, value = self.sources[name].kind, op.inputs[name]
        if source not in RELATED or not isinstance(value, Value) or scope.is_zero(value, kind):
            return self.load_input(site, op, scope, name, kind)
        slot, view = Slot(kind, value), op.views[name]
        own, other = site.load(slot, view), site.assign(value.name, site.load_at(slot, view, face.other))
        low, high = (own, other) if face.upward else (other, own)
        return {"one": low, "other": high}.get(source) or site.assign("difference", f"{high} - {low}")

    def _guard(self, face: _Face, expression: str, view: ElementView) -> str:
        """Replace an expression by 0 where the face does not exist."""
        return f"ti.select({face.exists}, {expression}, {zero_element(view.element)})" if face.exists else expression


def find_neighbours(cells: Shape) -> Array:
    """Compute the bits of FLAGS for each cell: bit 2 a for the face below along axis a, bit 2 a + 1 for the upper."""
    flags = np.zeros(cells, np.int32)
    for axis, count in enumerate(cells):
        at = np.arange(count).reshape([-1 if a == axis else 1 for a in range(len(cells))])
        flags |= np.where(at > 0, 1 << 2 * axis, 0).astype(np.int32)
        flags |= np.where(at < count - 1, 2 << 2 * axis, 0).astype(np.int32)
    return flags.reshape(-1)


def _add_up(site: Site, terms: Sequence[tuple[str, str]]) -> str:
    """Assign a sum of signed expressions to a local variable."""
    text = " ".join([f"{sign} {expression}" for sign, expression in terms])
    return site.assign("total", text.removeprefix("+ "))
