"""No parameter list and no list of arguments by position is longer than 12: what belongs together is one record.

And no function is longer than 60 lines: a factory of kernels' functions makes those of one subject.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LONGEST = 12
"""Largest number of parameters that are not keyword-only, and of arguments by position in a call."""

MOST_LINES = 60
"""Largest number of lines of a function."""

EXCEPTIONS: tuple[str, ...] = ()
"""Files in simphys/simulators that are not yet within it, to be taken off this list one by one."""


def count(arguments: Iterable[ast.expr]) -> int:
    """Count arguments by position; `*f(a, b)` and `*(a, b)` are two, `*values` is one."""
    total = 0
    for argument in arguments:
        inside = argument.value if isinstance(argument, ast.Starred) else None
        if isinstance(inside, ast.Call):
            total += count(inside.args)
        elif isinstance(inside, ast.Tuple | ast.List):
            total += count(inside.elts)
        else:
            total += 1
    return total


def is_element(node: ast.FunctionDef) -> bool:
    """Tell if a declaration passes a function its arguments by name: an element function, or its rule."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any([name == "element" or name.endswith((".adjoint", ".tangent")) for name in decorators])


class Long(NamedTuple):
    """Places in a file where something is too long."""

    lists: list[str]
    functions: list[str]


@functools.cache
def read(path: Path) -> Long:
    """Find the places in a file with too many parameters or arguments, and its functions with too many lines."""
    nodes, name = list(ast.walk(ast.parse(path.read_text()))), path.relative_to(ROOT)
    return Long(
        [f"{name}:{place}" for place in long_lists(nodes)], [f"{name}: {each}" for each in long_functions(nodes)]
    )


def long_lists(nodes: Iterable[ast.AST]) -> list[str]:
    """List the lines with too many parameters or arguments."""
    found = []
    for node in nodes:
        length = 0
        if isinstance(node, ast.FunctionDef) and is_element(node):
            continue
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            length = len(node.args.posonlyargs) + len(node.args.args)
        elif isinstance(node, ast.Call):
            length = count(node.args)
        if length > LONGEST:
            found.append(f"{getattr(node, 'lineno', 0)} has {length}")
    return found


def long_functions(nodes: Iterable[ast.AST]) -> list[str]:
    """List the functions with too many lines."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    lengths = [
        (function.name, (function.end_lineno or function.lineno) - function.lineno + 1) for function in functions
    ]
    return [f"{name} has {lines}" for name, lines in lengths if lines > MOST_LINES]


def list_files(*folders: str) -> list[Path]:
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in files if (ROOT / "simphys" / "autograd") not in path.parents]  # a link


def test_lists_are_short_but_in_files_that_are_listed() -> None:
    found = {path: read(path).lists for path in list_files("autograd", "simphys")}
    listed = {ROOT / "simphys" / "simulators" / name for name in EXCEPTIONS}
    assert listed <= found.keys(), "a file that is listed does not exist"
    assert not [place for path, places in found.items() if path not in listed for place in places]
    assert not [path for path in listed if not found[path]], "these are within it: take them off the list"


def test_functions_are_short() -> None:
    assert not [each for path in list_files("autograd", "simphys", "benchmarks") for each in read(path).functions]
