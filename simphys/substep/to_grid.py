"""Sub-steps between particles and the nodes of a regular grid, by quadratic B-splines (numerics/bspline.py).

A particle at x acts on the nodes i of its stencil, three along each axis, with weights w_i(x) and offsets
r_i = x_i - x. The element function f gives the field around a particle with the values p, or the share of a node with
the values u_i in its sum:

    to_grid     g_i = sum over particles of w_i f(r_i, p)            a scatter
    from_grid   g   = sum over nodes i of w_i f(r_i, u_i, p)         a gather

The adjoint of one has the form of the other: with the adjoint rule of f applied to w_i adj_g_i, or w_i adj_g,

    adj_p = sum_i adj_p of f     adj_u_i += adj_u of f     adj_x = sum_i (grad w_i (adj_g . f) - adj_r of f)

Weights and their first derivatives are continuous. The 3 nodes along an axis are those of a grid with `model.cells`
nodes, `model.spacing` apart, from the origin on; a particle outside of it counts as one at its border.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from .action import Access, Slot
from .contribution import Contribution
from .expressions import zero_element
from .function import declare
from .loops import RuleInputs
from .pattern import name_sources
from .program import Domain, Op, Value
from .scatter import scatter
from .scope import Scope
from .site import Site
from .splines import AnyStencil, Result, SplinePattern, dot_product


def to_grid(
    func: Any,
    *,
    offset: Mapping[str, str],
    own: Mapping[str, str],
    results: Mapping[str, Result],
    over: str = "particles",
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
) -> Any:
    """Declare a sub-step in which each particle adds w f(r, ...) to the nodes around it.

    - `offset`: the parameter that takes r, a node's position less the particle's, and the array of positions [n, dim].
    - `own`, `shared`, `constant`: arrays of the particles, as in `per_element`.
    - `results`: names of the results, arrays [*cells, ...] of the nodes, each followed by the parameter whose shape an
      element of it has, by that shape, or by a function that computes it from the number of dimensions.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    sources = name_sources(offset=offset, own=own, shared=shared, constant=constant)
    return declare(ToGrid(func, sources, results=results, over=over))


class ToGrid(SplinePattern):
    """The pattern of `to_grid`."""

    adjoint_access: Access = "other"

    def target(self, grid: Domain) -> Domain | None:
        return grid

    def append_results(self, op: Op, scope: Scope, kind: Literal["value", "tangent"], given: RuleInputs) -> None:
        def begin(site: Site) -> Callable[[AnyStencil], list[str]]:
            return self.begin_terms(site, op, scope, given)

        targets = {Slot(kind, value): value.elements for value in op.outputs}
        scatter(self, op, scope, targets, begin, self.rule_reads(op, scope, given), slopes=kind == "tangent")

    def pull(self, site: Site, op: Op, scope: Scope, given: RuleInputs, targets: Mapping[str, Contribution]) -> None:
        """Sum over the nodes: results of the adjoint that do not depend on the offset follow from sums of adjoints."""
        found = [value for value in op.outputs if scope.has_adjoint(value)]
        depends = dict(zip(self.varying, given.rule.results, strict=True))
        once = [name for name in targets if self.offset not in depends[name]]
        later = [name for name in targets if name not in once]
        values = self.load_own(site, op, scope, given.values, "value")
        zeros = {value: zero_element(value.elements.element) for value in op.outputs}
        totals = {name: site.assign("total", self.zero(op, name)) for name in targets}
        sums = {value: site.assign("total", zeros[value]) for value in found}
        with self.each_node(site, op, scope, slopes=self.offset in targets) as stencil:
            for node in stencil.nodes:
                node()
                here = {**values, self.offset: stencil.offset}
                adj = {v: self._load_adjoint(site, v, stencil.node) for v in found}
                weighted = {v: site.assign("adj", f"{stencil.weight} * {name}") for v, name in adj.items()}
                for value, total in sums.items():
                    site.line(f"{total} += {weighted[value]}")
                if later:
                    more = [weighted.get(value, zeros[value]) for value in op.outputs]
                    self.add_results(site, self.call_at(site, given.rule, scope, here, more), totals, once)
                if self.offset in targets:
                    fields = zip(op.outputs, self.call_at(site, self.element.forward, scope, here), strict=True)
                    terms = [dot_product(v.elements, adj[v], field) for v, field in fields if v in adj]
                    site.line(f"{totals[self.offset]} += ({' + '.join(terms)}) * {stencil.slope}")
        if once:
            here = {**values, self.offset: self.zero(op, self.offset)}
            more = [sums.get(value, zeros[value]) for value in op.outputs]
            self.add_results(site, self.call_at(site, given.rule, scope, here, more), totals, later)
        for name, target in targets.items():
            target.write(site, totals[name])

    def _load_adjoint(self, site: Site, value: Value, node: str) -> str:
        return site.assign("adj", site.load_at(Slot("adjoint", value), value.elements, node))
