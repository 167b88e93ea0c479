"""Sums over an index set: of what an element function gives for each element, such as a mean or an energy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from simphys.simulator import Shape

from .action import Access, Site, Slot
from .contribution import Contribution, write_own
from .function import declare
from .loops import LoopPattern
from .pattern import Source
from .program import WHOLE, Op, Value, View
from .scope import Scope, hidden, reduce


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
    sources = {p: Source("own", name) for p, name in own.items()}
    sources |= {p: Source("shared", name) for p, name in (shared or {}).items()}
    sources |= {p: Source("constant", name) for p, name in (constant or {}).items()}
    return declare(Total(func, sources, results=results, over=over))


class Total(LoopPattern):
    """The pattern of `total`."""

    adjoint_access: Access = "other"

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.own_domain(inputs)
        views = {name: self.view(name, v, domain) for name, v in inputs.items() if isinstance(v, Value)}
        op = Op(self, inputs, domain, views)
        op.outputs = self.make_outputs(op, WHOLE)
        return op

    def write_result(self, op: Op, scope: Scope, value: Value, kind: Literal["value", "tangent"]) -> Contribution:
        view = value.view
        assert view is not None, "made with the sub-step"
        target, parts = Slot(kind, value), View(op.domain, view.element)
        if target in scope.frozen:
            return write_own(target, view, scope)
        work = Slot(kind, hidden(f"{value.name}_parts", op.domain, view))
        return write_own(work, parts, scope, lambda: scope.add(reduce(work, parts, target, view, adds=False)))

    def load_adjoint(self, site: Site, op: Op, scope: Scope, value: Value) -> str:
        assert value.view is not None, "made with the sub-step"
        return site.assign(value.name, site.load_at(Slot("adjoint", value), value.view, "0"))
