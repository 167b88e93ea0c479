"""Sub-steps over the pairs of particles within a cut-off: atoms, grains, particles of a fluid.

As in `pairs`, the element function f of a pair (i, j) acts on i and oppositely on j, and i alone adds up what it gets,

    F_i = sum over neighbours j of f(x_i - x_j, q_i, q_j, k)        z_ij = adj_F_i - adj_F_j
    e_i = sum over neighbours j of f(...), if f is even             z_ij = adj_e_i + adj_e_j

with z_ij the adjoint of f of the pair. Lists hold each pair twice, so that no loop adds to another particle.

Which pairs there are is data: gradients are those at fixed pairs. They are exact if f vanishes at the cut-off with its
first derivatives (a switch that is C2, say): a pair that comes or goes then contributes nothing to value or gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.numerics.element import Rule
from simphys.simulator import Shape

from .action import Access, Kind, Slot
from .contribution import Contribution
from .expressions import element_name, zero_element
from .function import declare
from .neighbour_list import NeighbourList, find_list, read_region
from .pairs import Pairs, Term
from .pattern import name_ends, name_sources
from .program import ElementView, Op, Value
from .scope import Scope
from .site import Site

DIFFERENCE = "difference to the neighbour"
"""Local variable that the loop over neighbours shares with its terms."""
RAISE = "Raise `neighbours` of the model, unless particles overlap."
NEIGHBOUR_US = 0.002
"""Serial cost [us] of one place of a list in the forward pass, approximately."""


def neighbours(
    func: Any,
    *,
    distance: Mapping[str, str],
    onto: str,
    over: str,
    between: Mapping[str, str] | None = None,
    both: Mapping[tuple[str, str], str] | None = None,
    marks: Mapping[tuple[str, str], str] | None = None,
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
    even: bool = False,
    result: Shape | str | None = None,
) -> Any:
    """Declare a sub-step over all pairs (i, j) of particles that are less than `model.cutoff` apart.

    The model has `box`, the period of each axis, inf for an open one; `cutoff`; `skin`, by which lists reach further;
    and `neighbours`, the largest number of these of a particle. A particle with more gets NaN, which is an error.

    - `distance`: the parameter of the element function that takes x_i - x_j, the shortest of all images, and the name
      of the array of positions [n, dim].
    - `between`, `both`, `shared`, `constant`, `onto`, `over`: as in `pairs`.
    - `marks`: as `both`, for arrays that no gradient flows to, such as which particles are walls.
    - `even`: False if exchanging i and j changes the sign of f, as for a force; True if f stays, as for an energy.
    - `result`: shape of the result of f: a parameter that has it, or a shape; that of a difference by default.

    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    differences = {**distance, **(between or {})}
    (first, second), (mark, other) = name_ends(both), name_ends(marks)
    given: Any = {"one": first, "other": second, "mark": mark, "other mark": other}
    sources = name_sources(between=differences, shared=shared, constant=constant, **given)
    (position,) = distance
    made = Neighbours(func, sources, results={onto: position if result is None else result}, over=over)
    made.position, made.even = position, even
    return declare(made)


class Neighbours(Pairs):
    """The pattern of `neighbours`."""

    position = ""
    """Parameter that takes the difference of positions."""
    even = False
    exact = True  # lists made at another time have other pairs beyond the cut-off

    def cost_us(self, op: Op) -> float:
        return NEIGHBOUR_US * self.count_rounds(op)

    def count_rounds(self, op: Op) -> int:
        return op.domain.size * op.variant.capacity

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        op = super().make_op(model, inputs)
        value = op.inputs[self.position]
        if not isinstance(value, Value) or len(value.shape) != 2:
            found = f"shape {value.shape}" if isinstance(value, Value) else "a number"
            raise InputError(self.source, "positions are vectors [n, dim]", found, "Give each particle a vector.")
        op.variant = read_region(model, value.shape[1], op.domain.size, self.source)
        return op

    def check_results(self, op: Op, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        finite = all([np.isfinite(given).all() for given in inputs])
        if finite and not all([np.isfinite(result).all() for result in results]):
            constraint = f"a particle has at most {op.variant.capacity} neighbours"
            raise InputError(self.source, constraint, "one has more", RAISE)

    checks_adjoints = True

    def check_adjoints(self, op: Op, adjoints: Sequence[Any]) -> None:
        if any([np.isnan(values).any() for values in adjoints]):
            most = f"a particle has at most {op.variant.capacity} neighbours"
            constraint = f"on the way back, where lists are made anew, {most}"
            raise InputError(f"{self.source}, list of neighbours", constraint, "one has more within the skin", RAISE)

    def arrange(self, op: Op) -> None:
        """Leave vectors whole, as neighbours lie anywhere."""

    def _list(self, op: Op, scope: Scope) -> NeighbourList:
        return find_list(scope, op.variant, op.array(self.position), op.views[self.position])

    def _append(
        self,
        op: Op,
        scope: Scope,
        emit: Callable[[Site], None],
        reads: dict[Slot, Access],
        targets: Sequence[Contribution],
    ) -> None:
        found = self._list(op, scope)
        if targets:
            found.update(scope)
        reads |= dict.fromkeys((found.position, found.entries, found.counts), "other")
        super()._append(op, scope, emit, reads, targets)

    # --- a sum over the neighbours

    def _sum(
        self, site: Site, op: Op, scope: Scope, rule: Rule, terms: Sequence[Term], results: Mapping[int, Shape]
    ) -> list[str]:
        found, region = self._list(op, scope), op.variant
        totals = [site.assign("total", zero_element(shape)) for shape in results.values()]
        own = site.load(found.position, op.views[self.position])
        count = found.load_count(site)
        first = site.assign("first", f"{site.index} * {region.capacity}")
        with site.block(f"for place in range(ti.min({count}, {region.capacity})):"):
            j = site.assign("j", f"int({found.load(site, found.entries, f'{first} + place')})")
            d = found.difference(site, own, found.load(site, found.position, j))
            site.named[DIFFERENCE] = d
            with site.block(f"if {d}.dot({d}) < {region.cutoff**2!r}:"):
                called = self.call(site, rule, [term(j) for term in terms], scope)
                for total, number in zip(totals, results, strict=True):
                    site.line(f"{total} += {called[number]}")
        with site.block(f"if {count} > {region.capacity}:"):
            for total, shape in zip(totals, results.values(), strict=True):
                site.line(f"{total} = {element_name(shape)}(ti.math.nan)")
        return totals

    def _term(self, site: Site, op: Op, scope: Scope, name: str, kind: Kind, *, used: bool) -> Term:
        if name == self.position and kind == "value" and used:
            return lambda j: site.named[DIFFERENCE]
        return super()._term(site, op, scope, name, kind, used=used)

    def _pair_adjoint(self, site: Site, slot: Slot, view: ElementView) -> Term:
        if not self.even:
            return super()._pair_adjoint(site, slot, view)
        own = site.load(slot, view)
        return lambda j: site.assign("both", f"{own} + {site.load_at(slot, view, j)}")
