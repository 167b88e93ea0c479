"""Sub-steps over all pairs of one index set: bodies that attract or repel each other.

The element function f of a pair (i, j) acts on i, and with the opposite sign on j: exchanging the two changes its sign,
and with it that of the differences it takes. So the result of i, and the adjoints of its arrays, are sums over all j,

    F_i = sum_j f(x_i - x_j, q_i, q_j, k)          z_ij = adj_F_i - adj_F_j is the adjoint of f of the pair (i, j)
    adj_x_i = sum_j adj_d_ij      adj_q_i = sum_j adj_q_i of the pair (i, j)      adj_k = 1/2 sum_i sum_j adj_k_ij

and each is written by i alone. The pair of an element with itself contributes nothing, as its f is opposite to itself.
The inner loops store nothing, so that the compiler can vectorize them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from simphys.autograd.errors import InputError
from simphys.numerics.element import Rule
from simphys.simulator import Shape

from .action import Access, Kind, Slot
from .contribution import Contribution
from .expressions import size_name, zero_element
from .function import declare
from .loops import LoopPattern, RuleInputs
from .pattern import name_ends, name_sources
from .program import WHOLE, Domain, ElementView, Op, Value
from .scope import Scope
from .site import Site

OF_FIRST, OF_SECOND = ("one", "mark"), ("other", "other mark")
"""Sources of the parameters that take the entry of i, and of those that take the entry of j."""
PAIR_US = 0.0005
"""Serial cost [us] of one ordered pair in the forward pass, approximately."""


def pairs(
    func: Any,
    *,
    between: Mapping[str, str],
    onto: str,
    over: str,
    both: Mapping[tuple[str, str], str] | None = None,
    shared: Mapping[str, str] | None = None,
    constant: Mapping[str, str] | None = None,
) -> Any:
    """Declare a sub-step over all pairs (i, j) of an index set, each of which acts on i and oppositely on j.

    - `between`: from parameters of the element function to arrays: the entry of i less that of j.
    - `both`: from two parameters, of i and of j, to the array that they are entries of.
    - `shared`: arrays that all pairs share: a number [] or a vector [c].
    - `constant`: numbers, or arrays that all pairs share, that no gradient flows to.
    - `onto`: name of the result, an array of the index set; it has the shape of the first array of `between`.
    - `over`: the index set, such as "bodies".

    The function must change its sign if i and j are exchanged: f(-d, q_j, q_i) = -f(d, q_i, q_j).
    Returns a Function, to be applied to the model and the arrays, in the order of the function's parameters.
    """
    first, second = name_ends(both)
    sources = name_sources(between=between, shared=shared, constant=constant, one=first, other=second)
    return declare(Pairs(func, sources, results={onto: next(iter(between))}, over=over))


class Pairs(LoopPattern):
    """The pattern of `pairs`. Adjoints of what j gives come as those of what i gives, of the pair in reverse."""

    is_cheap = False
    heavy = True
    has_own_results = False
    adjoint_access: Access = "other"
    swept = ("between", *OF_FIRST, *OF_SECOND)
    """Sources that the sums over j go through."""

    def cost_us(self, op: Op) -> float:
        return PAIR_US * op.domain.size**2

    def count_rounds(self, op: Op) -> int:
        return int(op.domain.size**2)

    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        domain = self.own_domain(inputs, kinds=("between", "one"))
        views = self.make_views(inputs, domain)
        for name, view in views.items():
            if len(view.element) > 1:
                found = f"{self.sources[name].field} has matrices of shape {view.element}"
                raise InputError(self.source, "pairs have numbers and vectors", found, "Pass their rows by themselves.")
        op = Op(self, inputs, domain, views)
        op.outputs = self.make_outputs(op, domain)
        return op

    def view(self, name: str, value: Value, domain: Domain) -> ElementView:
        return super().view(name, value, domain if self._is_swept(name) else WHOLE)

    def arrange(self, op: Op) -> None:
        for name, value in op.arrays.items():
            value.by_component = value.by_component or self._is_swept(name)
        for value in op.outputs:
            value.adjoint_by_component = True

    def _is_swept(self, name: str) -> bool:
        """True for an array that the sums over j go through."""
        return self.sources[name].kind in self.swept

    # --- parts of the three passes

    def compute(self, site: Site, op: Op, scope: Scope, given: RuleInputs) -> list[str]:
        moves = dict(zip(op.inputs, self._terms(site, op, scope, given.moving or (), "tangent"), strict=True))
        terms = self._terms(site, op, scope, given.values, "value")
        if given.moving is not None:
            terms += [moves[name] for name in self.varying]
        return self._sum(site, op, scope, given.rule, terms, {n: v.element for n, v in enumerate(op.outputs)})

    def pull(self, site: Site, op: Op, scope: Scope, given: RuleInputs, targets: Mapping[str, Contribution]) -> None:
        (value,) = op.outputs
        of_pair = self._pair_adjoint(site, Slot("adjoint", value), value.elements)
        terms = [*self._terms(site, op, scope, given.values, "value"), of_pair]
        results = {self.varying.index(name): op.views[name].element for name in targets}
        totals = self._sum(site, op, scope, given.rule, terms, results)
        for (name, target), total in zip(targets.items(), totals, strict=True):
            target.write(site, total if self._is_swept(name) else f"0.5 * {total}")

    def wanted_adjoints(self, op: Op, scope: Scope) -> list[str]:
        return [name for name in super().wanted_adjoints(op, scope) if self.sources[name].kind not in OF_SECOND]

    def input_access(self, name: str, op: Op) -> Access:
        return "other"  # the sums read other elements of arrays, too

    # --- a sum over j

    def _sum(
        self, site: Site, op: Op, scope: Scope, rule: Rule, terms: Sequence[Term], results: Mapping[int, Shape]
    ) -> list[str]:
        """Write the sum over j of some results of a rule, by number, with the shape of each. Returns the totals."""
        totals = [site.assign("total", zero_element(shape)) for shape in results.values()]
        j = site.fresh("j")
        for k in site.each(j, size_name(op.domain)):
            found = self.call(site, rule, [term(k) for term in terms], scope)
            for total, number in zip(totals, results, strict=True):
                site.line(f"{total} += {found[number]}")
        return totals

    def _terms(self, site: Site, op: Op, scope: Scope, names: Collection[str], kind: Kind) -> list[Term]:
        """Prepare the arguments of the element function, before the loop over j; those that are not named are 0."""
        return [self._term(site, op, scope, name, kind, used=name in names) for name in self.element.inputs]

    def _term(self, site: Site, op: Op, scope: Scope, name: str, kind: Kind, *, used: bool) -> Term:
        value, source = op.inputs[name], self.sources[name].kind
        fixed = not isinstance(value, Value) or scope.is_zero(value, kind) or source in ("shared", "constant")
        if not used or fixed:
            found = self.load_input(site, op, scope, name, kind) if used else self.zero(op, name)
            return lambda j: found
        assert isinstance(value, Value), "others are fixed"
        slot, view = Slot(kind, value), op.views[name]
        if source == "between":
            return self._difference(site, slot, view)
        if source in OF_SECOND:
            return lambda j: site.assign(slot.value.name, site.load_at(slot, view, j))
        own = site.load(slot, view)
        return lambda j: own

    def _difference(self, site: Site, slot: Slot, view: ElementView) -> Term:
        """Prepare the entry of i less that of j."""
        own = site.load(slot, view)
        return lambda j: site.assign("difference", f"{own} - {site.load_at(slot, view, j)}")

    def _pair_adjoint(self, site: Site, slot: Slot, view: ElementView) -> Term:
        """Prepare the adjoint of the result of a pair."""
        return self._difference(site, slot, view)


Term = Callable[[str], str]
"""Writes an argument of the element function for the index j, and returns its expression."""
