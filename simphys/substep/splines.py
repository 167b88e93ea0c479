"""Common parts of sub-steps between particles, or points, and the nodes of a grid, see to_grid.py and from_grid.py.

Interpolations differ in their weights: what these are, the tables that they take of the model, and what lies beyond the
sides. Particles are many: loops share them out, and sums over nodes are computed again for the adjoint. Points are few:
one thread adds to the grid for all of them, and their sums are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from simphys.autograd.errors import InputError
from simphys.numerics.element import Rule
from simphys.simulator import Shape

from .action import Access, Kind, Slot
from .contribution import Contribution, write_own
from .grid import CELLS, GridPattern
from .loops import RuleInputs
from .nodes import Cubic, CubicStencil
from .pattern import Source
from .program import Domain, ElementView, Op, Value, arrays_of, make_local
from .scope import Scope, adjoint_slot
from .site import Site
from .stencil_text import Quadratic, QuadraticStencil

SPACING = "spacing"
"""Attribute of the model with the distance of neighbouring nodes."""

Result = str | Shape | Callable[[int], Shape]
AnyStencil = QuadraticStencil | CubicStencil


class SplinePattern(GridPattern):
    """Base of both patterns. The spacing of the nodes is an input besides those of the function."""

    has_own_results = False

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
        if len(offsets) != 1:
            constraint = "one parameter takes the offset of a node"
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
        views = {
            n: self.view_cells(n, value, grid) if n in self.grids else self.view(n, value, domain)
            for n, value in arrays_of(inputs).items()
        }
        if views[self.offset].element != (len(cells),):
            constraint = f"{self.sources[self.offset].field} is [n, {len(cells)}]"
            raise InputError(self.source, constraint, f"{list(views[self.offset].element)}", "Correct it.")
        relations, sides = self.weights.tabulate(model, cells, domain.size, self.source)
        op = Op(self, inputs, domain, views, relations=relations, variant=(cells, sides), onto=self.target(grid))
        shapes = {name: like(len(cells)) if callable(like) else like for name, like in self.results.items()}
        elements = {n: like if isinstance(like, tuple) else self.element_shape(op, like) for n, like in shapes.items()}
        op.outputs = tuple([make_local(n, op.onto or domain, element) for n, element in elements.items()])
        return op

    def target(self, grid: Domain) -> Domain | None:
        """Index set of the results, where it is not that of the particles."""
        return None

    # --- what rules read

    def tangent(self, op: Op, scope: Scope) -> None:
        given = self.tangent_inputs()
        if scope.moves(op.inputs[self.offset]):  # and so do the weights, with which all of f is multiplied
            moving = (given.moving or frozenset()) | {self.offset}
            given = given._replace(values=frozenset(self.element.inputs), moving=moving)
        self.append_results(op, scope, "tangent", given)

    def rule_reads(self, op: Op, scope: Scope, given: RuleInputs) -> dict[Slot, Access]:
        return super().rule_reads(op, scope, given._replace(values=given.values | {self.offset}))

    def wanted_adjoints(self, op: Op, scope: Scope) -> list[str]:
        wanted = super().wanted_adjoints(op, scope)
        moves = scope.wants(op.inputs[self.offset]) and self.offset not in wanted  # by the weights, whatever f gives
        return [*wanted, self.offset] if moves else wanted

    def adjoint_inputs(self, wanted: Collection[str]) -> RuleInputs:
        given = super().adjoint_inputs(wanted)
        return given._replace(values=frozenset(self.element.inputs)) if self.offset in wanted else given

    # --- parts of the three passes

    @property
    def grids(self) -> list[str]:
        """Names of the parameters that take arrays of the nodes."""
        return [name for name in self.element.inputs if self.sources[name].kind == "nodes"]

    @contextmanager
    def each_node(self, site: Site, op: Op, scope: Scope, *, slopes: bool = False) -> Iterator[AnyStencil]:
        """Loop over the nodes around a particle, within a `with` block."""
        position = site.load(Slot("value", op.array(self.offset)), op.views[self.offset])
        stencil = self.weights.around(site, op, scope, position, scope.number(op, SPACING))
        with stencil.loop(slopes=slopes):
            yield stencil

    def load_own(self, site: Site, op: Op, scope: Scope, names: Collection[str], kind: Kind) -> dict[str, str]:
        """Load the inputs that do not depend on the node, before the loop over nodes; those not named are 0."""
        found = {}
        for name in self.element.inputs:
            if self.sources[name].kind != "nodes":
                used = name in names
                found[name] = self.load_input(site, op, scope, name, kind) if used else self.zero(op, name)
        return found

    def load_node(
        self, site: Site, op: Op, scope: Scope, names: Collection[str], kind: Kind, node: str
    ) -> dict[str, str]:
        """Load the inputs of a node."""
        found = {}
        for name in self.grids:
            value = op.array(name)
            used = name in names and not scope.is_zero(value, kind)
            loaded = site.load_at(Slot(kind, value), op.views[name], node) if used else self.zero(op, name)
            found[name] = site.assign(value.name, loaded)
        return found

    def call_at(
        self, site: Site, rule: Rule, scope: Scope, values: Mapping[str, str], more: Sequence[str] = ()
    ) -> list[str]:
        """Call a rule with the inputs by name, and what follows them."""
        return self.call(site, rule, [*[values[name] for name in self.element.inputs], *more], scope)

    def begin_terms(self, site: Site, op: Op, scope: Scope, given: RuleInputs) -> Callable[[AnyStencil], list[str]]:
        """Prepare the terms of w f, or of its tangent, at the nodes around a particle, which the function writes."""
        values, forward = self.load_own(site, op, scope, given.values, "value"), self.element.forward
        moves = self.load_own(site, op, scope, given.moving or (), "tangent")
        is_linear = bool(self.grids) and all(forward.linear(self.grids))

        def write(stencil: AnyStencil) -> list[str]:
            here = {**values, **self.load_node(site, op, scope, given.values, "value", stencil.node)}
            here[self.offset] = stencil.offset
            if given.moving is not None:
                there = {**moves, **self.load_node(site, op, scope, given.moving, "tangent", stencil.node)}
                return self._tangent_at(site, op, scope, stencil, here, there)
            if is_linear:
                here |= {n: site.assign("weighted", f"{stencil.weight} * {here[n]}") for n in self.grids}
                return self.call_at(site, forward, scope, here)
            return [f"{stencil.weight} * {each}" for each in self.call_at(site, forward, scope, here)]

        return write

    def _tangent_at(
        self,
        site: Site,
        op: Op,
        scope: Scope,
        stencil: AnyStencil,
        values: Mapping[str, str],
        tangents: Mapping[str, str],
    ) -> list[str]:
        """Write the tangent of w f at a node."""
        moves = {**tangents, self.offset: f"-{tangents[self.offset]}"}
        found = self.call_at(
            site, self.element.require_tangent(), scope, values, [moves[name] for name in self.varying]
        )
        terms = [f"{stencil.weight} * {each}" for each in found]
        if scope.moves(op.inputs[self.offset]):
            moved = self.load_input(site, op, scope, self.offset, "tangent")
            dweight = site.assign("dweight", f"{stencil.slope}.dot({moved})")
            fields = self.call_at(site, self.element.forward, scope, values)
            terms = [f"{term} + {dweight} * {field}" for term, field in zip(terms, fields, strict=True)]
        return terms

    def add_results(self, site: Site, found: Sequence[str], totals: Mapping[str, str], but: Sequence[str]) -> None:
        """Add the adjoints of inputs to their totals, but for some; that of an offset is opposite to the position's."""
        results = dict(zip(self.varying, found, strict=True))
        for name, total in totals.items():
            if name not in but:
                site.line(f"{total} {'-' if name == self.offset else '+'}= {results[name]}")

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        if name != self.offset:
            return super().add_adjoint(op, scope, name)
        return write_own(adjoint_slot(op.array(name)), op.views[name], scope)


def op_cells(op: Op) -> Shape:
    """Return the number of nodes along each axis."""
    cells: Shape = op.variant[0]
    return cells


def dot_product(view: ElementView, a: str, b: str) -> str:
    """Expression of the sum of the products of the components of two elements."""
    return {0: f"{a} * {b}", 1: f"{a}.dot({b})", 2: f"({a} * {b}).sum()"}[len(view.element)]
