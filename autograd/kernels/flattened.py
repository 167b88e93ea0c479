"""The source of a kernel with records, as the compiler takes it: one parameter for each field.

A parameter list must be text. The generated text lies in the cache of source lines, at the lines of the original, in a
file whose name leads to the same one. Messages of the compiler thus name the user's file and line.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import os
import textwrap
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, cast

from . import runtime
from .records import RecordType, View, leaves

ti = runtime.ti


def identifiers(parameters: Mapping[str, Any]) -> dict[str, str]:
    """An identifier for each dotted name in a parameter list: `s_k` for `s.k`, unless another parameter has it."""
    names: dict[str, str] = {}
    for name, kind in parameters.items():
        for dotted in [leaf for leaf, _ in leaves(name, kind)] if isinstance(kind, RecordType) else [name]:
            identifier = dotted.replace(".", "_")
            while identifier in names.values() or (identifier in parameters and identifier != dotted):
                identifier += "_"
            names[dotted] = identifier
    return names


def flatten(
    function: Callable[..., Any], parameters: Mapping[str, Any], packed: Mapping[str, int] | None = None
) -> Callable[..., Any]:
    """A function with one parameter for each field; `parameters` are the types of those of `function`.

    Arrays in `packed` (dotted name -> number of a group) are views of the group's array, a parameter before all others.
    Each has its first index as a parameter in its place.
    """
    names, groups = identifiers(parameters), dict(packed or {})
    kinds: dict[str, Any] = {}
    for name, kind in parameters.items():
        kinds |= dict(leaves(name, kind)) if isinstance(kind, RecordType) else {name: kind}
    arrays = {f"_group_{group}": kinds[dotted] for dotted, group in groups.items()}
    taken = {dotted: f"_start_{name}" if dotted in groups else name for dotted, name in names.items()}
    values = {n: f"_view(_group_{groups[n]}, {taken[n]})" if n in groups else taken[n] for n in names}
    makers: dict[str, Any] = {"_static": ti.static, "_view": View.without_copy}
    bindings = []
    for name, kind in parameters.items():
        if isinstance(kind, RecordType):
            bindings.append(f"{name} = _static({_made(name, kind, values, makers)})")
        elif name in groups:
            bindings.append(f"{name} = _static({values[name]})")
    heading = f"def {function.__name__}({', '.join([*arrays, *taken.values()])}):"
    code = _compiled(function, heading, "; ".join(bindings))
    captured = inspect.getclosurevars(function).nonlocals
    space: dict[str, Any] = {}
    exec(code, {**function.__globals__, **captured, **makers}, space)
    flat = space[function.__name__]
    own = {identifier: ti.i32 if dotted in groups else kinds[dotted] for dotted, identifier in taken.items()}
    flat.__annotations__ = arrays | own
    flat.__module__, flat.__qualname__ = function.__module__, function.__qualname__
    return cast(Callable[..., Any], flat)


def _made(name: str, kind: RecordType, names: Mapping[str, str], makers: dict[str, Any]) -> str:
    """The expression that makes a record of the parameters that are its fields."""
    maker = f"_{kind.name}_{len(makers)}"
    makers[maker] = kind
    parts = []
    for field, inner in kind.fields.items():
        dotted = f"{name}.{field}"
        parts.append(
            f"{field}={_made(dotted, inner, names, makers) if isinstance(inner, RecordType) else names[dotted]}"
        )
    return f"{maker}({', '.join(parts)})"


def _compiled(function: Callable[..., Any], heading: str, binding: str) -> CodeType:
    """Compile the body of a function under another heading, at the lines of the original."""
    lines, start = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    assert isinstance(tree, ast.FunctionDef), "a kernel is a function"
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    if body and body[0].lineno > tree.lineno:
        first = body[0].lineno - 1
        inside = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
        rest = lines[first:]
    else:  # on the line of the heading, or none
        first, inside = 1, margin + "    "
        rest = [f"{inside}{ast.unparse(statement)}\n" for statement in body]
    first += start - 1  # number of lines of the file before the body
    missing = max(2 - first, 0)  # of a body at the very top
    text = [f"{margin}{heading}\n", f"{inside}{binding}\n", *rest]
    file = _store(inspect.getsourcefile(function) or function.__code__.co_filename, first + missing - 2, text)
    before = "\n" * (first + missing - 2)
    return compile(before + textwrap.dedent("".join(text)), file, "exec")


def _store(file: str, before: int, text: list[str]) -> str:
    """Put lines into the cache of source lines, after `before` others; return the name of their file."""
    folder, base = os.path.split(file)
    for number in itertools.count(1):
        name = os.path.join(folder, *["."] * number, base)
        if name not in linecache.cache:
            linecache.cache[name] = (0, None, [], name)
        lines = linecache.getlines(name)  # the list itself
        lines += ["\n"] * (before + len(text) - len(lines))
        place = slice(before, before + len(text))
        if lines[place] == text or not any(line.strip() for line in lines[place]):
            lines[place] = text
            return name
    raise AssertionError("names are many")
