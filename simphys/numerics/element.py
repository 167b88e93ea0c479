"""Element functions: the mathematics of one element, with its adjoint and its tangent.

    @element
    def kick(v, f, m, h):
        return v + (h / m) * f

    @kick.adjoint
    def adj_kick(v, f, m, h, adj_v):
        return adj_v, (h / m) * adj_v, -(h / (m * m)) * f.dot(adj_v)

The adjoint takes the inputs and an adjoint for each result. h is a constant here: the adjoint returns nothing for it.
The tangent follows from the source (forward_mode.py). One by hand is decorated by `@kick.tangent` and takes the inputs
and a tangent, named d and the input, for each input that varies: jvp_kick(v, f, m, h, dv, df, dm). Either may take the
results as well, right after the inputs: adj_f(x, y, adj_y) and jvp_f(x, y, dx) for y = f(x). So nothing needs to be
solved for twice.
Element functions have no annotations: the compiler makes a version for each type and dimension that they are called
with. They call each other like functions.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from simphys.autograd.errors import InputError, MissingJvp
from simphys.autograd.kernels.runtime import ti

from .dependencies import find_dependencies
from .forward_mode import derive
from .forward_rules import Underivable
from .linear import find_linear
from .names import find_undefined, list_called
from .outside import Outside, is_of_user
from .shapes import Shape, find_shapes
from .vanishing import find_vanishing
from .writes import Written, find_written


@dataclass(frozen=True)
class Rule:
    """A function as the compiler takes it, with the parameters that each of its results depends on."""

    name: str
    parameters: tuple[str, ...]
    results: tuple[frozenset[str], ...]
    """Names of the parameters that each result depends on, in order."""
    func: Any = field(repr=False, compare=False)
    definition: ast.FunctionDef = field(repr=False, compare=False)

    @cached_property
    def written(self) -> tuple[Written, ...]:
        """Variables that the calls in it may write, now that all functions of its module are known."""
        return find_written(inspect.unwrap(self.func), self.definition)

    @cached_property
    def _shapes(self) -> dict[tuple[Shape, ...], tuple[Shape, ...] | None]:
        return {}

    def find_shapes(self, arguments: Sequence[Shape]) -> tuple[Shape, ...] | None:
        """Return the shapes of the results for arguments of these shapes; None where Python cannot tell."""
        key = tuple(arguments)
        if key not in self._shapes:
            self._shapes[key] = find_shapes(self.func, key)
        return self._shapes[key]

    def require_shapes(self, arguments: Sequence[Shape], expected: Mapping[str, Shape]) -> None:
        """Raise InputError if results have other shapes than expected, as far as Python can tell."""
        for (name, shape), found in zip(expected.items(), self.find_shapes(arguments) or (), strict=False):
            if found != shape:
                raise _refuse(self, f"it returns {_describe(shape)} for {name}", _describe(found))

    @cached_property
    def outside(self) -> Outside | None:
        """Names that it captures, with what they stood for at its first use; None for a function of this package."""
        return Outside(self.func, name=self.name) if is_of_user(self.func) else None

    def require_names(self) -> None:
        """Raise InputError for a name, in it or in an element function that it calls, that stands for nothing."""
        assert self._has_all_names

    @cached_property
    def _has_all_names(self) -> bool:
        """True, kept once it is known: a name that is missing may be defined later."""
        self._require_own_names()
        for rule in self._list_called():
            rule.require_names()
        return True

    def _require_own_names(self) -> None:
        missing = find_undefined(inspect.unwrap(self.func), self.definition)
        if missing is not None:
            code = inspect.unwrap(self.func).__code__
            source = f"{code.co_filename}:{code.co_firstlineno + missing.line}, {self.name}"
            raise InputError(source, "its names are defined", missing.text, "Define or import it in its module.")

    def _list_called(self) -> list[Rule]:
        """List the element functions that it calls."""
        called = list_called(inspect.unwrap(self.func), self.definition)
        elements = [getattr(each, "element", None) for each in called]
        return [made.forward for made in elements if isinstance(made, Element) and made.forward is not self]

    def reads(self, wanted: tuple[bool, ...]) -> frozenset[str]:
        """Collect the parameters that the wanted results depend on."""
        return frozenset().union(*[names for names, w in zip(self.results, wanted, strict=True) if w])

    def vanishing(self, zeros: Collection[str]) -> tuple[bool, ...]:
        """Tell for each result whether the source shows that it is zero if these parameters are."""
        return find_vanishing(self.definition, zeros, self.written)

    def linear(self, parameters: Collection[str]) -> tuple[bool, ...]:
        """Tell for each result whether the source shows that it is linear in these parameters."""
        found = () if self.written else find_linear(self.definition, parameters)
        return found or (False,) * len(self.results)


class Element:
    """An element function with its adjoint and tangent, once they are given."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.forward = _read_rule(function)
        self.name = self.forward.name
        self.inputs = self.forward.parameters
        self.adjoint: Rule | None = None
        self.by_hand: Rule | None = None
        """Tangent that is written by hand."""
        self.varying: tuple[str, ...] | None = None
        """Inputs that vary, once the element is declared."""

    @property
    def tangent(self) -> Rule | None:
        """Tangent by hand, or else the one that follows from the source, if it is declared; None without either."""
        return self.by_hand or (self._derived[0] if self.varying is not None else None)

    def require_tangent(self) -> Rule:
        """Return the tangent. Errors: MissingJvp, with the reason why none follows from the source."""
        if self.tangent is None:
            reason = f"{self.name} has no tangent: {self._derived[1]}."
            raise MissingJvp(f"{reason} Add @{self.name}.tangent, or use reverse mode.")
        return self.tangent

    @cached_property
    def _derived(self) -> tuple[Rule | None, str]:
        plain = inspect.unwrap(self.forward.func)
        try:
            return _read_rule(derive(plain, self.varying or ())), ""
        except Underivable as error:
            return None, f"{error.place}: {error.reason}"

    def list_outside(self) -> list[Outside]:
        """List the names that its rules capture."""
        rules = [rule for rule in (self.forward, self.adjoint, self.by_hand) if rule is not None]
        return [rule.outside for rule in rules if rule.outside is not None]

    def add_adjoint(self, function: Callable[..., Any]) -> Any:
        """Give the element its adjoint (a decorator). Errors: InputError for parameters that do not fit."""
        rule = _read_rule(function)
        count = len(self.forward.results)
        names = self.inputs + self.results_read(rule)
        if rule.parameters[: len(names)] != names or len(rule.parameters) != len(names) + count:
            wanted = f"({', '.join(self.inputs)}, and {count} adjoint{'s' if count > 1 else ''})"
            raise _refuse(rule, f"the adjoint of {self.name} takes {wanted}", f"({', '.join(rule.parameters)})")
        self.adjoint = rule
        return rule.func

    def add_tangent(self, function: Callable[..., Any]) -> Any:
        """Give the element its tangent (a decorator). Errors: InputError for parameters that do not fit."""
        rule = _read_rule(function)
        known = [f"d{name}" for name in self.inputs]
        moving = rule.parameters[len(self.inputs) + len(self.results_read(rule)) :]
        if rule.parameters[: len(self.inputs)] != self.inputs or [n for n in known if n in moving] != list(moving):
            constraint = (
                f"the tangent of {self.name} takes ({', '.join(self.inputs)}) and then, in order, any of {known}"
            )
            raise _refuse(rule, constraint, f"({', '.join(rule.parameters)})")
        if len(rule.results) != len(self.forward.results):
            constraint = f"the tangent of {self.name} returns {len(self.forward.results)} values"
            raise _refuse(rule, constraint, f"{len(rule.results)}")
        self.by_hand = rule
        return rule.func

    def results_read(self, rule: Rule) -> tuple[str, ...]:
        """Return the names by which an adjoint or a tangent takes the results; empty if it takes none."""
        adjoint = self.adjoint or rule
        adjoints, begin = adjoint.parameters[-len(self.forward.results) :], len(self.inputs)
        names = tuple([name[4:] for name in adjoints if name.startswith("adj_")])
        return names if rule.parameters[begin : begin + len(adjoints)] == names else ()

    def require_rules(self, varying: tuple[str, ...]) -> None:
        """Raise InputError unless the adjoint and the tangent fit the inputs that vary."""
        if self.adjoint is None:
            raise InputError(f"element {self.name}", "an element has an adjoint", "none", f"Add @{self.name}.adjoint.")
        found = len(self.adjoint.results)
        if found != len(varying):
            constraint = f"it returns an adjoint for each of {', '.join(varying)}: {len(varying)} values"
            raise _refuse(self.adjoint, constraint, f"{found}")
        if self.by_hand is not None:
            begin = len(self.inputs) + len(self.results_read(self.by_hand))
            moving = tuple([name[1:] for name in self.by_hand.parameters[begin:]])
            if moving != varying:
                constraint = f"it takes a tangent for each of {', '.join(varying)}"
                raise _refuse(self.by_hand, constraint, ", ".join(moving) or "none")
        if self.varying not in (None, varying):
            raise _refuse(self.adjoint, f"all its declarations let {', '.join(self.varying)} vary", ", ".join(varying))
        self.varying = varying


def element(function: Callable[..., Any]) -> Any:
    """Make an element function of a Python function that the compiler can read (a decorator).

    The result is called by other element functions, and named in declarations of sub-steps. Its attributes `adjoint`
    and `tangent` are decorators for these rules.
    """
    made = Element(function)
    func = made.forward.func
    func.element, func.adjoint, func.tangent = made, made.add_adjoint, made.add_tangent
    return func


def element_of(func: Any, declared: str) -> Element:
    """Return the Element of a function made by `element`. Errors: InputError for any other object."""
    found = getattr(func, "element", None)
    if not isinstance(found, Element):
        raise InputError(declared, "its first argument is an element function", repr(func), "Decorate it by @element.")
    return found


def _describe(shape: Shape) -> str:
    return "a number" if not shape else f"a vector of {shape[0]}" if len(shape) == 1 else f"a matrix of {shape}"


def _refuse(rule: Rule, constraint: str, found: str) -> InputError:
    code = inspect.unwrap(rule.func).__code__
    return InputError(f"{code.co_filename}:{code.co_firstlineno}, {rule.name}", constraint, found, "Correct it.")


def _read_definition(function: Callable[..., Any]) -> ast.FunctionDef:
    """Read the source text of a function. Errors: InputError for one without, and for a lambda."""
    source = f"element {getattr(function, '__qualname__', repr(function))}"
    try:
        definition = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        constraint = "must be a function whose source text can be read"
        remedy = "Write it with `def` into a file, not by exec or at a prompt."
        raise InputError(source, constraint, f"{type(error).__name__}: {error}", remedy) from None
    if not isinstance(definition, ast.FunctionDef):
        remedy = "Write it with `def`."
        raise InputError(source, "must be a function with a `def`", ast.unparse(definition), remedy)
    return definition


def _read_rule(function: Callable[..., Any]) -> Rule:
    definition = _read_definition(function)
    parameters = tuple(inspect.signature(function).parameters)
    results = find_dependencies(definition, parameters, find_written(function, definition))
    return Rule(function.__name__, parameters, results, ti.func(function), definition)
