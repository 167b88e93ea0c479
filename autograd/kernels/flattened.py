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
from .records import RecordType, leaves

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


def flatten(function: Callable[..., Any], parameters: Mapping[str, Any]) -> Callable[..., Any]:
    """A function with one parameter for each field; `parameters` are the types of those of `function`."""
    names = identifiers(parameters)
    makers: dict[str, Any] = {"_static": ti.static}
    records = {name: kind for name, kind in parameters.items() if isinstance(kind, RecordType)}
    bindings = [f"{name} = _static({_made(name, kind, names, makers)})" for name, kind in records.items()]
    code = _compiled(function, f"def {function.__name__}({', '.join(names.values())}):", "; ".join(bindings))
    captured = inspect.getclosurevars(function).nonlocals
    space: dict[str, Any] = {}
    exec(code, {**function.__globals__, **captured, **makers}, space)
    flat = space[function.__name__]
    kinds = {name: kind for name, kind in parameters.items() if name not in records}
    for name, kind in records.items():
        kinds |= dict(leaves(name, kind))
    flat.__annotations__ = {identifier: kinds[dotted] for dotted, identifier in names.items()}
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
