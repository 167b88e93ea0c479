"""The layout: folders in an order, no circles; one module imports the kernel compiler; `import simphys` is light."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simphys.autograd import runtime

ROOT = Path(__file__).resolve().parents[1]
COMPILERS = ("taichi", "quadrants")
ORDER = [
    "_version",
    "autograd",
    "numerics",
    "simulator",
    "substep",
    "rollout",
    "nn",
    "files",
    "scenefile",
    "optimize",
    "record",
    "simulators",
    "experiment",
    "diagnose",
    "assess",
    "runs",
    "plot",
    "report",
    "view",
    "app",
    "",
]
"""The folders of the package, from the ground up; "" is `simphys` itself, which only names what is public."""
LATE = {"simphys.app.entry.main"}
"""Functions that import modules of ours when they are called; commands name theirs by way of simphys/app/late.py."""
HEAVY = {"scipy", "pydantic", "typer", "rich", "h5py", "matplotlib", "jinja2"}


@functools.cache
def sources() -> dict[str, Path]:
    """Map import names to the modules of the project; a package's __init__.py has the name with `.__init__`."""
    files = {("simphys.autograd", path, ROOT / "autograd") for path in (ROOT / "autograd").rglob("*.py")}
    link = ROOT / "simphys" / "autograd"
    files |= {
        ("simphys", path, ROOT / "simphys")
        for path in (ROOT / "simphys").rglob("*.py")
        if not path.is_relative_to(link)
    }
    return {".".join((name, *path.relative_to(base).with_suffix("").parts)): path for name, path, base in files}


def imported(module: str, code: ast.AST) -> Iterator[str]:
    """List the absolute names that `code` of `module` imports anywhere: at its top, in a function, or for types."""
    package = module.rpartition(".")[0]
    for node in ast.walk(code):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                base = importlib.util.resolve_name("." * level + (source or ""), package)
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Call(
                func=ast.Name("import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(str(name)), *_],
            ):
                yield importlib.util.resolve_name(name, package)


def folder(name: str) -> str:
    """Return the folder of a module, "" for `simphys` itself."""
    parts = name.removesuffix(".__init__").split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ORDER else ""


@functools.cache
def modules() -> frozenset[str]:
    """Return every module and package by its import name."""
    return frozenset([module.removesuffix(".__init__") for module in sources()])


def target(name: str) -> str:
    """Return the module that an imported name lies in."""
    while name not in modules() and "." in name:
        name = name.rpartition(".")[0]
    return name


def circles(graph: dict[str, list[str]]) -> list[list[str]]:
    """Find the strongly connected components of several modules."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    nodes = sorted(graph)
    place = {node: index for index, node in enumerate(nodes)}
    arrows = [(place[a], place[b]) for a in nodes for b in graph[a] if b in place and a != b]
    rows, columns = zip(*arrows, strict=True)
    matrix = coo_matrix((np.ones(len(arrows)), (rows, columns)), shape=(len(nodes), len(nodes)))
    count, label = connected_components(matrix, directed=True, connection="strong")
    found = [[node for node in nodes if label[place[node]] == each] for each in range(count)]
    return [each for each in found if len(each) > 1]


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def simulators() -> list[str]:
    """List the packages of simulators."""
    folders = sorted((ROOT / "simphys" / "simulators").iterdir())
    return [f"simphys.simulators.{folder.name}" for folder in folders if (folder / "__init__.py").exists()]


class Module(NamedTuple):
    """Imports of a module."""

    names: list[str]
    """Absolute names that it imports anywhere."""
    late: set[str]
    """Functions that import modules of ours when they are called."""


@functools.cache
def read_modules() -> dict[str, Module]:
    """Read each module once, when a test needs it, not at collection; trees of all would fill memory."""
    return {module: read(module, ast.parse(path.read_text())) for module, path in sources().items()}


def read(module: str, code: ast.Module) -> Module:
    """Find the imports of a module."""
    functions = [node for node in ast.walk(code) if isinstance(node, ast.FunctionDef)]
    late = {
        f"{module}.{function.name}"
        for function in functions
        for statement in function.body
        if not isinstance(statement, ast.FunctionDef)  # such a one is in the list itself
        if any(within(name, "simphys") for name in imported(module, statement))
    }
    return Module(sorted(set(imported(module, code))), late)


def imports() -> dict[str, list[str]]:
    """Absolute names that each module imports anywhere."""
    return {module: found.names for module, found in read_modules().items()}


def test_the_readme_lists_the_folders_in_their_order() -> None:
    layout = (ROOT / "README.md").read_text().partition("## Layout")[2]
    assert ["autograd", *re.findall(r"`simphys/(\w+)/`", layout)] == [
        name for name in ORDER if name not in ("_version", "")
    ]


def test_imports_are_found_in_every_form() -> None:
    code = "import a.b\nfrom .c import d\ndef f():\n    from .. import e\n    importlib.import_module('g')"
    assert sorted(imported("simphys.x.y", ast.parse(code))) == ["a.b", "g", "simphys.e", "simphys.x.c.d"]


def test_a_folder_uses_only_what_stands_above_it() -> None:
    """Types count, and so do imports inside functions."""
    strays = [
        f"{module} imports {name}"
        for module, names in imports().items()
        for name in names
        if within(name, "simphys") and ORDER.index(folder(name)) > ORDER.index(folder(module))
    ]
    assert not strays


def test_every_folder_has_its_place_in_the_order() -> None:
    folders = {path.name for path in (ROOT / "simphys").iterdir() if (path / "__init__.py").exists()}
    assert folders == set(ORDER) - {"_version", ""}
    assert {path.name for path in (ROOT / "simphys").glob("*.py")} == {"__init__.py", "__main__.py", "_version.py"}


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module.removesuffix(".__init__"): [target(name) for name in names] for module, names in imports().items()}
    assert circles(graph) == []


def test_imports_inside_functions_are_few_and_have_a_reason() -> None:
    """`import simphys` and `simphys --help` stay quick."""
    assert set().union(*[found.late for found in read_modules().values()]) == LATE


def test_simulators_never_import_each_other() -> None:
    assert simulators()
    strays = [
        f"{module} imports {name}"
        for simulator in simulators()
        for module, names in imports().items()
        if within(module, simulator)
        for name in names
        for other in simulators()
        if other != simulator and within(name, other)
    ]
    assert not strays


def test_nothing_but_tables_by_name_refers_to_a_single_simulator() -> None:
    strays = [
        f"{module} imports {name}"
        for simulator in simulators()
        for module, names in imports().items()
        if not within(module, simulator)
        for name in names
        if within(name, simulator)
    ]
    assert not strays


def test_only_the_runtime_imports_the_kernel_compiler() -> None:
    strays = [
        f"{module} imports {name}"
        for module, names in imports().items()
        if module != "simphys.autograd.kernels.runtime"
        for name in names
        for compiler in COMPILERS
        if within(name, compiler)
    ]
    assert not strays


def test_importing_the_package_loads_no_heavy_library() -> None:
    """Check heavy packages, except those that the kernel compiler itself imports, as quadrants does pydantic.

    It is imported as simphys.autograd imports it, without torch; `import simphys` alone loads no compiler at all.
    """
    script = (
        f"import sys, simphys; print(*sorted(({HEAVY!r} | {set(COMPILERS)!r}) & set(sys.modules)))\n"
        f"sys.modules['torch'] = None; import {runtime.compiler}; before = set(sys.modules)\n"
        f"import simphys.autograd; print(*sorted({HEAVY!r} & (set(sys.modules) - before)))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [line for line in loaded.stdout.splitlines() if not line.startswith("[Quadrants]")] == ["", ""]
