"""Sub-steps in which particles sum over the nodes of a grid around them, see to_grid.py for the equations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from simphys.numerics.element import Rule

from .contribution import Contribution
from .expressions import zero_element
from .function import declare
from .loops import RuleInputs
from .pattern import name_sources
from .program import Op
from .scatter import scatter
from .scope import Scope, adjoint_slot
from .site import Site
from .splines import AnyStencil, Result, SplinePattern, dot_product


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

    def compute(self, site: Site, op: Op, scope: Scope, given: RuleInputs) -> list[str]:
        write = self.begin_terms(site, op, scope, given)
        totals = [site.assign("total", zero_element(value.elements.element)) for value in op.outputs]
        with self.each_node(site, op, scope, slopes=given.moving is not None) as stencil:
            for node in stencil.nodes:
                node()
                for total, term in zip(totals, write(stencil), strict=True):
                    site.line(f"{total} += {term}")
        return totals

    def append_adjoints(self, op: Op, scope: Scope, wanted: Sequence[str]) -> None:
        nodes = [name for name in wanted if self.sources[name].kind == "nodes"]
        if nodes:
            self._scatter_adjoints(op, scope, nodes)
        super().append_adjoints(op, scope, [name for name in wanted if name not in nodes])

    def pull(self, site: Site, op: Op, scope: Scope, given: RuleInputs, targets: Mapping[str, Contribution]) -> None:
        """Sum up the adjoints of a particle's own arrays; some follow from the weighted sum of the nodes' values."""
        rule, grids, forward = given.rule, self.grids, self.element.forward
        once = self._find_linear(rule, targets)
        is_linear = all(forward.linear(grids)) and all([name in self.varying for name in grids])
        values, adjoints = self.load_own(site, op, scope, given.values, "value"), self.load_adjoints(site, op, scope)
        totals = {name: site.assign("total", self.zero(op, name)) for name in targets}
        sums = {name: site.assign("total", self.zero(op, name)) for name in grids}
        with self.each_node(site, op, scope, slopes=self.offset in targets) as stencil:
            for node in stencil.nodes:
                node()
                here = {**values, **self.load_node(site, op, scope, given.values, "value", stencil.node)}
                here[self.offset] = stencil.offset
                for name in grids:
                    site.line(f"{sums[name]} += {stencil.weight} * {here[name]}")
                found = self.call_at(site, rule, scope, here, adjoints)
                self.add_results(site, [f"{stencil.weight} * {each}" for each in found], totals, once)
                if self.offset in targets:
                    if is_linear:
                        results = dict(zip(self.varying, found, strict=True))
                        terms = [dot_product(op.views[name], here[name], results[name]) for name in grids]
                    else:
                        pairs = zip(op.outputs, adjoints, self.call_at(site, forward, scope, here), strict=True)
                        terms = [dot_product(v.elements, a, f) for v, a, f in pairs if scope.has_adjoint(v)]
                    site.line(f"{totals[self.offset]} += ({' + '.join(terms)}) * {stencil.slope}")
        if once:
            here = {**values, **sums, self.offset: self.zero(op, self.offset)}
            later = [name for name in targets if name not in once]
            self.add_results(site, self.call_at(site, rule, scope, here, adjoints), totals, later)
        for name, target in targets.items():
            target.write(site, totals[name])

    def _find_linear(self, rule: Rule, names: Iterable[str]) -> list[str]:
        """Find the inputs whose adjoint needs one call for all nodes, as their weights add up to 1.

        It does not depend on the offset, and is linear in the values of nodes or does not depend on these either.
        """
        linear = dict(zip(self.varying, rule.linear(self.grids), strict=True))
        depends = dict(zip(self.varying, rule.results, strict=True))
        own = [name for name in names if self.offset not in depends[name]]
        return [name for name in own if linear[name] or not depends[name] & {*self.grids}]

    def _scatter_adjoints(self, op: Op, scope: Scope, nodes: Sequence[str]) -> None:
        """Append the loop over particles that adds to the adjoints of arrays of the nodes."""
        given = self.adjoint_inputs(nodes)

        def begin(site: Site) -> Callable[[AnyStencil], list[str]]:
            values = self.load_own(site, op, scope, given.values, "value")
            adjoints = self.load_adjoints(site, op, scope)

            def write(stencil: AnyStencil) -> list[str]:
                here = {**values, **self.load_node(site, op, scope, given.values, "value", stencil.node)}
                here[self.offset] = stencil.offset
                found = dict(zip(self.varying, self.call_at(site, given.rule, scope, here, adjoints), strict=True))
                return [f"{stencil.weight} * {found[name]}" for name in nodes]

            return write

        targets = {adjoint_slot(op.array(name)): op.views[name] for name in nodes}
        scatter(self, op, scope, targets, begin, self.rule_reads(op, scope, given) | self.adjoint_reads(op, scope))
