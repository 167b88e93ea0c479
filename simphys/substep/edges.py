"""Sub-steps over the edges between nodes: springs, bonds, links. An edge reads its two ends, and acts on both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from simphys.autograd.errors import InputError

from .action import Access, Slot
from .contribution import Contribution, Ends, write_ends
from .function import declare
from .loops import LoopPattern
from .pattern import name_ends, name_sources
from .program import Domain, ElementView, Op, Value, arrays_of
from .relation import cached, with_inverse
from .scope import Scope, adjoint_slot
from .site import Site

ENDS = "ends"
"""Attribute of the model with the two nodes (a, b) of each edge, [S, 2]."""
EACH = (f"{ENDS} a", f"{ENDS} b")
"""Relations: the first, and the second node of each edge."""
BLOCK = 4
"""Edges that are computed together: enough for the compiler to vectorize, few enough for the registers."""


def edges(
    func: Any,
    *,
    between: Mapping[str, str],
    onto: str,
    over: str = "edges",
    nodes: str = "nodes",
    both: Mapping[tuple[str, str], str] | None = None,
    own: Mapping[str, str] | None = None,
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    unread: Mapping[str, tuple[str, str]] | None = None,
) -> Any:
    """Declare a sub-step over the edges between nodes, whose ends (a, b) are `model.ends` [S, 2].

    Each mapping goes from parameters of the element function to names of arrays.

    - `between`: differences of arrays of the nodes, that at b less that at a.
    - `both`: two parameters, for the entries of an array of the nodes at a and at b.
    - `onto`: name of the result, an array of the nodes: the function's result is added at a, and subtracted at b.
    - `own`, `shared`, `constant`: arrays of the edges, as in `per_element`.
    - `unread`: for a parameter, another one that has no effect wherever the first is zero, and a third one of the same
      kind and shape, which an engine then takes in its place.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    gathered = {p: (array, by) for by, arrays in zip(EACH, name_ends(both), strict=True) for p, array in arrays.items()}
    sources = name_sources(between=between, gathered=gathered, own=own, shared=shared, constant=constant)
    made = Edges(func, sources, results={onto: next(iter(between))}, over=over)
    made.nodes, made.unread = nodes, unread or {}
    made.require_unread()
    return declare(made)


class Edges(LoopPattern):
    """The pattern of `edges`."""

    adjoint_access: Access = "other"
    has_own_results = False
    element_us = 0.004
    is_cheap = False
    width = BLOCK

    nodes = "nodes"
    """Index set that the edges join."""

    def require_unread(self) -> None:
        """Raise InputError for parameters of `unread` that do not fit each other."""
        for name, (idle, other) in self.unread.items():
            kinds = [self.sources[each].kind if each in self.sources else "" for each in (name, idle, other)]
            if "" in kinds or kinds[1] != kinds[2] or idle == other:
                constraint = "unread names a parameter, one that has no effect without it, and another of the same kind"
                remedy = "Name parameters of the element function, the last two of one kind, such as `between`."
                raise InputError(self.source, constraint, f"{name}: {(idle, other)}", remedy)

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        nodes = self.own_domain(inputs, kinds=("between", "gathered"), name=self.nodes)
        count = len(getattr(model, ENDS, ()))
        domain = Domain(self.over, count)
        self.require_constants(inputs, domain)
        relations = self.read_relation(model, ENDS, (count, 2), nodes.size, gaps=False)
        loops = np.flatnonzero(relations[ENDS][:, 0] == relations[ENDS][:, 1])
        if loops.size:
            found = f"edge {loops[0]} from {relations[ENDS][loops[0], 0]} to itself"
            raise InputError(self.source, f"`{ENDS}` of the model joins two different {self.nodes}", found, "Drop it.")
        for by, end in zip(EACH, relations[ENDS].T, strict=True):
            if any([source.by == by for source in self.sources.values()]):
                relations |= with_inverse(model, by, cached(model, by, end.copy), nodes.size)
        of_nodes = ("between", "gathered")
        views = {
            n: ElementView(nodes, value.shape[1:]) if self.sources[n].kind in of_nodes else self.view(n, value, domain)
            for n, value in arrays_of(inputs).items()
        }
        op = Op(self, inputs, domain, views, relations=relations, onto=nodes)
        op.outputs = self.make_outputs(op, nodes)
        return op

    def has_gaps(self, op: Op, by: str) -> bool:
        return False

    def load_input(self, site: Site, op: Op, scope: Scope, name: str, kind: Any) -> str:
        if self.sources[name].kind != "between":
            return super().load_input(site, op, scope, name, kind)
        value = op.array(name)
        if scope.is_zero(value, kind):
            return self.zero(op, name)
        return self._difference(site, op, scope, Slot(kind, value), op.views[name], "-")

    def load_adjoint(self, site: Site, op: Op, scope: Scope, value: Value) -> str:
        return self._difference(site, op, scope, Slot("adjoint", value), value.elements, "+")

    def write_result(self, op: Op, scope: Scope, value: Value, kind: Literal["value", "tangent"]) -> Contribution:
        return write_ends(op, scope, Slot(kind, value), value.elements, Ends("+-", ENDS))

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        if self.sources[name].kind != "between":
            return super().add_adjoint(op, scope, name)
        return write_ends(op, scope, adjoint_slot(op.array(name)), op.views[name], Ends("-+", ENDS))

    def _difference(self, site: Site, op: Op, scope: Scope, slot: Slot, view: ElementView, sign: str) -> str:
        """Load the element at one end less that at the other: b - a for the sign "-" of a, a - b for "+"."""
        relation = scope.relation(op, ENDS)
        a, b = (site.once(f"{relation}[{site.index}][{end}]") for end in (0, 1))
        first, second = (b, a) if sign == "-" else (a, b)
        left, right = (site.assign(slot.value.name, site.load_at(slot, view, end)) for end in (first, second))
        return site.assign("difference", f"{left} - {right}")
