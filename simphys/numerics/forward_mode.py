"""Tangents that follow from the source of an element function: forward mode, statement by statement.

    @element
    def move(x, v, f, m, h):           def jvp_move(x, v, f, m, h, dx, dv, df, dm):
        v_new = v + h * f / m              dv_new = dv + (h * df - h * f / m * dm) / m
        return x + h * v_new, v_new        return dx + h * dv_new, dv_new

Each variable that moves gets a tangent, which is assigned right before it; what no tangent reads is left out. Branches
and loops stay as they are, so the tangent is that of the branch that is taken; `forward_rules` says what holds at
kinks. A function that is called gets a tangent by its own source, or has one by hand, if it is an element. What
iterates until it converges (`while`) has none: its tangent is that of the equation that it solves, written by hand.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from simphys.autograd.kernels.runtime import ti

from .forward_arrays import ArrayExpressions, Arrays, Fixed
from .forward_rules import SPREAD, Expressions, Underivable, or_zero
from .names import LOCAL, captured, local_names
from .places import base_name, collect_names, list_parts
from .pruning import prune
from .writes import find_written

_FILE = "<tangent of"
"""Beginning of the name of the file that a derived tangent is in, as far as Python knows."""
_numbers = itertools.count()
_NONE = Fixed()


def has_shape(x: Any) -> bool:
    """True for a vector or a matrix, within a kernel and outside."""
    return isinstance(x, ti.Matrix) or (hasattr(x, "is_tensor") and x.is_tensor())


@ti.func
def spread(d, x):
    """The tangent d of a sum with x, which stands still: a vector if x is one."""
    if ti.static(has_shape(x) and not has_shape(d)):
        return d + 0.0 * x
    else:
        return d


def derive(function: Callable[..., Any], moving: Sequence[str], fixed: Fixed = _NONE) -> Callable[..., Any]:
    """Make the tangent of a function where these parameters move: of f(x, y), jvp_f(x, y, dx), if x alone does.

    fixed: fields of records that have no tangent. The result is a function of Python for the compiler to read.
    Errors: Underivable if forward mode does not read it.
    """
    return _derive(inspect.unwrap(function), tuple(moving), fixed)


def tangent_of(function: Callable[..., Any], *moving: str) -> Any:
    """The tangent of a function where these parameters move, for other functions of the compiler to call.

    Errors: Underivable if forward mode does not read its source.
    """
    return ti.func(derive(function, moving))


def list_derived(function: Any) -> list[str]:
    """List the texts of a derived tangent and of those that it calls, which come first."""
    plain = inspect.unwrap(function)
    if not plain.__code__.co_filename.startswith(_FILE):
        return []
    called = [value for name, value in plain.__globals__.items() if name in plain.__code__.co_names and value is not ti]
    texts = [text for each in called if hasattr(each, "__wrapped__") for text in list_derived(each)]
    return list(dict.fromkeys([*texts, inspect.getsource(plain)]))


@functools.lru_cache(maxsize=1024)
def _derive(plain: FunctionType, moving: tuple[str, ...], fixed: Fixed) -> Callable[..., Any]:
    definition = ast.parse(textwrap.dedent(inspect.getsource(plain))).body[0]
    assert isinstance(definition, ast.FunctionDef)
    try:
        _require_readable(definition, moving)
        made = _Tangent(plain, definition, moving, fixed)
        lines = made.push_all()
    except Underivable as error:
        code = plain.__code__
        error.place = error.place or f"{code.co_filename}:{code.co_firstlineno + error.line - 1}"
        raise
    except RecursionError:
        raise Underivable(definition.lineno, f"{plain.__name__} calls itself") from None
    taken = {argument.arg: ast.unparse(argument) for argument in definition.args.args}
    head = f"def {made.name}({', '.join([*taken.values(), *[f'd{taken[name]}' for name in moving]])}):"
    tree = ast.parse("\n".join([head, *_indent(lines)]))
    prune(tree.body[0], made.list_arrays())  # type: ignore[arg-type]
    return _compile(ast.unparse(tree) + "\n", plain, made)


def _require_readable(definition: ast.FunctionDef, moving: tuple[str, ...]) -> None:
    """Raise Underivable for names and parameters that the tangent cannot have."""
    used = {getattr(node, "id", getattr(node, "arg", "")) for node in ast.walk(definition)}
    for name in moving:
        if f"d{name}" in used:
            raise Underivable(definition.lineno, f"d{name} has a meaning here, and would be the tangent of {name}")
    plain = [argument.arg for argument in definition.args.args]
    if definition.args.defaults or len(plain) < len([n for n in ast.walk(definition.args) if isinstance(n, ast.arg)]):
        raise Underivable(definition.lineno, f"{definition.name} has parameters with defaults, stars or slashes")


def _compile(text: str, plain: FunctionType, tangent: _Tangent) -> Callable[..., Any]:
    file = f"{_FILE} {plain.__name__}, {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    code = compile(text, file, "exec", dont_inherit=True)
    own = {name: value for name, value in tangent.space.items() if name in text}
    own["__name__"] = plain.__module__
    exec(code, own)
    made: Callable[..., Any] = own[tangent.name]
    return made


class _Tangent:
    """The statements of a function with those of its tangent between them."""

    def __init__(self, plain: FunctionType, definition: ast.FunctionDef, moving: tuple[str, ...], fixed: Fixed) -> None:
        self.space = {**captured(plain), "ti": ti, SPREAD: spread}
        """What the names of its text stand for."""
        self._body = definition.body
        self._names = {*local_names(definition), *[f"d{name}" for name in moving]}
        self._known = {**captured(plain), **dict.fromkeys(self._names, LOCAL)}
        if self._known.get("ti", ti) is not ti:
            raise Underivable(definition.lineno, "ti has a meaning here, and is the compiler's module in a tangent")
        self._arrays = Arrays(definition, self._known, fixed)
        for written in find_written(plain, definition):
            if written.name in self._names - self._arrays.names - self._arrays.statics:
                raise Underivable(written.call.lineno, f"{ast.unparse(written.call)} may write {written.name}")
        parts = list(ast.walk(definition))
        writes = [part for part in parts if isinstance(part, ast.stmt) and self._writes(part)]
        if writes and any(isinstance(part, ast.Return) for part in parts):
            raise Underivable(writes[0].lineno, f"{plain.__name__} writes an array, and returns a value")
        self._tangents = {name: f"d{name}" for name in moving}
        self._functions: dict[Callable[..., Any], str] = {}
        self.name = self._name(f"jvp_{plain.__name__}")
        while found := self._find_moved() - self._tangents.keys():
            self._tangents |= {name: self._name(f"d{name}") for name in sorted(found)}
        self._begun = [argument.arg for argument in definition.args.args if argument.arg not in moving]
        for node in [part for part in ast.walk(definition) if isinstance(part, ast.For | ast.comprehension)]:
            if counters := collect_names(node.target) & self._tangents.keys():
                raise Underivable(node.target.lineno, f"{min(counters)} is counted, and is a variable that moves, too")

    def list_arrays(self) -> set[str]:
        """Names of arrays and of their tangents, whose changes matter although no line here reads them."""
        return {*self._arrays.names, *[d for name, d in self._tangents.items() if name in self._arrays.names]}

    def push_all(self) -> list[str]:
        """Lines of the function, each after that of its tangent."""
        moved = [name for name in self._begun if name in self._tangents]
        return [*[f"{self._tangents[name]} = 0.0 * {name}" for name in moved], *self._push_body(self._body)]

    def _push_body(self, body: Sequence[ast.stmt]) -> list[str]:
        return [line for node in body for line in self._push(node)] or ["pass"]

    def _push(self, node: ast.stmt) -> list[str]:
        match node:
            case ast.Expr(value=ast.Constant()):
                return []
            case ast.Expr(value=ast.Call() as call) if self._writes(node):
                made = self._expressions()
                pushed = made.tangent(call)
                return [*_held(made), pushed or ast.unparse(call)]
            case ast.Assign(targets=[target], value=value):
                return self._assign(target, value)
            case ast.AugAssign(target=target, op=op, value=value):
                return self._assign(target, ast.copy_location(ast.BinOp(_read(target), op, value), node))
            case ast.If(test=test, body=body, orelse=orelse):
                lines = [f"if {ast.unparse(test)}:", *_indent(self._push_body(body))]
                return [*lines, "else:", *_indent(self._push_body(orelse))] if orelse else lines
            case ast.For(target=target, iter=each, body=body, orelse=[]) if not self._moves(each):
                return [f"for {ast.unparse(target)} in {ast.unparse(each)}:", *_indent(self._push_body(body))]
            case ast.Return(value=value) if value is not None:
                made, results = self._expressions(), list_parts(value)
                found = [made.tangent(result) for result in results]
                return [*_held(made), f"return {', '.join(map(or_zero, found, results))}"]
            case ast.Break() | ast.Continue() | ast.Pass():
                return [ast.unparse(node)]
        raise Underivable(node.lineno, f"`{ast.unparse(node).splitlines()[0]}` has no rule of forward mode")

    def _assign(self, target: ast.expr, value: ast.expr) -> list[str]:
        """Lines of an assignment, after those of the tangents of what it changes."""
        made, targets = self._expressions(), list_parts(target)
        values = self._arrays.split(value, len(targets))
        assignment = f"{ast.unparse(target)} = {ast.unparse(value)}"
        places = [self._place(part) for part in targets]
        if not all([isinstance(part, ast.Name | ast.Subscript | ast.Attribute) for part in targets]):
            raise Underivable(target.lineno, f"`{assignment}` has no rule of forward mode")
        assigned = {part.id for part in targets if isinstance(part, ast.Name)}
        if any([collect_names(part) & assigned for part in targets if not isinstance(part, ast.Name)]):
            raise Underivable(target.lineno, f"`{assignment}` assigns an index and what it picks")
        if len(values) < len(targets):  # the results of a call
            moved = made.tangent(value)
            if moved is None:
                zeros = [f"{p} = 0.0 * {ast.unparse(t)}" for p, t in zip(places, targets, strict=True) if p]
                return [assignment, *zeros]
            return [*_held(made), f"{', '.join(filter(None, places))} = {moved}", assignment]
        for part, v in zip(targets, values, strict=True):
            if self._arrays.holds(part) and self._place(part) is None and made.tangent(v):
                self._arrays.note_written(part)
        found = [(place, or_zero(made.tangent(v), v)) for place, v in zip(places, values, strict=True) if place]
        if not found:
            return [assignment]
        left, right = (", ".join(column) for column in zip(*found, strict=True))
        return [*_held(made), f"{left} = {right}", assignment]

    def _writes(self, node: ast.AST) -> bool:
        """True for a statement that changes arrays."""
        match node:
            case ast.Assign(targets=[target]) | ast.AugAssign(target=target):
                return any([self._arrays.holds(part) for part in list_parts(target)])
            case ast.Expr(value=ast.Call(args=given)):
                return any([base_name(each) in self._arrays.names for each in given])
        return False

    def _place(self, target: ast.expr) -> str | None:
        """Text of the place of the tangent of a variable, or of a part of one; None for one that stands still."""
        name = base_name(target)
        if name not in self._tangents or self._arrays.find_fixed(target):
            return None
        index = ast.unparse(target)[len(name) :]
        return f"{self._tangents[name]}{index}"

    def _expressions(self) -> Expressions:
        return ArrayExpressions(self._arrays, self._known, self._tangents, self._call, lambda: self._name("_0"))

    def _moves(self, value: ast.expr) -> bool:
        text = ArrayExpressions(self._arrays, self._known, self._tangents, self._call, lambda: "_")  # nobody reads it
        return text.tangent(value) is not None

    def _call(self, made: Expressions, call: ast.Call, called: Any, tangents: list[str | None]) -> str:
        """Text of a call of the tangent of a function, by hand or by its source."""
        if getattr(getattr(called, "element", None), "by_hand", None) is not None:
            return self._call_by_hand(made, call, called.element, tangents)
        if called is None:
            raise Underivable(call.lineno, f"{ast.unparse(call.func)} stands for nothing")
        plain = inspect.unwrap(called)
        if plain is called or not isinstance(plain, FunctionType):
            remedy = ": decorate it by @ti.func" if isinstance(plain, FunctionType) else ""
            raise Underivable(call.lineno, f"{ast.unparse(call.func)} is no function that the compiler reads{remedy}")
        parameters = list(inspect.signature(plain).parameters)
        moving = [name for name, d in zip(parameters, tangents, strict=False) if d]
        name = self._name_function(f"jvp_{plain.__name__}", derive(plain, moving, self._arrays.fixed))
        return f"{name}({', '.join([*map(ast.unparse, call.args), *filter(None, tangents)])})"

    def _call_by_hand(self, made: Expressions, call: ast.Call, element: Any, tangents: list[str | None]) -> str:
        rule, known = element.by_hand, element.results_read(element.by_hand)
        wanted = [name[1:] for name in rule.parameters[len(element.inputs) + len(known) :]]
        given = dict(zip(element.inputs, map(or_zero, tangents, call.args), strict=True))
        for name, d in zip(element.inputs, tangents, strict=True):
            if d and name not in wanted:
                raise Underivable(call.lineno, f"{rule.name} takes no tangent of {name}, which moves here")
        results = [made.hold_results(call, len(known))] if known else []
        name = self._name_function(rule.name, inspect.unwrap(rule.func))
        arguments = [*map(ast.unparse, call.args), *results, *[given[name] for name in wanted]]
        return f"{name}({', '.join(arguments)})"

    def _name_function(self, wish: str, plain: Callable[..., Any]) -> str:
        """Name a function that the text of the tangent calls."""
        if plain not in self._functions:
            self._functions[plain] = self._name(wish)
            self.space[self._functions[plain]] = ti.func(plain)
        return self._functions[plain]

    def _find_moved(self) -> set[str]:
        """Find the variables that statements assign what moves to."""
        found = set()
        for node in [part for statement in self._body for part in ast.walk(statement)]:
            if isinstance(node, ast.NamedExpr):
                raise Underivable(node.lineno, f"{ast.unparse(node)} has no rule of forward mode")
            if isinstance(node, ast.Assign | ast.AugAssign):
                targets = list_parts(node.targets[0] if isinstance(node, ast.Assign) else node.target)
                values = self._arrays.split(node.value, len(targets))
                values = values * len(targets) if len(values) < len(targets) else values
                moved = [target for target, v in zip(targets, values, strict=True) if self._moves(v)]
                found |= {base_name(target) for target in moved if not self._arrays.holds(target)}
        return found

    def _name(self, wish: str) -> str:
        """Make a name that no other variable has."""
        name = next(name for name in _variants(wish) if name not in self._names and name not in self.space)
        self._names.add(name)
        return name


def _held(made: Expressions) -> list[str]:
    return [f"{name} = {text}" for text, name in made.held.items()]


def _variants(name: str) -> Iterator[str]:
    if name == "_0":
        return (f"_{number}" for number in itertools.count())
    return (name + "_" * number for number in itertools.count())


def _read(target: ast.expr) -> ast.expr:
    """The value at a place that is written."""
    return ast.parse(ast.unparse(target), mode="eval").body


def _indent(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
