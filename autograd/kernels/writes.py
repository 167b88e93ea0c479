"""The parameters and captured names that the source of a kernel may write to, by field where these are records.

A name that cannot be resolved counts as written: a false alarm is an error message, a missed write a wrong gradient.

An expression stands for places: a name followed by fields, `s.k`, or a record or tuple made in the source, whose parts
stand for places in turn. Elements of an array have the place of the array.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from . import runtime
from .expressions import (
    EACH,
    Place,
    assigned_pairs,
    base_name,
    call_arguments,
    children,
    has_star,
    is_atomic,
    is_chain,
    is_static,
    makes_record,
    members,
    target_names,
    top_package,
)
from .records import RecordType, leaves

_Function = Callable[..., Any]
_HARMLESS = ("builtins", "math", "numpy", runtime.compiler)  # their unwrapped functions take values
_VALUES = (int, float, str, tuple, np.generic, runtime.ti.Matrix)  # a callee gets copies of these


class _Made(NamedTuple):
    """A tuple or record made in the source."""

    parts: tuple[ast.expr, ...]
    fields: tuple[str, ...] = ()


class Writes(NamedTuple):
    """Names in the source of a kernel or a ti.func whose elements it may write, itself or through other functions."""

    parameters: frozenset[str]
    """With records, those of their arrays: `s.k`."""
    captured: frozenset[str]
    """Globals and variables of a closure: fields, and objects that hold them."""


def writes_of(function: _Function, records: Mapping[str, RecordType] | None = None) -> Writes:
    """Read the source of `function` and of all functions that it calls; `records` are the types of such parameters.

    Errors: OSError for a source without a file.
    """
    found = _writes_of(function, (), {})
    known = records or {}
    parameters = {name for place in found.places for name in _names(place, known.get(str(place[0])))}
    return Writes(frozenset(parameters), found.captured)


def _names(place: Place, record: RecordType | None) -> list[str]:
    """The parameter itself, or the names of all arrays at a place in a record."""
    name, *fields = place
    if record is None:
        return [str(name)]
    for field in fields:
        if isinstance(field, int) and field < len(record.names):
            field = record.names[field]
        if field not in record.fields:
            break
        name = f"{name}.{field}"
        inner = record.fields[str(field)]
        if not isinstance(inner, RecordType):
            return [name]
        record = inner
    return [leaf for leaf, _ in leaves(str(name), record)]


class _Found(NamedTuple):
    """The places that a function may write, which begin with a parameter, and the captured names."""

    places: frozenset[Place]
    captured: frozenset[str]


def _writes_of(function: _Function, callers: tuple[_Function, ...], known: dict[_Function, _Found]) -> _Found:
    """Read a source; `known` has the functions read before, as a kernel calls many from several places."""
    if function not in known:
        known[function] = _Source(function, callers, known).writes()
    return known[function]


_trees: MutableMapping[_Function, ast.Module] = WeakKeyDictionary()


def _tree_of(function: _Function) -> ast.Module:
    """The source of a function, read once."""
    if function not in _trees:
        _trees[function] = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return _trees[function]


class _Source:
    """The source of a function and the names in its scope."""

    def __init__(self, function: _Function, callers: tuple[_Function, ...], known: dict[_Function, _Found]) -> None:
        self.callers = (*callers, function)
        self.known = known
        self.callees: dict[ast.expr, Any] = {}
        self.parameters = list(inspect.signature(function).parameters)
        self.tree = _tree_of(function)
        variables = inspect.getclosurevars(function)  # lists the names of attributes, too
        local = function.__code__.co_varnames
        self.captured = {n: v for n, v in {**variables.globals, **variables.nonlocals}.items() if n not in local}
        self.aliases = self._aliases()

    def writes(self) -> _Found:
        if self.callers[-1] in self.callers[:-1]:  # recursion at compile time
            return _Found(frozenset({(name,) for name in self.parameters}), frozenset())
        written: set[Place] = set()
        captured: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for part in [part for target in node.targets for part in members(target)]:
                    # a name is of no alias, which is made here
                    written |= {(part.id,)} if isinstance(part, ast.Name) else self._places(part)
            elif isinstance(node, ast.AugAssign | ast.AnnAssign):
                written |= self._places(node.target)
            elif isinstance(node, ast.Call):
                places, inside = self._written_by(node)
                written |= places
                captured |= inside
        names = {str(place[0]) for place in written} & self.captured.keys()
        captured |= {name for name in names if not isinstance(self.captured[name], _VALUES)}
        return _Found(frozenset(place for place in written if place[0] in self.parameters), frozenset(captured))

    # --- places for which expressions stand

    def _aliases(self) -> dict[str, list[tuple[ast.expr, Place]]]:
        """(expression, fields of it) for each name: `z = x`, `u, v = ti.static(x, y)`, `for z in ti.static((x, y))`."""
        found: dict[str, list[tuple[ast.expr, Place]]] = {}
        for node in ast.walk(self.tree):
            pairs: list[tuple[ast.expr, ast.expr, Place]] = []
            if isinstance(node, ast.Assign):
                pairs = [(a, b, ()) for target in node.targets for a, b in assigned_pairs(target, node.value)]
            elif isinstance(node, ast.NamedExpr):
                pairs = [(node.target, node.value, ())]
            elif isinstance(node, ast.For | ast.comprehension):
                pairs = [(node.target, node.iter, (EACH,))]
            for target, value, fields in pairs:
                for name, inner in target_names(target):
                    found.setdefault(name, []).append((value, (*fields, *inner)))
        return found

    def _places(self, expression: ast.expr, fields: Place = (), seen: frozenset[str] = frozenset()) -> set[Place]:
        """All places that an expression, or a field of it, may stand for."""
        match expression:
            case ast.Name(id=name):
                found: set[Place] = {(name, *itertools.takewhile(lambda field: field != EACH, fields))}
                for value, inner in self.aliases.get(name, ()) if name not in seen else ():
                    found |= self._places(value, (*inner, *fields), seen | {name})
                return found
            case ast.Attribute(value=value, attr=name):
                return self._places(value, (name, *fields), seen)
            case ast.Subscript(value=value):
                made = self._made(value, seen)
                if made is None:  # an element of an array, of which fields are components
                    return self._places(value, (), seen)
                index = expression.slice
                at = index.value if isinstance(index, ast.Constant) and isinstance(index.value, int) else EACH
                return self._part(made, (at, *fields), seen)
            case ast.Starred(value=value):
                return self._places(value, (), seen)
            case ast.IfExp(body=yes, orelse=no):
                return self._places(yes, fields, seen) | self._places(no, fields, seen)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return self._places(element, fields[1:], seen)
        made = self._made(expression, seen)
        if made is not None:
            return self._part(made, fields, seen)
        if isinstance(expression, ast.Call):
            return self._result(expression, fields, seen)
        return {place for child in children(expression) for place in self._places(child, (), seen)}

    def _part(self, made: _Made, fields: Place, seen: frozenset[str]) -> set[Place]:
        """The places of a field of a tuple or record made in the source."""
        parts: Iterable[ast.expr] = made.parts
        if fields:
            first = made.fields.index(fields[0]) if fields[0] in made.fields else fields[0]
            if isinstance(first, int) and -len(made.parts) <= first < len(made.parts):
                parts = [made.parts[first]]
        return {place for part in parts for place in self._places(part, fields[1:], seen)}

    def _made(self, expression: ast.expr, seen: frozenset[str]) -> _Made | None:
        """The parts of a tuple or record that an expression makes; None for another expression."""
        if isinstance(expression, ast.Tuple | ast.List) and not has_star(expression.elts):
            return _Made(tuple(expression.elts))
        if isinstance(expression, ast.Name) and expression.id not in seen:
            values = self.aliases.get(expression.id, [])
            if len(values) == 1 and not values[0][1] and expression.id not in self.parameters:
                return self._made(values[0][0], seen | {expression.id})
        if not isinstance(expression, ast.Call) or has_star(expression.args):
            return None
        if is_static(expression):
            several = len(expression.args) > 1
            return _Made(tuple(expression.args)) if several else self._made(expression.args[0], seen)
        callee = self._callee(expression.func)
        if not makes_record(callee):
            return None
        names = callee.names if isinstance(callee, RecordType) else tuple(callee._fields)
        given = dict(zip(names, expression.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in expression.keywords if keyword.arg is not None}
        return _Made(tuple(given.values()), tuple(given))

    def _result(self, call: ast.Call, fields: Place, seen: frozenset[str]) -> set[Place]:
        """The places that the result of a call may stand for: those of all arrays that it gets, if it is not known."""
        if is_static(call):
            return self._places(call.args[0], fields, seen)
        callee = self._callee(call.func)
        if hasattr(callee, "stands_for"):
            names = list(inspect.signature(callee).parameters)
            given = dict(zip(names, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
            return {p for n in callee.stands_for if n in given for p in self._places(given[n], (), seen)}
        if any(callee is each for each in (range, len, int, float)) or top_package(callee) == runtime.compiler:
            return set()
        if isinstance(call.func, ast.Attribute) and call.func.attr == "_replace":
            return self._replaced(call, fields, seen)
        owner = [call.func.value] if callee is None and isinstance(call.func, ast.Attribute) else []
        return {place for array in owner + call_arguments(call) for place in self._places(array, (), seen)}

    def _replaced(self, call: ast.Call, fields: Place, seen: frozenset[str]) -> set[Place]:
        """The places of a record with other fields: `s._replace(k=z)`."""
        assert isinstance(call.func, ast.Attribute), "it is a method"
        given: dict[str | int | None, ast.expr] = {keyword.arg: keyword.value for keyword in call.keywords}
        if fields and fields[0] in given:
            return self._places(given[fields[0]], fields[1:], seen)
        found = self._places(call.func.value, fields, seen)
        if not fields or not isinstance(fields[0], str) or fields[0] == EACH:
            found |= {place for value in given.values() for place in self._places(value, (), seen)}
        return found

    def _callee(self, function: ast.expr) -> Any:
        """The object that is called; None for a name that is known at compile time only, or a method of an element."""
        if function not in self.callees:
            try:
                found = eval(compile(ast.Expression(function), "<callee>", "eval"), dict(self.captured))
            except Exception:
                found = None
            self.callees[function] = found
        return self.callees[function]

    # --- places that calls write

    def _written_by(self, call: ast.Call) -> tuple[set[Place], frozenset[str]]:
        """(places that a call may write, captured names that the callee writes).

        These are arrays, elements by reference, the first argument of ti.atomic_*, and a of a.fill().
        """
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        callee = self._callee(call.func)
        if name.startswith("atomic") or is_atomic(callee):
            return self._all_places(call.args[:1]), frozenset()
        if name == "_replace":
            return set(), frozenset()
        if name == "fill" and isinstance(call.func, ast.Attribute):
            return self._places(call.func.value), frozenset()
        arguments = call_arguments(call)
        arrays = [a for a in arguments if self._may_be_array(a)]
        if callee is None:
            elements: list[ast.expr] = [
                a for a in arguments if isinstance(a, ast.Subscript) and isinstance(call.func, ast.Name)
            ]
            return (set() if is_static(call) else self._all_places(arrays + elements)), frozenset()
        if makes_record(callee) or hasattr(callee, "stands_for"):
            return set(), frozenset()
        function = getattr(callee, "__wrapped__", None)
        if function is None:
            return (set() if top_package(callee) in _HARMLESS else self._all_places(arrays)), frozenset()
        return self._written_inside(call, function)

    def _written_inside(self, call: ast.Call, function: _Function) -> tuple[set[Place], frozenset[str]]:
        """(places that a call of a known function may write, captured names that it writes)."""
        inside = _writes_of(function, self.callers, self.known)
        captured = set(inside.captured)
        parameters = inspect.signature(function).parameters
        names = list(parameters)
        if names[:1] == ["self"]:  # a method of an object that holds fields
            names = names[1:]
            captured |= {base_name(call.func) or "self"} if any(p[0] == "self" for p in inside.places) else set()
        references = [n for n, p in parameters.items() if runtime.ti.template in (p.annotation, type(p.annotation))]
        written: set[Place] = set()
        passed: dict[str | int, tuple[ast.expr, Place]] = {}
        for position, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred):  # its parts are the arguments from here on
                last = position == len(call.args) - 1
                for part, parameter in enumerate(names[position:]):
                    passed[parameter] = (argument.value, (part,) if last else ())
            elif position < len(names):
                passed.setdefault(names[position], (argument, ()))
        for keyword in call.keywords:
            if keyword.arg is None:
                written |= self._places(keyword.value)
            else:
                passed[keyword.arg] = (keyword.value, ())
        starred = has_star(call.args)
        for place in inside.places:
            if place[0] in passed:
                argument, fields = passed[place[0]]
                if starred or place[0] in references or self._may_be_array(argument):
                    written |= self._places(argument, (*fields, *place[1:]))
        if any(isinstance(a, ast.Starred) for a in call.args[:-1]) and inside.places:
            written |= self._all_places(call.args)
        return written, frozenset(captured)

    def _may_be_array(self, expression: ast.expr) -> bool:
        """True if an expression may stand for arrays, other than by an element."""
        if isinstance(expression, ast.Call):
            callee = self._callee(expression.func)
            return is_static(expression) or makes_record(callee) or hasattr(callee, "stands_for")
        return is_chain(expression) or isinstance(expression, ast.Tuple | ast.List | ast.Starred | ast.IfExp)

    def _all_places(self, expressions: Iterable[ast.expr]) -> set[Place]:
        return {place for expression in expressions for place in self._places(expression)}
