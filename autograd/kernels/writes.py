"""The parameters and captured names that the source of a kernel may write to.

A name that cannot be resolved counts as written: a false alarm is an error message, a missed write a wrong gradient.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from . import runtime

_Function = Callable[..., Any]
_HARMLESS = ("builtins", "math", "numpy", runtime.compiler)  # their unwrapped functions take values
_VALUES = (int, float, str, tuple, np.generic, runtime.ti.Matrix)  # a callee gets copies of these


class Writes(NamedTuple):
    """Names in the source of a kernel or a ti.func whose elements it may write, itself or through other functions."""

    parameters: frozenset[str]
    captured: frozenset[str]
    """Globals and variables of a closure: fields, and objects that hold them."""


def writes_of(function: _Function) -> Writes:
    """Read the source of `function` and of all functions that it calls. Errors: OSError for a source without a file."""
    return _writes_of(function, (), {})


def _writes_of(function: _Function, callers: tuple[_Function, ...], known: dict[_Function, Writes]) -> Writes:
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

    def __init__(self, function: _Function, callers: tuple[_Function, ...], known: dict[_Function, Writes]) -> None:
        self.callers = (*callers, function)
        self.known = known
        self.parameters = list(inspect.signature(function).parameters)
        self.tree = _tree_of(function)
        variables = inspect.getclosurevars(function)  # lists the names of attributes, too
        local = function.__code__.co_varnames
        self.captured = {n: v for n, v in {**variables.globals, **variables.nonlocals}.items() if n not in local}
        self.aliases = self._aliases()

    def writes(self) -> Writes:
        if self.callers[-1] in self.callers[:-1]:  # recursion at compile time
            return Writes(frozenset(self.parameters), frozenset())
        targets: list[ast.expr] = []
        names: set[str] = set()
        captured: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                parts = [part for target in node.targets for part in _parts(target)]
                names |= {part.id for part in parts if isinstance(part, ast.Name)}  # of no alias, which is made here
                targets += [part for part in parts if not isinstance(part, ast.Name)]
            elif isinstance(node, ast.AugAssign | ast.AnnAssign):
                targets.append(node.target)
            elif isinstance(node, ast.Call):
                arguments, inside = self._written_by(node)
                targets += arguments
                captured |= inside
        names |= {origin for target in targets for origin in self._origins(_base_name(target))}
        captured |= {name for name in names & self.captured.keys() if not isinstance(self.captured[name], _VALUES)}
        return Writes(frozenset(names & set(self.parameters)), frozenset(captured))

    def _aliases(self) -> list[tuple[str, str]]:
        """(other name, name) of whole arrays: `z = x`, `u, v = ti.static(x, y)`, `for z in ti.static((x, y))`."""
        pairs: list[tuple[ast.expr, ast.expr]] = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    pairs += zip(_parts(target), _parts(_unwrapped(node.value)), strict=False)
            elif isinstance(node, ast.For):
                pairs += itertools.product(_parts(node.target), _parts(_unwrapped(node.iter)))
        return [(a.id, b.id) for a, b in pairs if isinstance(a, ast.Name) and isinstance(b, ast.Name)]

    def _origins(self, name: str | None) -> set[str]:
        """`name` and all names for which it may stand."""
        found: set[str] = set() if name is None else {name}
        while more := {b for a, b in self.aliases if a in found} - found:
            found |= more
        return found

    def _written_by(self, call: ast.Call) -> tuple[list[ast.expr], frozenset[str]]:
        """(expressions that a call may write, captured names that the callee writes).

        These are arrays, elements by reference, the first argument of ti.atomic_*, and a of a.fill().
        """
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if name.startswith("atomic"):
            return call.args[:1], frozenset()
        if name == "fill" and isinstance(call.func, ast.Attribute):
            return [call.func.value], frozenset()
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        arrays = [a.value if isinstance(a, ast.Starred) else a for a in arguments]
        arrays = [a for a in arrays if isinstance(a, ast.Name)]
        try:
            callee = eval(compile(ast.Expression(call.func), "<callee>", "eval"), dict(self.captured))
        except Exception:  # a method of an element, or a name that is known at compile time only
            elements = [a for a in arguments if isinstance(a, ast.Subscript) and isinstance(call.func, ast.Name)]
            return arrays + elements, frozenset()
        function = getattr(callee, "__wrapped__", None)
        if function is None:
            module = getattr(callee, "__module__", None) or "builtins"
            return ([] if module.partition(".")[0] in _HARMLESS else arrays), frozenset()
        inside = _writes_of(function, self.callers, self.known)
        captured = set(inside.captured)
        parameters = inspect.signature(function).parameters
        names = list(parameters)
        if names[:1] == ["self"]:  # a method of an object that holds fields
            names = names[1:]
            captured |= {_base_name(call.func) or "self"} if "self" in inside.parameters else set()
        passed = dict(zip(names, call.args, strict=False))
        passed |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        references = [n for n, p in parameters.items() if runtime.ti.template in (p.annotation, type(p.annotation))]
        passed = {n: a for n, a in passed.items() if isinstance(a, ast.Name) or n in references}
        written = [a for n, a in passed.items() if n in inside.parameters]
        starred = arrays if any(isinstance(a, ast.Starred) for a in call.args) else []
        return written + starred, frozenset(captured)


def _unwrapped(expression: ast.expr) -> ast.expr:
    """x of ti.static(x), and the tuple (x, y) of ti.static(x, y)."""
    if isinstance(expression, ast.Call) and getattr(expression.func, "attr", "") == "static":
        return ast.Tuple(elts=expression.args, ctx=ast.Load())
    return expression


def _parts(expression: ast.expr) -> list[ast.expr]:
    """The members of a tuple or list, to any depth; else the expression."""
    if isinstance(expression, ast.Tuple | ast.List):
        return [part for element in expression.elts for part in _parts(element)]
    return [expression]


def _base_name(expression: ast.expr) -> str | None:
    """`a` of a, a[i], a[i][j] or a[i].x."""
    while isinstance(expression, ast.Subscript | ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None
