"""Loops of patterns that call an element function once for each element of an index set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from .action import Access, Site, Slot, zero_element
from .contribution import Contribution, Ends, add_own_adjoint, append_loop, write_ends, write_own
from .pattern import Pattern
from .program import Op, Value
from .scope import Scope, adjoint_slot


class LoopPattern(Pattern):
    """A pattern whose forward, adjoint and tangent are each one loop, and loops that finish their contributions."""

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
        assert value.view is not None
        return write_own(Slot(kind, value), value.view, scope)

    def add_adjoint(self, op: Op, scope: Scope, name: str) -> Contribution:
        """Prepare where the adjoint of an input goes."""
        source = self.sources[name]
        if source.kind != "gathered":
            return add_own_adjoint(op, name, scope)
        ends = Ends("+", source.by, self.has_gaps(op, source.by))
        return write_ends(op, scope, adjoint_slot(op.array(name)), op.views[name], ends)

    def load_adjoint(self, site: Site, op: Op, scope: Scope, value: Value) -> str:
        """Load the adjoint of a result."""
        assert value.view is not None
        return site.load(Slot("adjoint", value), value.view)

    adjoint_access: Access = "own"
    """Elements of the results' adjoints that an iteration reads."""

    def load_results(self, site: Site, op: Op, names: Sequence[str]) -> list[str]:
        """Load the results that a rule takes by these names."""
        found = []
        for slot in self.result_reads(op, names):
            assert slot.value.view is not None
            found.append(site.load(slot, slot.value.view))
        return found

    def result_reads(self, op: Op, names: Sequence[str]) -> dict[Slot, Access]:
        """Slots of the results that a rule takes by these names: all or none."""
        assert not names or op.onto is None, "an element of the loop has its own results"
        return {Slot("value", value): "own" for value in op.outputs if names}

    # --- the three passes

    def forward(self, op: Op, scope: Scope) -> None:
        names = frozenset(op.inputs)
        targets = [self.write_result(op, scope, value, "value") for value in op.outputs]

        def emit(site: Site) -> None:
            found = self.call(site, self.element.forward, self.load_inputs(site, op, scope, names), scope)
            for target, result in zip(targets, found, strict=True):
                target.write(site, result)

        self._append(op, scope, emit, self.input_reads(op, scope, names), targets)

    def tangent(self, op: Op, scope: Scope) -> None:
        rule = self.tangent_rule()
        names = rule.reads((True,) * len(rule.results))
        results = self.element.results_read(rule)
        values, moving = names & op.inputs.keys(), frozenset([n[1:] for n in names - op.inputs.keys() - {*results}])
        targets = [self.write_result(op, scope, value, "tangent") for value in op.outputs]

        def emit(site: Site) -> None:
            arguments = self.load_inputs(site, op, scope, values) + self.load_results(site, op, results)
            moves = self.load_inputs(site, op, scope, moving, kind="tangent")
            arguments += [move for name, move in zip(op.inputs, moves, strict=True) if name in self.varying]
            for target, result in zip(targets, self.call(site, rule, arguments, scope), strict=True):
                target.write(site, result)

        reads = self.input_reads(op, scope, values) | self.input_reads(op, scope, moving, "tangent")
        reads |= self.result_reads(op, results)
        self._append(op, scope, emit, reads, targets)

    def adjoint(self, op: Op, scope: Scope) -> None:
        rule = self.adjoint_rule()
        given = [value for value in op.outputs if scope.has_adjoint(value)]
        wanted = self.wanted_adjoints(op, scope)
        inputs = rule.reads(tuple([name in wanted for name in self.varying])) & op.inputs.keys()
        targets = {name: self.add_adjoint(op, scope, name) for name in wanted}
        results = self.element.results_read(rule)

        def emit(site: Site) -> None:
            arguments = self.load_inputs(site, op, scope, inputs) + self.load_results(site, op, results)
            for value in op.outputs:
                assert value.view is not None
                zero = zero_element(value.view.element)
                arguments.append(self.load_adjoint(site, op, scope, value) if value in given else zero)
            found = dict(zip(self.varying, self.call(site, rule, arguments, scope), strict=True))
            for name, target in targets.items():
                target.write(site, found[name])

        reads = self.input_reads(op, scope, inputs) | self.result_reads(op, results)
        for value in given:
            reads[Slot("adjoint", value)] = self.adjoint_access
        self._append(op, scope, emit, reads, list(targets.values()))

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
