"""Sums over an index set: of what an element function gives for each element, such as a mean or an energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from simphys.simulator import Shape

from .action import Access, Action, Slot
from .contribution import Contribution, write_own
from .expressions import size_name, zero_element
from .function import declare
from .loops import LoopPattern, RuleInputs
from .pattern import name_sources
from .program import WHOLE, ElementView, Op, Value
from .scope import Scope, hidden, reduce
from .site import Site


def total(
    func: Any,
    *,
    over: str,
    own: Mapping[str, str],
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    results: Mapping[str, str | Shape] | None = None,
) -> Any:
    """Declare a sub-step that adds up the results of an element function over an index set.

    Each mapping goes from parameters of the element function to names of arrays, as in `per_element`.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    sources = name_sources(own=own, shared=shared, constant=constant)
    return declare(Total(func, sources, results=results, over=over))


class Total(LoopPattern):
    """The pattern of `total`."""

    adjoint_access: Access = "other"
    has_own_results = False

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.own_domain(inputs)
        views = self.make_views(inputs, domain)
        op = Op(self, inputs, domain, views)
        op.outputs = self.make_outputs(op, WHOLE)
        return op

    def append_results(self, op: Op, scope: Scope, kind: Literal["value", "tangent"], given: RuleInputs) -> None:
        if scope.gathers:
            super().append_results(op, scope, kind, given)
            return
        # One loop adds up the results, without memory for each of them.
        views = {Slot(kind, value): value.elements for value in op.outputs}
        scope.started |= views.keys()

        def emit(site: Site) -> None:
            totals = [site.assign("total", zero_element(view.element)) for view in views.values()]
            for _ in site.loop("k", size_name(op.domain)):
                for name, result in zip(totals, self.compute(site, op, scope, given), strict=True):
                    site.line(f"{name} += {result}")
            for (slot, view), name in zip(views.items(), totals, strict=True):
                if slot not in scope.frozen:
                    site.store(slot, view, name)

        writes: dict[Slot, Access] = {slot: "own" for slot in views if slot not in scope.frozen}
        scope.add(Action(WHOLE, emit, dict.fromkeys(self.rule_reads(op, scope, given), "other"), writes))

    def write_result(self, op: Op, scope: Scope, value: Value, kind: Literal["value", "tangent"]) -> Contribution:
        view = value.elements
        target, parts = Slot(kind, value), ElementView(op.domain, view.element)
        if target in scope.frozen:
            return write_own(target, view, scope)
        work = Slot(kind, hidden(f"{value.name}_parts", op.domain, view))
        return write_own(work, parts, scope, lambda: scope.add(reduce(work, parts, target, view, adds=False)))

    def load_adjoint(self, site: Site, op: Op, scope: Scope, value: Value) -> str:
        return site.assign(value.name, site.load_at(Slot("adjoint", value), value.elements, "0"))
