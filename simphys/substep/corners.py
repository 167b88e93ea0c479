"""Sub-steps at points that move over a regular grid: each reads the entries at the corners around it.

A point p, in cells, has entry i of the grid at p = i. Corner 0 is at floor(p), or wrapped around along a periodic axis.
Along other axes points end half a cell beyond the first and the last entry, and the values there are those of these
entries. A point beyond is moved there, and no gradient flows to it along that axis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from simphys.autograd.errors import InputError
from simphys.simulator import Shape

from .action import Access, Action, Site, Slot, build_element, size_name, zero_element
from .contribution import Contribution, add_own_adjoint, write_own
from .function import declare
from .grid import CELLS, GridPattern
from .pattern import Source
from .program import WHOLE, Domain, Op, Value, View
from .scope import Scope, adjoint_slot, hidden


def corners(
    func: Any,
    *,
    points: Mapping[str, str],
    around: Mapping[str, tuple[str, str]],
    over: str = CELLS,
    own: Mapping[str, str] | None = None,
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    results: Mapping[str, str | Shape] | None = None,
    periodic: str = "",
) -> Any:
    """Declare a sub-step at points over the grid of `model.cells`.

    Each mapping goes from parameters of the element function to names of arrays.

    - `points`: points [n, dim] in cells; the parameter is the offset of a point from corner 0, a vector [dim].
    - `around`: arrays of cells, and the parameter of the point; the parameter is the vector of the 2^dim entries at
      its corners. Bit a of a corner's number gives its position along axis a.
    - `over`: the index set of the points, by default that of the cells, whose arrays are [*cells, dim] and [*cells].
    - `own`, `shared`, `constant`, `results`: as in `per_element`.
    - `periodic`: attribute of the model with a bool for each axis: True if its last cells lie next to its first ones.

    Adjoints of entries are added in the order of the points, whatever the number of threads.
    Returns a Function, to be applied to the model and the arrays, each once, in the order of the parameters.
    """
    sources = {p: Source("point", name) for p, name in points.items()}
    sources |= {p: Source("corners", name, by) for p, (name, by) in around.items()}
    sources |= {p: Source("own", name) for p, name in (own or {}).items()}
    sources |= {p: Source("shared", name) for p, name in (shared or {}).items()}
    sources |= {p: Source("constant", name) for p, name in (constant or {}).items()}
    return declare(Corners(func, sources, results=results, over=over, periodic=periodic))


class _Location(NamedTuple):
    """A point among the cells, in the text."""

    offset: str
    """Expression of the offset from corner 0."""
    inside: str
    """Expression of a vector: 1 along each axis along which the point was not moved, else 0."""
    cells: Sequence[str]
    """Index of the cell at each corner."""


class Corners(GridPattern):
    """The pattern of `corners`."""

    element_us = 0.01

    def __init__(self, func: Any, sources: Mapping[str, Source], *, periodic: str, **options: Any) -> None:
        super().__init__(func, sources, **options)
        self.periodic = periodic
        for name, source in self.sources.items():
            if source.kind == "corners" and self.sources.get(source.by, source).kind != "point":
                remedy = "Name a parameter among the points."
                raise InputError(self.source, f"{name} lies around a point", repr(source.by), remedy)

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        cells = self.read_cells(model)
        wraps = tuple(getattr(model, self.periodic)) if self.periodic else (False,) * len(cells)
        on_cells = self.over == CELLS
        grid = Domain(CELLS, math.prod(cells), cells)
        domain = grid if on_cells else self.own_domain(inputs, ("own", "point"))
        views = {}
        for name, value in inputs.items():
            kind = self.sources[name].kind
            if not isinstance(value, Value):
                continue
            leads = (cells if on_cells else (domain.size,)) if kind != "corners" else cells
            if kind in ("own", "point", "corners") or (kind == "constant" and value.shape[: len(leads)] == leads):
                of_cells = on_cells or kind == "corners"
                views[name] = self.view_cells(name, value, cells) if of_cells else View(domain, value.shape[1:])
            else:
                views[name] = View(WHOLE, value.shape)
            expected = {"point": (len(cells),), "corners": ()}.get(kind, views[name].element)
            if views[name].element != expected:
                constraint = f"{self.sources[name].field} has entries of shape {expected}"
                raise InputError(self.source, constraint, f"{views[name].element}", "Correct it.")
        op = Op(self, inputs, domain, views, variant=(cells, wraps))
        op.outputs = self.make_cell_outputs(op, cells) if on_cells else self.make_outputs(op, domain)
        return op

    # --- inputs of the loops

    def zero(self, op: Op, name: str) -> str:
        if self.sources[name].kind != "corners":
            return super().zero(op, name)
        return zero_element(self._corner_shape(op))

    def load_input(self, site: Site, op: Op, scope: Scope, name: str, kind: Any) -> str:
        source, value = self.sources[name], op.inputs[name]
        if source.kind not in ("point", "corners"):
            return super().load_input(site, op, scope, name, kind)
        assert isinstance(value, Value), "points and grids are arrays"
        if kind == "tangent" and not scope.moves(value):
            return self.zero(op, name)
        slot, view = Slot(kind, value), op.views[name]
        if source.kind == "point":
            at = self._locate(site, op, name)
            return at.offset if kind == "value" else site.assign(name, f"{at.inside} * {site.load(slot, view)}")
        parts = [site.load_at(slot, view, cell) for cell in self._locate(site, op, source.by).cells]
        return site.assign(name, build_element(parts, self._corner_shape(op)))

    def input_access(self, name: str, op: Op) -> Access:
        return "other" if self.sources[name].kind == "corners" else super().input_access(name, op)

    def input_reads(self, op: Op, scope: Scope, names: frozenset[str], kind: Any = "value") -> dict[Slot, Access]:
        found = super().input_reads(op, scope, names, kind)
        for name, source in self.sources.items():  # every pass locates the points
            value = op.inputs[name]
            if source.kind == "point" and kind == "value" and isinstance(value, Value):
                found.setdefault(Slot("value", value), self.input_access(name, op))
        return found

    # --- adjoints

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        kind = self.sources[name].kind
        if kind == "corners":
            return self._add_to_corners(op, scope, name)
        target = add_own_adjoint(op, name, scope)
        if kind != "point":
            return target

        def write(site: Site, result: str) -> None:
            target.write(site, site.assign(name, f"{self._locate(site, op, name).inside} * {result}"))

        return Contribution(target.slot, target.view, target.access, write, target.adds, target.finish)

    def _add_to_corners(self, op: Op, scope: Scope, name: str) -> Contribution:
        """Add to the entries at the corners of a point: at once, or after a loop that runs in parallel."""
        value, view, point = op.inputs[name], op.views[name], self.sources[name].by
        assert isinstance(value, Value), "grids are arrays"
        target = adjoint_slot(value)
        if not scope.gathers:

            def scatter(site: Site, result: str) -> None:
                for number, cell in enumerate(self._locate(site, op, point).cells):
                    site.add_at(target, view, [("+", cell)], f"{result}[{number}]")

            return Contribution(target, view, "other", scatter, scope.begin(target, view, "other"))
        parts = View(op.domain, self._corner_shape(op))
        work = Slot("adjoint", hidden(f"{op.outputs[0].name}_to_{value.name}", op.domain, parts))

        def finish() -> None:
            scope.begin(target, view, "other")
            place = op.inputs[point]
            assert isinstance(place, Value), "points are arrays"

            def emit(site: Site) -> None:
                memory = site.place(target)
                base = "" if memory.offset == "0" else f"{memory.offset} + "
                with site.loop("k", size_name(op.domain)):
                    part = site.assign("part", site.load_at(work, parts, "k"))
                    for number, cell in enumerate(self._locate(site, op, point).cells):
                        entry = f"{memory.array}[{base}{cell}]"
                        site.line(f"{entry} = {entry} + {part}[{number}]")

            reads: dict[Slot, Access] = {work: "other", Slot("value", place): "other", target: "other"}
            scope.add(Action(WHOLE, emit, reads, {target: "other"}, heavy=True))

        return write_own(work, parts, scope, finish)

    # --- points

    def _locate(self, site: Site, op: Op, name: str) -> _Location:
        """Locate a point of the loop; what is known already is not computed again."""
        variant: Any = op.variant
        value = op.inputs[name]
        assert isinstance(value, Value), "points are arrays"
        p, lows, highs, offsets, insides = site.load(Slot("value", value), op.views[name]), [], [], [], []
        for axis, (n, wraps) in enumerate(zip(*variant, strict=True)):
            if wraps:
                q = f"{p}[{axis}]"
                below = site.once(f"ti.floor({q})")
                # Half an entry protects the floor against rounding at multiples of n.
                first = site.once(f"ti.cast({below} - {n} * ti.floor(({below} + 0.5) / {n}), ti.i32)")
                lows.append(site.once(f"ti.max(ti.min({first}, {n - 1}), 0)"))
                highs.append(site.once(f"ti.select({lows[-1]} == {n - 1}, 0, {lows[-1]} + 1)"))
                insides.append("1.0")
            else:
                q = site.once(f"ti.min(ti.max({p}[{axis}], -0.5), {n - 0.5})")
                below = site.once(f"ti.floor({q})")
                first = site.once(f"ti.max(ti.min(ti.cast({below}, ti.i32), {n - 1}), -1)")
                lows.append(site.once(f"ti.max({first}, 0)"))
                highs.append(site.once(f"ti.min({first} + 1, {n - 1})"))
                insides.append(f"ti.select({p}[{axis}] >= -0.5 and {p}[{axis}] <= {n - 0.5}, 1.0, 0.0)")
            offsets.append(f"{q} - {below}")
        cells, shape = variant[0], (len(variant[0]),)
        found = []
        for corner in range(2 ** len(cells)):
            ends = [(highs if corner >> axis & 1 else lows)[axis] for axis in range(len(cells))]
            terms = [f"{end} * {math.prod(cells[axis + 1 :])}" for axis, end in enumerate(ends[:-1])]
            found.append(site.once(" + ".join([*terms, ends[-1]])))
        return _Location(site.once(build_element(offsets, shape)), build_element(insides, shape), found)

    def _corner_shape(self, op: Op) -> Shape:
        variant: Any = op.variant
        return (2 ** len(variant[0]),)
