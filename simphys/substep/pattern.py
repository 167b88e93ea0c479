"""Pattern: the way in which a sub-step applies an element function, with all that its loops have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from simphys.autograd.errors import InputError
from simphys.numerics.element import Element, element_of
from simphys.numerics.outside import Outside
from simphys.simulator import Shape

from .fit import Use, remedy_for_vector, require_fit
from .program import WHOLE, Domain, ElementView, Op, Value, arrays_of, make_local
from .relation import find_attribute, read_relation, with_inverse
from .scope import Scope

FIXED = ("constant", "model", "mark", "other mark", "cell")
"""Sources to which no gradient flows."""
ELSEWHERE = ("gathered", "between", "near", "end", "entry", "nodes", "second", "side", "one", "other")
"""Sources that a loop reads at other indices than its own."""
OF_MODEL = "model."
"""Beginning of the name of an attribute of the model, among names of parameters."""


class Source(NamedTuple):
    """Origin of a parameter of an element function."""

    kind: str
    """own, shared, gathered, constant, model, or what a pattern adds to these."""
    field: str
    """Name of the array, or of the attribute of the model that has it."""
    by: str = ""
    """Attribute of the model with the index of the element that is read, for gathered ones."""


def name_sources(**given: Mapping[Any, Any] | None) -> dict[str, Source]:
    """Name the origin of each parameter, by kind: its array, or (array, by).

    Two parameters may name one array together, with a tuple of both.
    """
    found: dict[str, Source] = {}
    for kind, arrays in given.items():
        for parameters, name in (arrays or {}).items():
            source = Source(kind, *name) if isinstance(name, tuple) else Source(kind, name)
            found |= dict.fromkeys(parameters if isinstance(parameters, tuple) else (parameters,), source)
    return found


def name_ends(both: Mapping[tuple[str, str], str] | None) -> tuple[dict[str, str], dict[str, str]]:
    """Name the arrays of the parameters that take the first of two entries, and of those that take the second."""
    first, second = ({pair[end]: name for pair, name in (both or {}).items()} for end in (0, 1))
    return first, second


def camel_case(name: str) -> str:
    """Make the name of a Function of one with underscores."""
    return "".join([word.capitalize() for word in name.split("_")])


class Pattern(ABC):
    """An element function, and the arrays that its parameters come from."""

    def __init__(
        self, func: Any, sources: Mapping[str, Source], *, results: Mapping[str, str | Shape] | None, over: str
    ) -> None:
        kind = type(self).__name__
        self.element: Element = element_of(func, f"{kind}")
        self.name = camel_case(self.element.name)
        self.source = f"{kind}({self.element.name})"
        missing = [name for name in self.element.inputs if name not in sources]
        unknown = [name for name in sources if name not in self.element.inputs]
        if missing or unknown:
            found = f"nothing for {', '.join(missing)}" if missing else f"{', '.join(unknown)}, which it does not have"
            constraint = f"it names an array for each of {', '.join(self.element.inputs)}"
            raise InputError(self.source, constraint, found, "Correct the declaration.")
        self.sources = {name: sources[name] for name in self.element.inputs}
        self.arguments, self.places = _place_arguments(self.sources)
        self.varying = tuple([name for name, source in self.sources.items() if source.kind not in FIXED])
        self.element.require_rules(self.varying)
        count = len(self.element.forward.results)
        self.results = dict(results or {self.element.name: self.element.inputs[0]})
        if len(self.results) != count:
            constraint = f"it names {count} results, one for each that {self.element.name} returns"
            raise InputError(self.source, constraint, repr(list(self.results)), "Pass results={...}.")
        for name, like in self.results.items():
            if isinstance(like, str) and like not in self.element.inputs and not like.startswith(OF_MODEL):
                remedy = "Name a parameter whose shape the result has, or give the shape."
                raise InputError(self.source, f"{name} has the shape of a parameter", like, remedy)
        self.over, self._is_declared = over, True

    def take_arrays(self, sources: Mapping[str, Source], results: Mapping[str, str | Shape]) -> None:
        """Take an array for each parameter, in a pattern that has no single element function."""
        self.sources, self.results = dict(sources), dict(results)
        self.arguments = tuple([source.field for source in sources.values()])
        self.places = tuple(range(len(sources)))
        self.varying = tuple([name for name, source in sources.items() if source.kind not in FIXED])

    _is_declared = False
    """True if the element function is that of the declaration, which may not fit its arrays."""
    arguments: tuple[str, ...]
    """Names of the arrays that the sub-step is applied to, in order."""
    places: tuple[int | None, ...]
    """Place of each parameter's array among them; None for a parameter that takes no array."""

    element_us = 0.003
    """Serial cost [us] of the forward pass for one element of the loop, approximately."""

    def cost_us(self, op: Op) -> float:
        """Estimate the serial cost [us] of the forward pass."""
        return self.element_us * op.domain.size

    def count_rounds(self, op: Op) -> int:
        """Estimate the rounds of loops of the forward pass where one thread goes through all elements."""
        return op.domain.size

    is_cheap = True
    """True if the results take so little time that they are computed again for the adjoint, rather than stored."""

    components_first = False
    """True if arrays of vectors on a grid are [c, *cells]."""

    is_long = False
    """True if its text is so long that its loops are kernels of their own on a CPU."""

    is_serial = False
    """True if it takes one thing after the other: an engine of such sub-steps alone runs each member on one thread."""

    on_host = False
    """True for operations on whole arrays, which are no loops."""
    idle: Mapping[str, str] = MappingProxyType({})
    """For an input, another one that is the result wherever the first is zero."""
    unread: Mapping[str, tuple[str, str]] = MappingProxyType({})
    """For an input, another one that has no effect wherever the first is zero, and a third one to take in its place."""

    outside: Outside | None = None
    """Names that functions which are no element functions capture."""

    is_complex = False
    """True if it takes long to compile: engines then have one kernel for all choices of wanted gradients."""

    hidden_results = 0
    """Number of the last results, which only its own adjoint and tangent read."""

    fixed_results: tuple[int, ...] = ()
    """Numbers of the results that no gradient flows to."""

    @property
    def formula(self) -> str:
        """Names of the functions that it applies."""
        return self.source.partition("(")[2].removesuffix(")")

    def require_tangent(self) -> None:
        """Raise MissingJvp, with what to do, if it has no tangent."""
        self.element.require_tangent()

    @cached_property
    def reads_results(self) -> bool:
        """True if the adjoint or the tangent takes the results."""
        rules = [rule for rule in (self.element.adjoint, self.element.by_hand) if rule is not None]
        return any([self.element.results_read(rule) for rule in rules])

    def bind(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        """Apply the sub-step to values. Errors: InputError for arrays that do not fit it."""
        op = self.make_op(model, inputs)
        require_fit(op)
        return op

    # --- what a pattern says

    @abstractmethod
    def make_op(self, model: Any, inputs: Mapping[str, Value | float]) -> Op:
        """Make the sub-step that is applied to values. Errors: InputError for shapes that do not fit each other."""

    @abstractmethod
    def forward(self, op: Op, scope: Scope) -> None:
        """Append the actions that compute the results."""

    @abstractmethod
    def adjoint(self, op: Op, scope: Scope) -> None:
        """Append the actions that add the adjoints of the inputs to their slots."""

    @abstractmethod
    def tangent(self, op: Op, scope: Scope) -> None:
        """Append the actions that compute the tangents of the results."""

    def list_uses(self, op: Op) -> list[Use]:
        """List how it calls the element functions of its declaration."""
        if not self._is_declared:
            return []
        inputs = {name: self.element_shape(op, name) for name in self.element.inputs}
        return [Use(self.element, self.varying, inputs, {value.name: value.element for value in op.outputs})]

    def arrange(self, op: Op) -> None:  # noqa: B027 - most patterns have no preference
        """Choose how the arrays of the sub-step lie in memory."""

    def check_results(self, op: Op, inputs: Sequence[Any], results: Sequence[Any]) -> None:  # noqa: B027
        """Raise InputError for results of a sub-step applied by itself that show a limit of the pattern."""

    checks_adjoints = False
    """True if `check_adjoints` shows a limit of the pattern."""

    def check_adjoints(self, op: Op, adjoints: Sequence[Any]) -> None:  # noqa: B027
        """Raise InputError for adjoints of states that show a limit of the pattern, where those of the loss did not."""

    # --- parts that patterns share

    def own_domain(
        self, inputs: Mapping[str, Value | float], kinds: Sequence[str] = ("own",), name: str | None = None
    ) -> Domain:
        """Find the index set of arrays from their leading axis. Errors: InputError where they differ."""
        label = self.over if name is None else name
        if not label:
            return WHOLE
        sizes = {
            self.sources[name].field: value.shape[0] if value.shape else 0
            for name, value in arrays_of(inputs).items()
            if self.sources[name].kind in kinds
        }
        if len(set(sizes.values())) != 1:
            found = ", ".join([f"{name} has {size}" for name, size in sizes.items()]) or "no such array"
            raise InputError(self.source, f"its arrays have an entry for each of the {label}", found, "Correct them.")
        return Domain(label, next(iter(sizes.values())))

    def read_relation(self, model: Any, name: str, shape: Shape, limit: int, *, gaps: bool = True) -> dict[str, Any]:
        """Read an index array of the model, and its inverse, by name."""
        return with_inverse(model, name, read_relation(model, name, shape, limit, self.source, gaps=gaps), limit)

    def require_constants(self, inputs: Mapping[str, Value | float], domain: Domain) -> None:
        """Raise InputError for a constant array that has no entry for each element."""
        for name, value in arrays_of(inputs).items():
            source = self.sources[name]
            if source.kind == "constant" and value.shape and domain != WHOLE and value.shape[0] != domain.size:
                constraint = f"a constant is a number, or has an entry for each of the {domain.size} {domain.name}"
                found = f"{source.field} of shape {list(value.shape)}"
                raise InputError(self.source, constraint, found, remedy_for_vector(name))

    def make_outputs(self, op: Op, domain: Domain, model: Any = None) -> tuple[Value, ...]:
        """Make the results, each with an element for each index of a set."""
        found = []
        for name, like in self.results.items():
            if isinstance(like, str) and like.startswith(OF_MODEL):
                like = (find_attribute(model, like.removeprefix(OF_MODEL)),)
            element = like if isinstance(like, tuple) else self.element_shape(op, like)
            first = self.components_first and bool(element)
            found.append(make_local(name, domain, element, components_first=first))
        return tuple(found)

    def element_shape(self, op: Op, name: str) -> Shape:
        """Return the shape of what a parameter takes."""
        return op.views[name].element if name in op.views else ()

    def make_views(self, inputs: Mapping[str, Value | float], domain: Domain) -> dict[str, ElementView]:
        """Make the views of the arrays among the inputs."""
        return {name: self.view(name, value, domain) for name, value in arrays_of(inputs).items()}

    def view(self, name: str, value: Value, domain: Domain) -> ElementView:
        """Elements of an input of the given index set, or of the whole for shared ones."""
        if domain == WHOLE or self.sources[name].kind == "shared":
            return ElementView(WHOLE, value.shape)
        if self.sources[name].kind == "constant" and value.shape[:1] != (domain.size,):
            return ElementView(WHOLE, value.shape)
        return ElementView(domain, value.shape[1:])

    def foreign_view(self, name: str, value: Value) -> ElementView:
        """Elements of an input of another index set, which is named after the array."""
        if not value.shape:
            found = f"a single number for {self.sources[name].field}"
            raise InputError(self.source, "a gathered array has an entry for each index", found, "Declare it shared.")
        return ElementView(Domain(self.sources[name].field, value.shape[0]), value.shape[1:])


def _place_arguments(sources: Mapping[str, Source]) -> tuple[tuple[str, ...], tuple[int | None, ...]]:
    """List the arrays that parameters take, and the place of each parameter's array among them.

    Several parameters may take entries of one array. What the model has itself is no argument.
    """
    together, keys = ("gathered", "one", "other", "mark", "other mark"), dict[tuple[str, str], int]()
    places: list[int | None] = []
    for name, source in sources.items():
        key = "" if source.kind in together else name, source.field
        places.append(None if source.kind in ("model", "cell") else keys.setdefault(key, len(keys)))
    return tuple([field for _, field in keys]), tuple(places)
