"""Dense layers: y = f(W x + b), with all entries of x in each entry of y.

The adjoint of f takes its result, y, in place of W x + b. Adjoint, for g = f' adj_y:

    adj_x = W^T g      adj_b = g      adj_W = g x^T

An outer product in each step would store all of adj_W. So the steps of a segment store g, and the products are added
up after the last of them, the last step first: a sum that does not depend on how the horizon is cut into segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simphys.autograd.errors import InputError
from simphys.numerics.element import Element, Rule, element_of

from .action import Access, Action, Slot
from .concatenate import entries
from .contribution import append_map, write_own
from .fit import Use
from .function import declare
from .matrix import LANES, SUMS, add_outer_products, add_rows, map_entries, multiply, multiply_transposed
from .pattern import Pattern, Source
from .program import WHOLE, Domain, ElementView, Op, Value, arrays_of, make_local
from .scope import Scope, adjoint_slot, hidden
from .site import Site


def dense(func: Any, *, weight: str, bias: str, given: str, result: str) -> Any:
    """Declare a layer y = f(W x + b), of which each entry depends on all entries of x.

    - `func`: element function f of a number, whose adjoint and tangent take its result, and do not read its input.
    - `weight`, `bias`, `given`, `result`: names of W [rows, columns], b [rows], x [columns] and y [rows].

    Returns a Function, to be applied to the model, W, b and x.
    """
    return declare(Dense(func, {"W": weight, "b": bias, "x": given}, result))


class Dense(Pattern):
    """The pattern of `dense`."""

    is_cheap = False
    product_us = 0.0002
    """Cost [us] of a product, approximately."""

    def __init__(self, func: Any, fields: Mapping[str, str], result: str) -> None:
        self.element: Element = element_of(func, "Dense")
        self.name, self.source, self.over = "DenseLayer", f"Dense({self.element.name})", ""
        self.take_arrays({name: Source("own", field) for name, field in fields.items()}, {result: (0,)})
        self._rule(self.element.adjoint)
        self._rule(self.element.tangent)

    def _rule(self, rule: Rule | None) -> Rule:
        """Return a rule. Errors: InputError unless it can do without the function's input, which is not stored."""
        if rule is None or self.element.inputs[0] in rule.reads((True,)):
            constraint = "its function has an adjoint and a tangent that take its result in place of its input"
            found = "no such rule" if rule is None else f"{rule.name}({', '.join(rule.parameters)})"
            raise InputError(self.source, constraint, found, "Write them as functions of the result.")
        return rule

    def cost_us(self, op: Op) -> float:
        return self.product_us * op.array("W").size

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        W, b, x = arrays_of(inputs).values()
        if len(W.shape) != 2 or (*b.shape, *x.shape) != W.shape:
            names = [source.field for source in self.sources.values()]
            constraint = f"{names[0]} is [rows, columns], {names[1]} [rows] and {names[2]} [columns]"
            found = f"{list(W.shape)}, {list(b.shape)}, {list(x.shape)}"
            raise InputError(self.source, constraint, found, "Correct the shapes.")
        units = Domain(f"{W.name}_rows", W.shape[0])
        views = {"W": _numbers(W, entries(W)), "b": _numbers(b, ElementView(units, ())), "x": _numbers(x, entries(x))}
        return Op(self, inputs, units, views, (make_local(next(iter(self.results)), units),))

    def list_uses(self, op: Op) -> list[Use]:
        return [Use(self.element, self.element.inputs, {self.element.inputs[0]: ()}, dict.fromkeys(self.results, ()))]

    # --- forward

    def forward(self, op: Op, scope: Scope) -> None:
        W, b, x = op.values()
        reads: Any = {Slot("value", value): "other" for value in (W, b, x)}
        target = Slot("value", op.outputs[0])
        activate = scope.function(self.element.forward)
        if not scope.gathers:

            def emit(site: Site) -> None:
                to, given = site.place(target), [site.place(Slot("value", value)) for value in (W, b, x)]
                rows, columns = W.shape
                multiply(site, given[0], rows, columns, given[2], lambda row, total: _set(site, target, row, total))
                map_entries(site, rows, [to, given[1]], to, lambda v: f"{activate}({v[0]} + {v[1]})")

            scope.add(Action(WHOLE, emit, reads, {target: "other"}))
            return

        def emit_row(site: Site) -> None:
            total = site.assign("total", site.load_at(Slot("value", b), ElementView(op.domain, ()), site.index))
            for j in site.each("j", W.shape[1]):
                site.line(f"{total} += {_entry(site, 'value', W, j)} * {_at(site, 'value', x, j)}")
            site.store(target, ElementView(op.domain, ()), f"{activate}({total})")

        scope.started.add(target)
        scope.add(Action(op.domain, emit_row, reads, {target: "own"}, heavy=True))

    # --- adjoint

    def adjoint(self, op: Op, scope: Scope) -> None:
        W, b, _ = op.values()
        y = op.outputs[0]
        before = hidden(f"{y.name}_before", op.domain, ElementView(op.domain, ()))
        deferred = any([scope.may_defer(value) for value in (W, b)])
        g = Slot("row" if deferred else "adjoint", before)
        if scope.gathers:
            self._pull_rows(op, scope, g)
        else:
            self._pull_whole(op, scope, g)
        for value, add, defer in ((W, _add_weight, _defer_weight), (b, _add_bias, _defer_bias)):
            if scope.wants(value):
                (defer if scope.may_defer(value) else add)(op, scope, g)

    def _pull_whole(self, op: Op, scope: Scope, g: Slot) -> None:
        W, _, x = op.values()
        y, adj_x = op.outputs[0], adjoint_slot(x)
        rule = scope.function(self._rule(self.element.adjoint))
        given, matrix = (Slot("value", y), Slot("adjoint", y)), Slot("value", W)

        def emit(site: Site) -> None:
            places = [site.place(slot) for slot in given]
            map_entries(site, W.shape[0], places, site.place(g), lambda v: f"{rule}(0.0, {v[0]}, {v[1]})")

        scope.add(Action(WHOLE, emit, dict.fromkeys(given, "other"), {g: "other"}))
        if not scope.wants(x):
            return
        adds = scope.begin(adj_x, op.views["x"], "own")

        def emit_product(site: Site) -> None:
            rows, columns = W.shape
            multiply_transposed(site, site.place(matrix), rows, columns, site.place(g), site.place(adj_x), adds=adds)

        reads: Any = {g: "other", matrix: "other"} | ({adj_x: "other"} if adds else {})
        scope.add(Action(WHOLE, emit_product, reads, {adj_x: "other"}))

    def _pull_rows(self, op: Op, scope: Scope, g: Slot) -> None:
        W, _, x = op.values()
        y, own, rule = op.outputs[0], ElementView(op.domain, ()), scope.function(self._rule(self.element.adjoint))

        def emit(site: Site) -> None:
            site.store(g, own, f"{rule}(0.0, {site.load(Slot('value', y), own)}, {site.load(Slot('adjoint', y), own)})")

        scope.add(Action(op.domain, emit, {Slot("value", y): "own", Slot("adjoint", y): "own"}, {g: "own"}))
        if not scope.wants(x):
            return
        target = write_own(adjoint_slot(x), op.views["x"], scope)

        def add_up(site: Site) -> str:
            total = site.assign("total", "0.0")
            for k in site.each("k", W.shape[0]):
                entry = site.load_at(Slot("value", W), op.views["W"], f"({k} * {W.shape[1]} + {site.index})")
                site.line(f"{total} += {entry} * {site.load_at(g, own, k)}")
            return total

        reads: dict[Slot, Access] = {Slot("value", W): "other", g: "other"}
        append_map(scope, op.views["x"].domain, target, add_up, reads, heavy=True)

    # --- tangent

    def tangent(self, op: Op, scope: Scope) -> None:
        W, b, x = op.values()
        y, own, rule = op.outputs[0], ElementView(op.domain, ()), scope.function(self._rule(self.element.tangent))
        moves = {value: scope.moves(value) for value in (W, b, x)}
        reads: Any = {Slot("value", y): "own"}
        reads |= {Slot("tangent", value): "other" for value in (W, b, x) if moves[value]}
        reads |= {Slot("value", W): "other"} if moves[x] else {}
        reads |= {Slot("value", x): "other"} if moves[W] else {}

        def emit(site: Site) -> None:
            start = site.load_at(Slot("tangent", b), own, site.index) if moves[b] else "0.0"
            total = site.assign("total", start)
            for j in site.each("j", W.shape[1]):
                if moves[x]:
                    site.line(f"{total} += {_entry(site, 'value', W, j)} * {_at(site, 'tangent', x, j)}")
                if moves[W]:
                    site.line(f"{total} += {_entry(site, 'tangent', W, j)} * {_at(site, 'value', x, j)}")
                if not moves[x] and not moves[W]:
                    site.line("pass")
            site.store(Slot("tangent", y), own, f"{rule}(0.0, {site.load(Slot('value', y), own)}, {total})")

        scope.started.add(Slot("tangent", y))
        scope.add(Action(op.domain, emit, reads, {Slot("tangent", y): "own"}, heavy=True))


def _numbers(value: Value, otherwise: ElementView) -> ElementView:
    """View of an array by its numbers; a step whose other sub-steps take it as a vector is not generated."""
    return value.view if value.view is not None and not value.view.element else otherwise


def _set(site: Site, slot: Slot, index: str, expression: str) -> None:
    place = site.place(slot)
    site.line(f"{place.array}[{place.offset} + {index}] = {expression}")


def _at(site: Site, kind: Any, value: Value, index: str) -> str:
    """Expression of an entry of an array."""
    return site.load_at(Slot(kind, value), ElementView(WHOLE, ()), index)


def _entry(site: Site, kind: Any, W: Value, column: str) -> str:
    """Expression of an entry of the loop's own row."""
    return _at(site, kind, W, f"{site.index} * {W.shape[1]} + {column}")


def _add_weight(op: Op, scope: Scope, g: Slot) -> None:
    """Add the outer product of a step."""
    W, _, x = op.values()
    view, columns = op.views["W"], W.shape[1]
    if adjoint_slot(W).kind == "sum":
        _add_products(op, scope, g)
        return
    target = write_own(adjoint_slot(W), view, scope)

    def multiply_entries(site: Site) -> str:
        factor = site.load_at(g, ElementView(op.domain, ()), f"({site.index} // {columns})")
        return f"{factor} * {_at(site, 'value', x, f'{site.index} % {columns}')}"

    append_map(scope, view.domain, target, multiply_entries, {g: "other", Slot("value", x): "other"})


def _add_products(op: Op, scope: Scope, g: Slot) -> None:
    """Add the outer product of a step to a sum over time, row by row."""
    W, _, x = op.values()
    target, given = adjoint_slot(W), Slot("value", x)

    def emit(site: Site) -> None:
        to, left, right = (site.place(slot) for slot in (target, g, given))
        with site.block(f"for i in range({W.shape[0]}):"):
            site.line(f"factor = {left.array}[{left.offset} + i]")
            with site.block(f"for j in range({W.shape[1]}):"):
                at = f"{to.array}[{to.offset} + i * {W.shape[1]} + j]"
                site.line(f"{at} = {at} + factor * {right.array}[{right.offset} + j]")

    scope.add(Action(WHOLE, emit, {g: "other", given: "other", target: "other"}, {target: "other"}))


def _add_bias(op: Op, scope: Scope, g: Slot) -> None:
    _, b, _ = op.values()
    target, own = write_own(adjoint_slot(b), op.views["b"], scope), ElementView(op.domain, ())
    append_map(scope, op.views["b"].domain, target, lambda site: site.load_at(g, own, site.index), {g: "other"})


def _defer_weight(op: Op, scope: Scope, g: Slot) -> None:
    """Add the outer products of all steps, after the last of them."""
    W, _, x = op.values()
    target, given = adjoint_slot(W), Slot("value", x)

    def emit(site: Site, first: str, count: int) -> None:
        places = [site.place(slot) for slot in (g, given, target)]
        add_outer_products(site, (first, count), W.shape[1], *places)

    _defer(scope, f"{W.name}_parts", W.shape[0], SUMS, emit, {g: "other", given: "other", target: "other"})


def _defer_bias(op: Op, scope: Scope, g: Slot) -> None:
    _, b, _ = op.values()
    target = adjoint_slot(b)

    def emit(site: Site, first: str, count: int) -> None:
        add_rows(site, first, count, site.place(g), site.place(target))

    _defer(scope, f"{b.name}_parts", b.size, LANES, emit, {g: "other", target: "other"})


def _defer(scope: Scope, name: str, size: int, width: int, emit: Any, reads: Any) -> None:
    """Defer a loop over rows, some at a time, and the rest of them."""
    *_, target = reads
    if size >= width:
        domain = Domain(name, size // width)
        scope.defer(
            Action(domain, lambda site: emit(site, f"{width} * {site.index}", width), reads, {target: "other"}, True)
        )
    if size % width:
        rest = size % width
        scope.defer(Action(WHOLE, lambda site: emit(site, f"{size - rest}", rest), reads, {target: "other"}, True))
