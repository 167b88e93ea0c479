"""Common parts of sub-steps between particles, or points, and the nodes of a grid, see to_grid.py and from_grid.py.

Interpolations differ in their weights: what these are, the tables that they take of the model, and what lies beyond the
sides. Particles are many: loops share them out, and sums over nodes are computed again for the adjoint. Points are few:
one thread adds to the grid for all of them, and their sums are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from simphys.autograd.errors import InputError
from simphys.simulator import Shape

from .action import Access, Site, Slot
from .contribution import Contribution, add_own_adjoint, write_own
from .grid import CELLS, GridPattern
from .nodes import Cubic, CubicStencil
from .pattern import Source
from .program import Domain, Op, Value, View
from .scope import Scope, adjoint_slot
from .stencil_text import Quadratic, Stencil

SPACING = "spacing"
"""Attribute of the model with the distance of neighbouring nodes."""

Result = str | Shape | Callable[[int], Shape]


class SplinePattern(GridPattern):
    """Base of both patterns. The spacing of the nodes is an input besides those of the function."""

    def __init__(
        self,
        func: Any,
        sources: Mapping[str, Source],
        *,
        results: Mapping[str, Result],
        over: str,
        weights: Quadratic | Cubic | None = None,
        grid: str = CELLS,
    ) -> None:
        self.weights, self.grid_name = weights or Quadratic(), grid
        self.element_us, many = self.weights.element_us, self.weights.many
        self.is_long, self.is_cheap, self.heavy = many, many, not many
        shapes: dict[str, Any] = {name: like for name, like in results.items()}
        super().__init__(func, sources, results=shapes, over=over)
        offsets = [name for name, source in self.sources.items() if source.kind == "offset"]
        if len(offsets) != 1 or self.reads_results:
            constraint = "one parameter takes the offset of a node, and no rule takes the results"
            raise InputError(self.source, constraint, f"{offsets}", "Correct the declaration.")
        (self.offset,) = offsets
        self.sources[SPACING] = Source("constant", SPACING, by=SPACING)
        self.places = (*self.places, None)

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        grid = self.read_grid(model)
        cells = grid.grid
        spacing = getattr(model, SPACING, None)
        fewest = self.weights.fewest
        if not isinstance(spacing, int | float) or spacing <= 0 or min(cells) < fewest:
            constraint = f"`{SPACING}` of the model is a positive number, and each axis has {fewest} nodes or more"
            raise InputError(self.source, constraint, f"{spacing!r}, {list(cells)}", "Correct the model.")
        inputs = {**inputs, SPACING: float(spacing)}
        domain = self.own_domain(inputs, kinds=("own", "offset"))
        views = {}
        for name, value in inputs.items():
            if isinstance(value, Value):
                on_nodes = self.sources[name].kind == "nodes"
                views[name] = self.view_cells(name, value, grid) if on_nodes else self.view(name, value, domain)
        if views[self.offset].element != (len(cells),):
            constraint = f"{self.sources[self.offset].field} is [n, {len(cells)}]"
            raise InputError(self.source, constraint, f"{list(views[self.offset].element)}", "Correct it.")
        relations, sides = self.weights.tabulate(model, cells, domain.size, self.source)
        op = Op(self, inputs, domain, views, relations=relations, variant=(cells, sides), onto=self.target(grid))
        shapes = {name: like(len(cells)) if callable(like) else like for name, like in self.results.items()}
        op.outputs = tuple([self._make_output(op, name, like) for name, like in shapes.items()])
        return op

    def _make_output(self, op: Op, name: str, like: str | Shape) -> Value:
        element = like if isinstance(like, tuple) else self.element_shape(op, like)
        domain = op.onto or op.domain
        return Value(name, (*(domain.grid or (domain.size,)), *element), "local", View(domain, element))

    def target(self, grid: Domain) -> Domain | None:
        """Index set of the results, where it is not that of the particles."""
        return None

    # --- parts of the three passes

    @contextmanager
    def each_node(self, site: Site, op: Op, scope: Scope, *, slopes: bool = False) -> Iterator[Stencil | CubicStencil]:
        """Loop over the nodes around a particle, within a `with` block."""
        position = site.load(Slot("value", op.array(self.offset)), op.views[self.offset])
        stencil = self.weights.around(site, op, scope, position, scope.number(op, SPACING))
        with stencil.loop(slopes=slopes):
            yield stencil

    def _values(
        self, site: Site, op: Op, scope: Scope, names: Collection[str], kind: Literal["value", "tangent"]
    ) -> dict[str, str]:
        """Load the inputs that do not depend on the node, before the loop over nodes; those not named are 0."""
        found = {}
        for name in self.element.inputs:
            if self.sources[name].kind != "nodes":
                used = name in names
                found[name] = self.load_input(site, op, scope, name, kind) if used else self.zero(op, name)
        return found

    def _at_node(
        self, site: Site, op: Op, scope: Scope, names: Collection[str], kind: Literal["value", "tangent"], node: str
    ) -> dict[str, str]:
        """Load the inputs of a node."""
        found = {}
        for name, source in self.sources.items():
            value = op.inputs[name]
            if source.kind == "nodes" and isinstance(value, Value):
                still = scope.is_zero(value) or (kind == "tangent" and not scope.moves(value))
                used = name in names and not still
                loaded = site.load_at(Slot(kind, value), op.views[name], node) if used else self.zero(op, name)
                found[name] = site.assign(value.name, loaded)
        return found

    def _call_at(
        self,
        site: Site,
        rule: Any,
        scope: Scope,
        values: Mapping[str, str],
        more: Sequence[str] = (),
    ) -> list[str]:
        return self.call(site, rule, [*[values[name] for name in self.element.inputs], *more], scope)

    def _reads(self, op: Op, scope: Scope, names: Collection[str], kind: Any = "value") -> dict[Slot, Access]:
        chosen = frozenset(names) & frozenset(self.element.inputs)
        found = self.input_reads(op, scope, chosen | ({self.offset} if kind == "value" else set()), kind)
        for name in chosen:
            value = op.inputs[name]
            if self.sources[name].kind == "nodes" and isinstance(value, Value) and Slot(kind, value) in found:
                found[Slot(kind, value)] = "other"
        return found

    def _move_weight(self, site: Site, op: Op, scope: Scope, stencil: Stencil | CubicStencil) -> str | None:
        """Write the tangent of a node's weight; None if the particles do not move."""
        value = op.inputs[self.offset]
        if not scope.moves(value):
            return None
        moved = self.load_input(site, op, scope, self.offset, "tangent")
        return site.assign("dweight", f"{stencil.slope}.dot({moved})")

    def _tangent_at(
        self,
        site: Site,
        op: Op,
        scope: Scope,
        stencil: Stencil | CubicStencil,
        values: Mapping[str, str],
        tangents: Mapping[str, str],
    ) -> list[str]:
        """Write the tangent of w f at a node."""
        rule = self.tangent_rule()
        moves = {**tangents, self.offset: f"-{tangents[self.offset]}"}
        found = self._call_at(site, rule, scope, values, [moves[name] for name in self.varying])
        dweight = self._move_weight(site, op, scope, stencil)
        terms = [f"{stencil.weight} * {each}" for each in found]
        if dweight is not None:
            fields = self._call_at(site, self.element.forward, scope, values)
            terms = [f"{term} + {dweight} * {field}" for term, field in zip(terms, fields, strict=True)]
        return terms

    def _tangent_reads(self, op: Op, scope: Scope) -> tuple[frozenset[str], frozenset[str], dict[Slot, Access]]:
        """Names of the inputs whose values and tangents are read, and their slots."""
        rule = self.tangent_rule()
        names = rule.reads((True,) * len(rule.results))
        values, moving = names & op.inputs.keys(), frozenset([n[1:] for n in names - op.inputs.keys()])
        if scope.moves(op.inputs[self.offset]):
            values |= frozenset(self.element.inputs)
            moving |= {self.offset}
        return values, moving, self._reads(op, scope, values) | self._reads(op, scope, moving, "tangent")

    def _wanted(self, op: Op, scope: Scope) -> list[str]:
        wanted = self.wanted_adjoints(op, scope)
        if scope.wants(op.inputs[self.offset]) and self.offset not in wanted:
            wanted.append(self.offset)
        return wanted

    def _add_results(self, site: Site, found: Sequence[str], totals: Mapping[str, str], but: Sequence[str]) -> None:
        """Add the adjoints of inputs to their totals, but for some; that of an offset is opposite to the position's."""
        results = dict(zip(self.varying, found, strict=True))
        for name, total in totals.items():
            if name not in but:
                site.line(f"{total} {'-' if name == self.offset else '+'}= {results[name]}")

    def _own_target(self, op: Op, name: str, scope: Scope) -> Contribution:
        if name != self.offset:
            return add_own_adjoint(op, name, scope)
        return write_own(adjoint_slot(op.array(name)), op.views[name], scope)


def op_cells(op: Op) -> Shape:
    """Return the number of nodes along each axis."""
    variant: Any = op.variant
    cells: Shape = variant[0]
    return cells


def dot_product(view: View, a: str, b: str) -> str:
    """Expression of the sum of the products of the components of two elements."""
    return {0: f"{a} * {b}", 1: f"{a}.dot({b})", 2: f"({a} * {b}).sum()"}[len(view.element)]
