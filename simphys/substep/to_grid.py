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

from collections.abc import Mapping
from typing import Any

from .action import Access, Site, Slot, zero_element
from .function import declare
from .pattern import name_sources
from .program import Domain, Op, Value
from .scatter import scatter
from .scope import Scope
from .splines import Result, SplinePattern, dot_product
from .stencil_text import Stencil


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

    def target(self, grid: Domain) -> Domain | None:
        return grid

    def forward(self, op: Op, scope: Scope) -> None:
        names, values = frozenset(self.element.inputs), {}

        def prepare(site: Site) -> None:
            values.update(self._values(site, op, scope, names, "value"))

        def terms(site: Site, stencil: Stencil) -> list[str]:
            here = {**values, self.offset: stencil.offset}
            found = self._call_at(site, self.element.forward, scope, here)
            return [f"{stencil.weight} * {each}" for each in found]

        targets = {Slot("value", value): value.elements for value in op.outputs}
        scatter(self, op, scope, targets, terms, prepare, self._reads(op, scope, names))

    def tangent(self, op: Op, scope: Scope) -> None:
        names, moving, reads = self._tangent_reads(op, scope)
        values: dict[str, str] = {}
        moves: dict[str, str] = {}

        def prepare(site: Site) -> None:
            values.update(self._values(site, op, scope, names, "value"))
            moves.update(self._values(site, op, scope, moving, "tangent"))

        def terms(site: Site, stencil: Stencil) -> list[str]:
            here = {**values, self.offset: stencil.offset}
            return self._tangent_at(site, op, scope, stencil, here, moves)

        targets = {Slot("tangent", value): value.elements for value in op.outputs}
        scatter(self, op, scope, targets, terms, prepare, reads, slopes=True)

    def _load_adjoint(self, site: Site, value: Value, node: str) -> str:
        return site.assign("adj", site.load_at(Slot("adjoint", value), value.elements, node))

    def adjoint(self, op: Op, scope: Scope) -> None:
        """Sum over the nodes: results of the adjoint that do not depend on the offset follow from sums of adjoints."""
        rule = self.adjoint_rule()
        given = [value for value in op.outputs if scope.has_adjoint(value)]
        wanted = self._wanted(op, scope)
        targets = {name: self._own_target(op, name, scope) for name in wanted}
        used = rule.reads(tuple([name in wanted for name in self.varying])) & op.inputs.keys()
        by_weight = self.offset in wanted
        names = frozenset(self.element.inputs) if by_weight else used
        depends = dict(zip(self.varying, rule.results, strict=True))
        once = [name for name in wanted if self.offset not in depends[name]]

        def emit(site: Site) -> None:
            values = self._values(site, op, scope, names, "value")
            zeros = {value: zero_element(value.elements.element) for value in op.outputs}
            totals = {name: site.assign("total", zero_element(op.views[name].element)) for name in wanted}
            sums = {value: site.assign("total", zeros[value]) for value in given}
            with self.each_node(site, op, scope, slopes=by_weight) as stencil:
                for node in stencil.nodes:
                    node()
                    here = {**values, self.offset: stencil.offset}
                    adj = {v: self._load_adjoint(site, v, stencil.node) for v in given}
                    weighted = {v: site.assign("adj", f"{stencil.weight} * {name}") for v, name in adj.items()}
                    for value, total in sums.items():
                        site.line(f"{total} += {weighted[value]}")
                    if len(once) < len(wanted):
                        more = [weighted.get(value, zeros[value]) for value in op.outputs]
                        self._add_results(site, self._call_at(site, rule, scope, here, more), totals, once)
                    if by_weight:
                        fields = dict(
                            zip(op.outputs, self._call_at(site, self.element.forward, scope, here), strict=True)
                        )
                        terms = " + ".join([dot_product(v.elements, adj[v], fields[v]) for v in given])
                        site.line(f"{totals[self.offset]} += ({terms}) * {stencil.slope}")
            if once:
                here = {**values, self.offset: self.zero(op, self.offset)}
                more = [sums.get(value, zeros[value]) for value in op.outputs]
                others = [name for name in wanted if name not in once]
                self._add_results(site, self._call_at(site, rule, scope, here, more), totals, others)
            for name, target in targets.items():
                target.write(site, totals[name])

        reads: dict[Slot, Access] = {Slot("adjoint", value): "other" for value in given}
        self._append(op, scope, emit, {**self._reads(op, scope, names), **reads}, list(targets.values()))
