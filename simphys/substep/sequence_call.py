"""Calls within a sequence: an element function with the elements that its parameters come from, as text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from simphys.autograd.errors import InputError, MissingJvp
from simphys.numerics.element import Element, Rule, element_of

from .action import Kind, Slot
from .expressions import identifier, zero_element
from .fit import Use
from .pattern import Source, name_ends, name_sources
from .program import Op, Value
from .scope import Scope
from .site import Site

WORDS = ("time", "end", "side")
"""Sources that are numbers of the sequence: time of a motion, end of a search, number of a side."""
FIXED = ("constant", "end", "side")
"""Sources to which no gradient flows."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Origin of the parameters of one or two element functions, from their names to names of arrays."""

    own: Mapping[str, str] = field(default_factory=dict)
    """Arrays with an entry for each element."""
    both: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """From two parameters, of the first and of the second element of a row, to such an array."""
    shared: Mapping[str, str] = field(default_factory=dict)
    """Arrays that all elements share."""
    constant: Mapping[str, str] = field(default_factory=dict)
    """Numbers that no gradient flows to."""

    def sources(self) -> dict[str, Source]:
        """Return the source of each parameter."""
        first, second = name_ends(self.both)
        found = name_sources(own={**self.own, **first}, second=second, shared=self.shared, constant=self.constant)
        return {name: source._replace(field=identifier(source.field)) for name, source in found.items()}


class Call:
    """An element function, with the source of each parameter, and the parameters that its results replace."""

    def __init__(
        self, func: Any, sources: Mapping[str, Source], replaced: Sequence[str] | None, state: Collection[str]
    ) -> None:
        self.element: Element = element_of(func, "Sequence")
        self.label = f"Sequence({self.element.name})"
        missing = [name for name in self.element.inputs if name not in sources]
        if missing:
            constraint = f"the declaration names an array for each of {', '.join(self.element.inputs)}"
            raise InputError(self.label, constraint, f"nothing for {', '.join(missing)}", "Correct the declaration.")
        self.sources = {name: sources[name] for name in self.element.inputs}
        self.varying = tuple([name for name, source in self.sources.items() if source.kind not in FIXED])
        self.element.require_rules(self.varying)
        self.replaced = None if replaced is None else tuple(replaced)
        count = len(self.element.forward.results)
        if self.replaced is None:
            if count != 2:
                found, remedy = f"{count} results", "Return both."
                raise InputError(self.label, "it returns a time and its uncertainty", found, remedy)
            return
        for name in self.replaced:
            if name not in self.sources or self.sources[name].field not in state:
                remedy = "Name parameters that are entries of the state."
                raise InputError(self.label, "its results replace entries of the state", name, remedy)
        if count != len(self.replaced):
            found, remedy = f"{count} results for {', '.join(self.replaced)}", "Name one for each result."
            raise InputError(self.label, "each result replaces a parameter", found, remedy)

    def make_use(self, op: Op) -> Use:
        """Return the shapes that it takes and returns."""
        views = {name: op.views.get(source.field) for name, source in self.sources.items()}
        inputs = {name: () if view is None else view.element for name, view in views.items()}
        results = {name: inputs[name] for name in self.replaced or ()}
        return Use(self.element, self.varying, inputs, results or {"the time": (), "its uncertainty": ()})

    @property
    def replaces(self) -> list[Source]:
        """Entries of the state that the results replace."""
        return [self.sources[name] for name in self.replaced or ()]

    @property
    def adjoint(self) -> Rule:
        assert self.element.adjoint is not None, "checked when declared"
        return self.element.adjoint

    @property
    def tangent(self) -> Rule:
        """The tangent rule. Errors: MissingJvp; also for a derived one that depends on the end of the time step."""
        rule = self.element.require_tangent()
        ends = {name for name, source in self.sources.items() if source.kind == "end"}
        if self.element.by_hand is None and ends & rule.reads((True,) * len(rule.results)):
            name = self.element.name
            reason = f"{name} has no tangent: what follows from its source depends on {', '.join(sorted(ends))}."
            raise MissingJvp(f"{reason} Add @{name}.tangent, which may take the time, or use reverse mode.")
        return rule


class Ends(NamedTuple):
    """Expressions of the indices of the elements that a call acts on."""

    first: str
    second: str = ""

    def at(self, kind: str) -> str:
        """Expression of the index that a source of this kind is read at."""
        return {"own": self.first, "second": self.second}.get(kind, "0")


State = Callable[[str, str], str]
"""Expression of an entry of the state, by field and index."""


@dataclass(frozen=True)
class Frame:
    """The place of a call in the text: the state that it sees, and the sequence's own numbers there."""

    site: Site
    op: Op
    scope: Scope
    state: State
    """Reads the values of the state."""
    shared: Mapping[str, str]
    """Local variables of the inputs that all elements share, by field: read once, before all loops."""
    moved: State | None = None
    """Reads the tangents of the state."""
    dshared: Mapping[str, str] = field(default_factory=dict)
    """Local variables of the tangents of shared inputs."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Expression of each of WORDS, and of the tangent "dtime"."""

    def seeing(self, state: State) -> Frame:
        """Return the frame with another state."""
        return replace(self, state=state)

    def knowing(self, **words: str) -> Frame:
        """Return the frame with further words."""
        return replace(self, words={**self.words, **words})

    def load(self, call: Call, name: str, ends: Ends, *, tangent: bool = False) -> str:
        """Name an argument of a call, or its tangent."""
        source = call.sources[name]
        if source.kind in WORDS:
            return self.words["dtime" if tangent else source.kind]
        value = self.op.inputs[source.field]
        if not isinstance(value, Value):
            return self.scope.number(self.op, source.field)
        if source.kind == "shared":
            return (self.dshared if tangent else self.shared)[source.field]
        view, index = self.op.views[source.field], ends.at(source.kind)
        if source.field in self.op.pattern.state:
            read = self.moved if tangent else self.state
            assert read is not None, "given for tangents"
            return self.site.assign(name, read(source.field, index))
        kind: Kind = "tangent" if tangent else "value"
        if self.scope.is_zero(value, kind):
            return zero_element(view.element)
        return self.site.assign(name, self.site.load_at(Slot(kind, value), view, index))

    def run(self, call: Call, ends: Ends, known: Mapping[str, str] | None = None) -> list[str]:
        """Call the function, and name its results; arguments that are `known` are not loaded."""
        known = known or {}
        arguments = [known.get(name) or self.load(call, name, ends) for name in call.element.inputs]
        return self._call(call.element.forward, arguments)

    def pull(
        self, call: Call, ends: Ends, adjoints: Sequence[str], results: Sequence[str] | None = None
    ) -> dict[str, str]:
        """Call the adjoint, with the results of the function if it reads them: those that are given, or computed again.

        Returns the adjoint of each varying parameter.
        """
        given: Sequence[str] = ()
        if call.element.results_read(call.adjoint):
            given = self.run(call, ends) if results is None else results
        found = self._call(call.adjoint, [*self._load_all(call, ends), *given, *adjoints])
        return dict(zip(call.varying, found, strict=True))

    def push(self, call: Call, ends: Ends, results: Sequence[str]) -> list[str]:
        """Call the tangent; `results` are those of the function."""
        given = results if call.element.results_read(call.tangent) else ()
        moves = [self.load(call, name, ends, tangent=True) for name in call.varying]
        return self._call(call.tangent, [*self._load_all(call, ends), *given, *moves])

    def _load_all(self, call: Call, ends: Ends) -> list[str]:
        return [self.load(call, name, ends) for name in call.element.inputs]

    def _call(self, rule: Rule, arguments: Sequence[str]) -> list[str]:
        names = [self.site.fresh("y") for _ in rule.results]
        self.site.line(f"{', '.join(names)} = {self.scope.function(rule)}({', '.join(arguments)})")
        return names
