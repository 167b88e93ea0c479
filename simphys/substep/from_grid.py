"""Sub-steps in which particles sum over the nodes of a grid around them, see to_grid.py for the equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .action import Access, Site, Slot, zero_element
from .contribution import write_own
from .function import declare
from .pattern import name_sources
from .program import Op
from .scatter import scatter
from .scope import Scope, adjoint_slot
from .splines import Result, SplinePattern, dot_product
from .stencil_text import Stencil


def from_grid(
    func: Any,
    *,
    offset: Mapping[str, str],
    nodes: Mapping[str, str],
    results: Mapping[str, Result],
    over: str = "particles",
    own: Mapping[str, str] | None = None,
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
) -> Any:
    """Declare a sub-step in which each particle sums w f(r, u, ...) over the nodes around it.

    - `nodes`: arrays of the nodes, [*cells, ...]. For the others, and for what is returned, see `to_grid`.
    """
    sources = name_sources(offset=offset, own=own, nodes=nodes, shared=shared, constant=constant)
    return declare(FromGrid(func, sources, results=results, over=over))


class FromGrid(SplinePattern):
    """The pattern of `from_grid`."""

    def forward(self, op: Op, scope: Scope) -> None:
        self._gather(op, scope, "value", self._reads(op, scope, self.element.inputs))

    def tangent(self, op: Op, scope: Scope) -> None:
        self._gather(op, scope, "tangent", self._tangent_reads(op, scope)[2])

    def _gather(self, op: Op, scope: Scope, kind: Literal["value", "tangent"], reads: Mapping[Slot, Access]) -> None:
        targets = [write_own(Slot(kind, value), value.elements, scope) for value in op.outputs]
        names, moving = frozenset(self.element.inputs), frozenset[str]()
        grids, is_linear = self._grids(), all(self.element.forward.linear(self._grids()))
        if kind == "tangent":
            names, moving, _ = self._tangent_reads(op, scope)

        def emit(site: Site) -> None:
            values = self._values(site, op, scope, names, "value")
            moves = self._values(site, op, scope, moving, "tangent") if moving else {}
            totals = [site.assign("total", zero_element(value.elements.element)) for value in op.outputs]
            slopes = kind == "tangent"
            with self.each_node(site, op, scope, slopes=slopes) as stencil:
                for node in stencil.nodes:
                    node()
                    here = {**values, **self._at_node(site, op, scope, names, "value", stencil.node)}
                    here[self.offset] = stencil.offset
                    if kind == "value" and is_linear:
                        for name in grids:
                            here[name] = site.assign("weighted", f"{stencil.weight} * {here[name]}")
                        terms = self._call_at(site, self.element.forward, scope, here)
                    elif kind == "value":
                        found = self._call_at(site, self.element.forward, scope, here)
                        terms = [f"{stencil.weight} * {each}" for each in found]
                    else:
                        there = {**moves, **self._at_node(site, op, scope, moving, "tangent", stencil.node)}
                        terms = self._tangent_at(site, op, scope, stencil, here, there)
                    for total, term in zip(totals, terms, strict=True):
                        site.line(f"{total} += {term}")
            for target, total in zip(targets, totals, strict=True):
                target.write(site, total)

        self._append(op, scope, emit, dict(reads), targets)

    def adjoint(self, op: Op, scope: Scope) -> None:
        given = [value for value in op.outputs if scope.has_adjoint(value)]
        wanted = self._wanted(op, scope)
        own = [name for name in wanted if self.sources[name].kind != "nodes"]
        nodes = [name for name in wanted if self.sources[name].kind == "nodes"]
        reads: dict[Slot, Access] = {Slot("adjoint", value): "own" for value in given}
        if nodes:
            self._scatter_adjoints(op, scope, nodes, reads)
        if own:
            self._sum_adjoints(op, scope, own, reads)

    def _grids(self) -> list[str]:
        """Names of the parameters that take arrays of the nodes."""
        return [name for name, source in self.sources.items() if source.kind == "nodes"]

    def _load_adjoints(self, site: Site, op: Op, scope: Scope) -> list[str]:
        found = []
        for value in op.outputs:
            zero = zero_element(value.elements.element)
            found.append(site.load(Slot("adjoint", value), value.elements) if scope.has_adjoint(value) else zero)
        return found

    def _sum_adjoints(self, op: Op, scope: Scope, wanted: Sequence[str], reads: Mapping[Slot, Access]) -> None:
        """Append the loop over particles that sums up the adjoints of their own arrays.

        Results of the adjoint that do not depend on the offset, and are linear in the values of nodes or do not depend
        on these either, follow from the weighted sum of these values. The weights add up to 1.
        """
        rule = self.adjoint_rule()
        targets = {name: self._own_target(op, name, scope) for name in wanted}
        used = rule.reads(tuple([name in wanted for name in self.varying])) & op.inputs.keys()
        by_weight = self.offset in wanted
        names = frozenset(self.element.inputs) if by_weight else used
        grids = self._grids()
        linear = dict(zip(self.varying, rule.linear(grids), strict=True))
        depends = dict(zip(self.varying, rule.results, strict=True))
        once = [n for n in wanted if self.offset not in depends[n] and (linear[n] or not depends[n] & {*grids})]
        is_linear = all(self.element.forward.linear(grids)) and all([name in self.varying for name in grids])

        def emit(site: Site) -> None:
            values = self._values(site, op, scope, names, "value")
            adjoints = self._load_adjoints(site, op, scope)
            totals = {name: site.assign("total", zero_element(op.views[name].element)) for name in wanted}
            sums = {name: site.assign("total", zero_element(op.views[name].element)) for name in grids}
            with self.each_node(site, op, scope, slopes=by_weight) as stencil:
                for node in stencil.nodes:
                    node()
                    here = {**values, **self._at_node(site, op, scope, names, "value", stencil.node)}
                    here[self.offset] = stencil.offset
                    for name in grids:
                        site.line(f"{sums[name]} += {stencil.weight} * {here[name]}")
                    found = self._call_at(site, rule, scope, here, adjoints)
                    self._add_results(site, [f"{stencil.weight} * {each}" for each in found], totals, once)
                    if by_weight and is_linear:
                        results = dict(zip(self.varying, found, strict=True))
                        terms = [dot_product(op.views[name], here[name], results[name]) for name in grids]
                        site.line(f"{totals[self.offset]} += ({' + '.join(terms)}) * {stencil.slope}")
                    elif by_weight:
                        fields = self._call_at(site, self.element.forward, scope, here)
                        pairs = zip(op.outputs, adjoints, fields, strict=True)
                        terms = [dot_product(v.elements, a, f) for v, a, f in pairs if scope.has_adjoint(v)]
                        site.line(f"{totals[self.offset]} += ({' + '.join(terms)}) * {stencil.slope}")
            if once:
                here = {**values, **sums, self.offset: self.zero(op, self.offset)}
                others = [name for name in wanted if name not in once]
                self._add_results(site, self._call_at(site, rule, scope, here, adjoints), totals, others)
            for name, target in targets.items():
                target.write(site, totals[name])

        self._append(op, scope, emit, {**self._reads(op, scope, names), **reads}, list(targets.values()))

    def _scatter_adjoints(
        self,
        op: Op,
        scope: Scope,
        nodes: Sequence[str],
        reads: Mapping[Slot, Access],
    ) -> None:
        """Append the loop over particles that adds to the adjoints of arrays of the nodes."""
        rule = self.adjoint_rule()
        names = rule.reads(tuple([name in nodes for name in self.varying])) & frozenset(self.element.inputs)
        values: dict[str, str] = {}
        adjoints: list[str] = []

        def prepare(site: Site) -> None:
            values.update(self._values(site, op, scope, names, "value"))
            adjoints[:] = self._load_adjoints(site, op, scope)

        def terms(site: Site, stencil: Stencil) -> list[str]:
            here = {**values, **self._at_node(site, op, scope, names, "value", stencil.node)}
            here[self.offset] = stencil.offset
            found = dict(zip(self.varying, self._call_at(site, rule, scope, here, adjoints), strict=True))
            return [f"{stencil.weight} * {found[name]}" for name in nodes]

        targets = {adjoint_slot(op.array(name)): op.views[name] for name in nodes}
        scatter(self, op, scope, targets, terms, prepare, {**self._reads(op, scope, names), **reads})
