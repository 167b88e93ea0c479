"""Imports go one way, one module alone imports the kernel compiler, and `import simphys` stays light."""

from __future__ import annotations

import ast
import functools
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from simphys.autograd import runtime

ROOT = Path(__file__).resolve().parents[1]
COMPILERS = ("taichi", "quadrants")
HEAVY = {"scipy", "pydantic", "typer", "rich", "h5py", "matplotlib"}


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


def imported(module: str, code: str) -> Iterator[str]:
    """List the absolute names that `code` of `module` imports anywhere: at its top, in a function, or for types."""
    package = module.rpartition(".")[0]
    for node in ast.walk(ast.parse(code)):
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


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def simulators() -> list[str]:
    """List the packages of simulators."""
    folders = sorted((ROOT / "simphys" / "simulators").iterdir())
    return [f"simphys.simulators.{folder.name}" for folder in folders if (folder / "__init__.py").exists()]


@functools.cache
def imports() -> dict[str, list[str]]:
    """Imports of each module; read when a test needs them, not at collection."""
    return {module: sorted(set(imported(module, path.read_text()))) for module, path in sources().items()}


def test_imports_are_found_in_every_form() -> None:
    code = "import a.b\nfrom .c import d\ndef f():\n    from .. import e\n    importlib.import_module('g')"
    assert sorted(imported("simphys.x.y", code)) == ["a.b", "g", "simphys.e", "simphys.x.c.d"]


def test_autograd_knows_nothing_of_the_rest() -> None:
    strays = [
        f"{module} imports {name}"
        for module, names in imports().items()
        if within(module, "simphys.autograd")
        for name in names
        if within(name, "simphys") and not within(name, "simphys.autograd")
    ]
    assert not strays


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


def test_only_the_list_of_simulators_and_their_own_sections_import_any() -> None:
    strays = [
        f"{module} imports {name}"
        for simulator in simulators()
        for module, names in imports().items()
        if not within(module, simulator)
        and module not in ("simphys.scenefile.simulators", simulator.replace(".simulators.", ".scenefile."))
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


@pytest.mark.parametrize("module", ["simphys", "simphys.autograd"])
def test_importing_the_package_loads_no_heavy_library(module: str) -> None:
    """Check heavy packages, except those that the kernel compiler itself imports, as quadrants does pydantic."""
    script = (
        f"import sys, {runtime.compiler}; before = set(sys.modules)\n"
        f"import {module}; print(*sorted({HEAVY!r} & (set(sys.modules) - before)))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
