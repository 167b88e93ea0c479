"""Loops of patterns that call an element function once for each element of an index set."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from simphys.autograd.errors import InputError
from simphys.numerics.element import Rule

from .action import Access, Slot
from .contribution import Contribution, Ends, add_own_adjoint, append_loop, write_ends, write_own
from .expressions import zero_element
from .pattern import Pattern, Source
from .program import WHOLE, ElementView, Op, Value
from .scope import Scope, adjoint_slot
from .site import Site

Load = Callable[[str, Literal["value", "tangent"]], str]
"""Loads an input of the sub-step by its name, or its tangent."""


class RuleInputs(NamedTuple):
    """Inputs and results of a sub-step that a rule of the element function reads."""

    rule: Rule
    values: frozenset[str]
    """Names of the inputs whose values it reads; it takes zeros for the others."""
    results: tuple[str, ...] = ()
    """Names by which it takes the results, all or none."""
    moving: frozenset[str] | None = None
    """Names of the inputs whose tangents it reads; None for a rule that takes no tangents."""


class LoopPattern(Pattern):
    """A pattern whose forward, adjoint and tangent are each one loop, and loops that finish their contributions."""

    has_own_results = True
    """True if an element of the loop has results of its own, which rules may take."""

    def __init__(self, func: Any, sources: Mapping[str, Source], **options: Any) -> None:
        super().__init__(func, sources, **options)
        if self.reads_results and not self.has_own_results:
            found, remedy = f"{self.element.name} has one that does", "Compute what it needs from the inputs."
            raise InputError(self.source, "no rule takes the results: an element of the loop has none", found, remedy)

    width = 1
    """Elements that are computed together."""

    def choose_width(self, op: Op) -> int:
        """Choose the number of elements that are computed together."""
        return self.width

    heavy = False
    """True if an element takes so long that a few are worth a thread."""

    exact = False
    """True if its sums keep the order of their terms."""

    # --- what a pattern may change

    def write_result(self, op: Op, scope: Scope, value: Value, kind: Literal["value", "tangent"]) -> Contribution:
        """Prepare where a result, or its tangent, goes."""
        return write_own(Slot(kind, value), value.elements, scope)

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        """Prepare where the adjoint of an input goes."""
        source = self.sources[name]
        if source.kind != "gathered":
            return add_own_adjoint(op, name, scope)
        ends = Ends("+", source.by, self.has_gaps(op, source.by))
        return write_ends(op, scope, adjoint_slot(op.array(name)), op.views[name], ends)

    def load_adjoint(self, site: Site, op: Op, scope: Scope, value: Value) -> str:
        """Load the adjoint of a result."""
        return site.load(Slot("adjoint", value), value.elements)

    adjoint_access: Access = "own"
    """Elements of the results' adjoints that an iteration reads."""

    def compute(self, site: Site, op: Op, scope: Scope, given: RuleInputs) -> list[str]:
        """Compute the results of the loop's element, or their tangents."""
        return self.call(site, given.rule, self.load_arguments(site, op, scope, given), scope)

    def pull(self, site: Site, op: Op, scope: Scope, given: RuleInputs, targets: Mapping[str, Contribution]) -> None:
        """Add to the adjoints of the inputs what the loop's element gives."""
        arguments = [*self.load_arguments(site, op, scope, given), *self.load_adjoints(site, op, scope)]
        found = dict(zip(self.varying, self.call(site, given.rule, arguments, scope), strict=True))
        for name, target in targets.items():
            target.write(site, found[name])

    def make_targets(self, op: Op, scope: Scope, wanted: Collection[str]) -> dict[str, Contribution]:
        """Prepare where the adjoints of inputs go."""
        return {name: self.add_adjoint(op, scope, name) for name in wanted}

    # --- the three passes

    def forward(self, op: Op, scope: Scope) -> None:
        self.append_results(op, scope, "value", RuleInputs(self.element.forward, frozenset(self.element.inputs)))

    def tangent(self, op: Op, scope: Scope) -> None:
        self.append_results(op, scope, "tangent", self.tangent_inputs())

    def append_results(self, op: Op, scope: Scope, kind: Literal["value", "tangent"], given: RuleInputs) -> None:
        """Append the loop that computes the results, or their tangents."""
        targets = [self.write_result(op, scope, value, kind) for value in op.outputs]

        def emit(site: Site) -> None:
            for target, result in zip(targets, self.compute(site, op, scope, given), strict=True):
                target.write(site, result)

        self._append(op, scope, emit, self.rule_reads(op, scope, given), targets)

    def adjoint(self, op: Op, scope: Scope) -> None:
        self.append_adjoints(op, scope, self.wanted_adjoints(op, scope))

    def append_adjoints(self, op: Op, scope: Scope, wanted: Sequence[str]) -> None:
        """Append the loop that adds to the adjoints of some inputs."""
        given, targets = self.adjoint_inputs(wanted), self.make_targets(op, scope, wanted)
        reads = self.rule_reads(op, scope, given) | self.adjoint_reads(op, scope)

        def emit(site: Site) -> None:
            self.pull(site, op, scope, given, targets)

        self._append(op, scope, emit, reads, list(dict.fromkeys(targets.values())))

    def _append(
        self,
        op: Op,
        scope: Scope,
        emit: Callable[[Site], None],
        reads: dict[Slot, Access],
        targets: Sequence[Contribution],
    ) -> None:
        """Append the loop, and what finishes its contributions."""
        options = {"heavy": self.heavy, "width": self.choose_width(op), "exact": self.exact}
        append_loop(scope, op.domain, emit, reads, targets, **options)

    # --- what a rule reads

    def tangent_inputs(self) -> RuleInputs:
        """Find what the tangent reads."""
        rule = self.element.require_tangent()
        names, results = rule.reads((True,) * len(rule.results)), self.element.results_read(rule)
        values = names & frozenset(self.element.inputs)
        return RuleInputs(rule, values, results, frozenset([name[1:] for name in names - values - {*results}]))

    def adjoint_inputs(self, wanted: Collection[str]) -> RuleInputs:
        """Find what the adjoint reads for the adjoints of some inputs."""
        rule = self.adjoint_rule()
        names = rule.reads(tuple([name in wanted for name in self.varying]))
        return RuleInputs(rule, names & frozenset(self.element.inputs), self.element.results_read(rule))

    def rule_reads(self, op: Op, scope: Scope, given: RuleInputs) -> dict[Slot, Access]:
        """Slots that a rule reads."""
        found = self.input_reads(op, scope, given.values)
        found |= self.input_reads(op, scope, given.moving or frozenset(), "tangent")
        if given.results:
            found |= {Slot("value", value): "own" for value in op.outputs}
        return found

    def adjoint_reads(self, op: Op, scope: Scope) -> dict[Slot, Access]:
        """Slots of the adjoints of results."""
        return {Slot("adjoint", value): self.adjoint_access for value in op.outputs if scope.has_adjoint(value)}

    def load_arguments(
        self, site: Site, op: Op, scope: Scope, given: RuleInputs, load: Load | None = None
    ) -> list[str]:
        """Load what a rule takes but for adjoints, each input by `load`; those that it does not read are 0."""
        load = load or partial(self.load_input, site, op, scope)
        found = [load(name, "value") if name in given.values else self.zero(op, name) for name in op.inputs]
        found += [site.load(Slot("value", value), value.elements) for value in op.outputs if given.results]
        if given.moving is not None:
            moves = [(name, name in given.moving) for name in self.varying]
            found += [load(name, "tangent") if moved else self.zero(op, name) for name, moved in moves]
        return found

    def load_adjoints(self, site: Site, op: Op, scope: Scope) -> list[str]:
        """Load the adjoints of the results; 0 for one that has none."""
        zeros = {value: zero_element(value.elements.element) for value in op.outputs}
        return [self.load_adjoint(site, op, scope, v) if scope.has_adjoint(v) else zeros[v] for v in op.outputs]

    # --- loads of inputs

    def adjoint_rule(self) -> Rule:
        """Return the adjoint of the element function."""
        assert self.element.adjoint is not None, "checked when declared"
        return self.element.adjoint

    def wanted_adjoints(self, op: Op, scope: Scope) -> list[str]:
        """List the inputs whose adjoints are wanted, but for those that are zero."""
        rule = self.adjoint_rule()
        zeros = {name for name, value in op.arrays.items() if scope.is_zero(value)}
        names = rule.parameters[-len(op.outputs) :]
        zeros |= {name for name, value in zip(names, op.outputs, strict=True) if not scope.has_adjoint(value)}
        vanishing = rule.vanishing(zeros)
        pairs = zip(self.varying, vanishing, strict=True)
        return [name for name, is_zero in pairs if scope.wants(op.inputs[name]) and not is_zero]

    def has_gaps(self, op: Op, by: str) -> bool:
        """Return True if some elements of the loop read nothing by an index array."""
        return True

    def load_input(self, site: Site, op: Op, scope: Scope, name: str, kind: Any) -> str:
        """Load an input at the loop's index."""
        value = op.inputs[name]
        if not isinstance(value, Value):
            return scope.number(op, name)
        view = op.views[name]
        if scope.is_zero(value, kind):
            return zero_element(view.element)
        slot, source = Slot(kind, value), self.sources[name]
        if source.kind == "gathered":
            return self.load_gathered(site, op, scope, source.by, slot, view)
        if view.domain == WHOLE and op.domain != WHOLE:
            return site.assign(value.name, site.load_at(slot, view, "0"))
        return site.load(slot, view)

    def load_gathered(self, site: Site, op: Op, scope: Scope, by: str, slot: Slot, view: ElementView) -> str:
        """Load the element that an index array names; 0 where it names none."""
        if not view.domain.size:  # no element that `picked` could be
            return zero_element(view.element)
        index = site.once(f"{scope.relation(op, by)}[{site.index}]")
        if not self.has_gaps(op, by):
            return site.assign(slot.value.name, site.load_at(slot, view, index))
        picked = site.assign(slot.value.name, site.load_at(slot, view, f"ti.max({index}, 0)"))
        return site.assign(slot.value.name, f"ti.select({index} >= 0, {picked}, {zero_element(view.element)})")

    def zero(self, op: Op, name: str) -> str:
        return zero_element(op.views[name].element if name in op.views else ())

    def input_access(self, name: str, op: Op) -> Access:
        """Tell where an iteration reads an input: at the loop's own index, or elsewhere."""
        related = self.sources[name].kind in ("gathered", "between")
        return "other" if related or op.views[name].domain != op.domain else "own"

    def input_reads(self, op: Op, scope: Scope, names: frozenset[str], kind: Any = "value") -> dict[Slot, Access]:
        """Slots of the named inputs."""
        found: dict[Slot, Access] = {}
        for name, value in op.arrays.items():
            if name not in names or scope.is_zero(value, kind):
                continue
            slot, access = Slot(kind, value), self.input_access(name, op)
            found[slot] = "other" if "other" in (access, found.get(slot)) else "own"
        return found

    def call(self, site: Site, rule: Any, arguments: Sequence[str], scope: Scope) -> list[str]:
        """Call a rule, and name its results."""
        names = [site.fresh("y") for _ in rule.results]
        site.line(f"{', '.join(names)} = {scope.function(rule)}({', '.join(arguments)})")
        return names
