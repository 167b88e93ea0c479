"""The order of the files and folders of autograd: each imports only those above it in the list, without circles."""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "simphys.autograd"
FOLDER = Path(__file__).resolve().parents[2] / "autograd"

LAYERS = [
    *["_guard", "errors", "mode"],
    "kernels",
    *["node", "tensor", "context", "function", "rules", "graph"],
    "ops",
    "compose",
    *["look", "proof", "bridges"],
]
"""Files and folders, from those that import nothing of the package to those that may import all others."""

HEAVY = {"matplotlib", "torch"}
"""Packages that may be imported inside a function, so that `import simphys` stays quick."""


@functools.cache
def sources() -> dict[str, Path]:
    """The file of each module, by its name within the package; a folder's __init__.py by that of the folder."""
    found = {}
    for path in sorted(FOLDER.rglob("*.py")):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(module: str) -> Iterator[str]:
    """The modules of the package that a module imports anywhere: at its top, in a function, for types only."""
    path = sources()[module]
    name = f"{PACKAGE}.{module}".rstrip(".")
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            targets = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            continue
        for target in targets:
            if target.startswith(f"{PACKAGE}."):
                inside = target.removeprefix(f"{PACKAGE}.")
                yield inside if inside in sources() else inside.rpartition(".")[0]


def layer(module: str) -> int:
    return LAYERS.index(module.partition(".")[0])


def test_the_list_names_every_file_and_folder() -> None:
    assert {module.partition(".")[0] for module in sources() if module} == set(LAYERS)


def test_imports_go_up_the_list() -> None:
    strays = [
        f"{module} imports {target}"
        for module in sources()
        if module
        for target in imports(module)
        if layer(target) > layer(module)
    ]
    assert not strays


def test_look_proof_and_bridges_do_not_import_each_other() -> None:
    ends = ("look", "proof", "bridges")
    pairs = {(module.partition(".")[0], target.partition(".")[0]) for module in sources() for target in imports(module)}
    assert not [(a, b) for a, b in pairs if a in ends and b in ends and a != b]


def test_no_circle_of_imports() -> None:
    """Modules without imports of remaining modules are removed repeatedly; a circle would remain."""
    left = {module: set(imports(module)) - {module} for module in sources()}
    while free := [module for module, targets in left.items() if not targets & left.keys()]:
        for module in free:
            del left[module]
    assert not left


def test_imports_inside_functions_are_of_heavy_packages_only() -> None:
    strays = []
    for module, path in sources().items():
        tree = ast.parse(path.read_text())
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for node in {node for function in functions for node in ast.walk(function)}:
            match node:
                case ast.Import(names=names):
                    imported = {alias.name.partition(".")[0] for alias in names}
                case ast.ImportFrom(module=source, level=0):
                    imported = {str(source).partition(".")[0]}
                case ast.ImportFrom():
                    imported = {PACKAGE}
                case _:
                    continue
            strays += [f"{module}, line {node.lineno}: {name}" for name in imported - HEAVY]
    assert not strays
