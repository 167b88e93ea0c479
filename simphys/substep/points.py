"""Sub-steps at points between the cells of a regular grid: values read there, and strengths spread from there.

With the weights w_i(x) of `numerics.cubic` for the cells i around a point x, 4 along each axis,

    read:      y_r = sum_i w_i(x_r) u_i             spread:      f_i = sum_s w_i(x_s) q_s

They are the transposes of each other. Adjoints of positions take the gradients of the weights. A cell beyond a side
stands for a cell inside, as a field is continued there, see `numerics.boundary`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from simphys.autograd.errors import InputError
from simphys.numerics.cubic import cubic

from .action import Access, Action, Site, Slot, size_name
from .contribution import Contribution, write_own
from .function import declare
from .grid import CELLS, GridPattern
from .nodes import Node, Nodes, flat_index, functions_of_nodes, loop_over_nodes, node_table, row_major
from .pattern import Source
from .program import WHOLE, Domain, Op, Value, View
from .relation import cached
from .scope import Scope, adjoint_slot

Kind = Literal["value", "tangent"]


def read_at(result: str, *, field: str, position: str, over: str, sides: str = "boundaries", grid: str = CELLS) -> Any:
    """Declare a sub-step that reads a field [*cells] at points [n, dim], between the cells of `model.cells`.

    - `over`: the index set of the points.
    - `sides`: attribute of the model with the kind of each side x-, x+, y-, ...; see `numerics.boundary`.
    - `grid`: another attribute of the model with the shape of the field.

    Returns a Function, to be applied to the model, the field, the positions and the distance between cells.
    """
    return declare(ReadAt(result, field, position, over, sides, "", grid))


def spread_from(
    result: str, *, strength: str, position: str, over: str, sides: str = "boundaries", even: str = ""
) -> Any:
    """Declare a sub-step that spreads the strengths [n] of points [n, dim] over the cells of `model.cells`.

    - `over`, `sides`: as in `read_at`.
    - `even`: attribute of the model with integers [n]: bit a is set if a point spreads evenly along axis a.

    Adjoints of strengths and positions are gathered; strengths are spread in the order of the points.
    Returns a Function, to be applied to the model, the strengths, the positions and the distance between cells.
    """
    return declare(SpreadFrom(result, strength, position, over, sides, even))


class Points(GridPattern):
    """Base of the two patterns: the array that is read or spread, and what happens at each node of a point."""

    element_us = 0.1
    is_cheap = False

    def __init__(
        self, result: str, array: str, position: str, over: str, sides: str, even: str, grid: str = CELLS
    ) -> None:
        self.grid_name = grid
        self.element = cubic.element
        self.name = "".join([word.capitalize() for word in result.split("_")])
        self.source, self.over = f"{type(self).__name__}({result})", over
        self.sources = {array: Source("own", array), position: Source("own", position)}
        self.varying = (array, position)
        self.sources["spacing"] = Source("constant", "spacing")
        self.arguments = tuple(self.sources)
        self.places = (0, 1, 2)
        self.results = {result: ()}
        self._sides, self._even = sides, even

    def _make(self, model: Any, inputs: Mapping[str, Value | float], *, reads: bool) -> Op:
        cells, sides = self.read_cells(model), tuple(getattr(model, self._sides))
        array, position = (inputs[name] for name in self.varying)
        assert isinstance(array, Value) and isinstance(position, Value), "arrays"
        count = position.shape[0]
        expected = {self.varying[0]: cells if reads else (count,), self.varying[1]: (count, len(cells))}
        for (name, shape), value in zip(expected.items(), (array, position), strict=True):
            if value.shape != shape:
                raise InputError(self.source, f"{name} has the shape {shape}", f"{value.shape}", "Correct it.")
        points, grid = Domain(self.over, count), Domain(self.grid_name, array.size if reads else _size(cells), cells)
        views = {self.varying[0]: View(grid if reads else points, ()), self.varying[1]: View(points, (len(cells),))}
        relations = {"nodes": cached(model, f"nodes {cells} {sides}", lambda: node_table(cells, sides))}
        if self._even:
            relations |= self.read_relation(model, self._even, (count,), 2 ** len(cells))
        op = Op(self, inputs, points, views, relations=relations, variant=(cells, sides))
        result = View(points if reads else grid, ())
        op.outputs = (Value(next(iter(self.results)), (count,) if reads else cells, "local", result),)
        return op

    # --- parts of loops

    def loop(self, site: Site, op: Op, scope: Scope, point: str, body: Callable[[Node, str], None]) -> None:
        """Write the loop over the nodes of a point; `body` takes a node and the index of its cell."""
        variant: Any = op.variant
        cells, sides = variant
        name = self.varying[1]
        inverse = site.assign("inverse", f"1.0 / {scope.number(op, 'spacing')}")
        even = scope.relation(op, self._even) if self._even else ""
        nodes = Nodes(cells, sides, scope.relation(op, "nodes"), inverse, even)
        scope.functions |= functions_of_nodes()
        position = site.load(Slot("value", op.array(name)), op.views[name])
        strides = row_major(op_cells(op))
        loop_over_nodes(site, nodes, point, position, lambda node: body(node, flat_index(node.at, strides)))

    def moves_along(self, site: Site, op: Op, node: Node) -> str:
        """Write the tangent of a node's weight."""
        name = self.varying[1]
        return f"{node.slope()}.dot({site.load(Slot('tangent', op.array(name)), op.views[name])})"

    def load_own(self, site: Site, op: Op, reads: Mapping[Slot, Access]) -> None:
        """Load what belongs to a point, before the loop over its nodes."""
        views = {op.array(name): op.views[name] for name in self.varying}
        views |= {value: value.view for value in op.outputs if value.view is not None}
        for slot in reads:
            if slot.value in views and views[slot.value].domain == op.domain:
                site.load(slot, views[slot.value])

    def gather(
        self, op: Op, scope: Scope, targets: list[tuple[Contribution, str]], reads: dict[Slot, Access], body: Any
    ) -> None:
        """Append a loop over points: each result begins as zero, and `body` adds to it at each node."""

        used = dict(reads)

        def emit(site: Site) -> None:
            self.load_own(site, op, used)
            totals = [site.assign("total", zero) for _, zero in targets]
            self.loop(site, op, scope, site.index, lambda node, at: body(site, node, at, totals))
            for (target, _), total in zip(targets, totals, strict=True):
                target.write(site, total)

        if not targets:
            return
        for target, _ in targets:
            if target.adds:
                reads[target.slot] = "own"
        writes: dict[Slot, Access] = {target.slot: "own" for target, _ in targets}
        scope.add(Action(op.domain, emit, reads, writes, heavy=True))

    def scatter(
        self, op: Op, scope: Scope, target: Slot, view: View, reads: dict[Slot, Access], term: Callable[..., str]
    ) -> None:
        """Append a loop over points that adds to cells, in order: `term` writes what a node takes from a point."""
        if target in scope.frozen:
            return
        scope.begin(target, view, "other")

        def emit(site: Site) -> None:
            place = site.place(target)
            base = "" if place.offset == "0" else f"{place.offset} + "

            def add(node: Node, at: str) -> None:
                entry = site.assign("at", f"{base}{at}")
                site.line(f"{place.array}[{entry}] = {place.array}[{entry}] + {term(site, node, at)}")

            with site.loop("point", size_name(op.domain)):
                self.load_own(site, op, reads)
                self.loop(site, op, scope, "point", add)

        found: dict[Slot, Access] = {**dict.fromkeys(reads, "other"), target: "other"}
        scope.add(Action(WHOLE, emit, found, {target: "other"}, heavy=True))

    def adj_position(self, op: Op, scope: Scope) -> list[tuple[Contribution, str]]:
        """Prepare where the adjoint of the positions goes, if it is wanted."""
        name = self.varying[1]
        if not scope.wants(op.inputs[name]):
            return []
        return [(self.add_adjoint(op, scope, name), f"vector_{len(op_cells(op))}(0.0)")]

    def slots(self, op: Op, kind: Any = "value") -> tuple[Slot, Slot]:
        """Slots of the array and of the positions."""
        array, position = (Slot(kind, op.array(name)) for name in self.varying)
        return array, position


class ReadAt(Points):
    """The pattern of `read_at`."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        return self._make(model, inputs, reads=True)

    def forward(self, op: Op, scope: Scope) -> None:
        u, x = self.slots(op)
        target, view = self.write_result(op, scope, op.outputs[0], "value"), op.views[self.varying[0]]

        def body(site: Site, node: Node, at: str, totals: list[str]) -> None:
            site.line(f"{totals[0]} += {node.weight} * {site.load_at(u, view, at)}")

        if target.access != "none":
            self.gather(op, scope, [(target, "real(0.0)")], {u: "other", x: "other"}, body)

    def tangent(self, op: Op, scope: Scope) -> None:
        (u, x), (du, dx) = self.slots(op), self.slots(op, "tangent")
        target, view = self.write_result(op, scope, op.outputs[0], "tangent"), op.views[self.varying[0]]
        moving = [slot for slot in (du, dx) if scope.moves(slot.value)]

        def body(site: Site, node: Node, at: str, totals: list[str]) -> None:
            if du in moving:
                site.line(f"{totals[0]} += {node.weight} * {site.load_at(du, view, at)}")
            if dx in moving:
                slope = self.moves_along(site, op, node)
                site.line(f"{totals[0]} += {slope} * {site.load_at(u, view, at)}")

        self.gather(op, scope, [(target, "real(0.0)")], dict.fromkeys([u, x, *moving], "other"), body)

    def adjoint(self, op: Op, scope: Scope) -> None:
        (u, x), g, view = self.slots(op), Slot("adjoint", op.outputs[0]), op.views[self.varying[0]]
        own = op.outputs[0].elements

        def body(site: Site, node: Node, at: str, totals: list[str]) -> None:
            given = site.load(g, own)
            site.line(f"{totals[0]} += {given} * {site.load_at(u, view, at)} * {node.slope()}")

        def term(site: Site, node: Node, at: str) -> str:
            return f"{node.weight} * {site.load(g, own)}"

        self.gather(op, scope, self.adj_position(op, scope), {u: "other", x: "other", g: "other"}, body)
        if scope.wants(u.value):
            self.scatter(op, scope, adjoint_slot(u.value), view, {x: "other", g: "other"}, term)


class SpreadFrom(Points):
    """The pattern of `spread_from`."""

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        return self._make(model, inputs, reads=False)

    def forward(self, op: Op, scope: Scope) -> None:
        (q, x), view = self.slots(op), op.views[self.varying[0]]

        def term(site: Site, node: Node, at: str) -> str:
            return f"{node.weight} * {site.load(q, view)}"

        self._scatter_result(op, scope, "value", {q: "other", x: "other"}, term)

    def tangent(self, op: Op, scope: Scope) -> None:
        (q, x), (dq, dx), view = self.slots(op), self.slots(op, "tangent"), op.views[self.varying[0]]
        moving = [slot for slot in (dq, dx) if scope.moves(slot.value)]

        def term(site: Site, node: Node, at: str) -> str:
            terms = []
            if dq in moving:
                terms.append(f"{node.weight} * {site.load(dq, view)}")
            if dx in moving:
                terms.append(f"{self.moves_along(site, op, node)} * {site.load(q, view)}")
            return f"({' + '.join(terms)})"

        self._scatter_result(op, scope, "tangent", dict.fromkeys([q, x, *moving], "other"), term)

    def _scatter_result(
        self, op: Op, scope: Scope, kind: Kind, reads: dict[Slot, Access], term: Callable[..., str]
    ) -> None:
        view = op.outputs[0].elements
        self.scatter(op, scope, Slot(kind, op.outputs[0]), view, reads, term)

    def adjoint(self, op: Op, scope: Scope) -> None:
        (q, x), g, view = self.slots(op), Slot("adjoint", op.outputs[0]), op.views[self.varying[0]]
        cells = op.outputs[0].elements
        wants_strength = scope.wants(q.value)
        strengths = [(write_own(adjoint_slot(q.value), view, scope), "real(0.0)")] if wants_strength else []
        positions = self.adj_position(op, scope)

        def body(site: Site, node: Node, at: str, totals: list[str]) -> None:
            given = site.assign("given", site.load_at(g, cells, at))
            if wants_strength:
                site.line(f"{totals[0]} += {node.weight} * {given}")
            if positions:
                strength = site.load(q, view)
                site.line(f"{totals[-1]} += {given} * {strength} * {node.slope()}")

        self.gather(op, scope, [*strengths, *positions], {q: "other", x: "other", g: "other"}, body)


def op_cells(op: Op) -> tuple[int, ...]:
    """Return the number of cells along each axis."""
    variant: Any = op.variant
    cells: tuple[int, ...] = variant[0]
    return cells


def _size(cells: tuple[int, ...]) -> int:
    return row_major(cells)[0] * cells[0]
