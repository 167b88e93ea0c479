"""Mutation: a test of the checks of hand-written adjoints, which must fail if a term of a rule is dropped or flipped.

A mutant is a temporary copy of a source file with one change in one rule: a sign flipped, a term or a factor left out,
operands or branches exchanged, an accumulation or a transpose dropped. A check that passes on a mutant proves nothing
about the changed expression:

    def check(module):
        gradcheck(module.Square.apply, tensor([0.3, -1.2], requires_grad=True))

    assert not find_unnoticed(square, check)  # `square`: the module that defines Square and its kernels

`rule_changes` lists the changes. Some mutants have no effect, such as the tie of a comparison whose branches agree
there: name these, with the reason, beside the check.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import GraphError, InputError
from ..kernels.runtime import compiler, ti
from .gradcheck import GradcheckError
from .rule_changes import Change, changes

RULES = ("backward", "jvp", "x", "y", "adj_*", "jvp_*", "adjoint", "tangent")
"""Names of adjoint and tangent rules: of Functions, of `elementwise`, of element functions, of kernels."""

ERRORS: tuple[type[Exception], ...] = (
    *[AssertionError, GraphError, ValueError, IndexError],
    getattr(ti, f"{compiler.capitalize()}CompilationError"),
)
"""Errors by which a check notices a mutant: wrong values (GradcheckError is an AssertionError) and wrong shapes."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change of one rule."""

    module: ModuleType = field(repr=False)
    """Module whose file is changed."""
    rule: str
    """Dotted path in the file: `Matmul.backward`, `Mul.x` (a keyword of `elementwise`), `factory.adj_spring_force`."""
    line: int
    before: str
    after: str
    """The changed expression or statement; empty if it is left out."""
    source: bytes = field(repr=False, compare=False)
    """The whole file."""

    @property
    def change(self) -> str:
        return f"{self.before} -> {self.after or 'nothing'}"

    def __str__(self) -> str:
        return f"{self.module.__name__}:{self.line}, {self.rule}: {self.change}"


def mutants(module: ModuleType, *rules: str) -> list[Mutant]:
    """All mutants of the functions of `module` whose name or dotted path matches one of `rules` (RULES by default).

    Patterns are those of `fnmatch`. Errors: InputError for a pattern that matches no function.
    """
    path = _path(module)
    source = path.read_bytes()
    found = list(_functions(ast.parse(source)))
    chosen: dict[str, ast.FunctionDef] = {}
    for pattern in rules or RULES:
        matching = {name: node for name, node in found if _matches(name, pattern)}
        if rules and not matching:
            names = ", ".join(name for name, _ in found)
            raise InputError("mutants", f"a function of {path.name} matches {pattern!r}", names, "Name one of these.")
        chosen |= matching
    results = {}
    for rule, function in chosen.items():
        for change in changes(function):
            mutated = _replaced(source, change)  # two ways to the same are one
            results[mutated] = Mutant(
                module=module,
                rule=rule,
                line=change.node.lineno,
                before=ast.unparse(change.node),
                after=change.text,
                source=mutated,
            )
    return list(results.values())


def find_unnoticed(
    module: ModuleType,
    check: Callable[[Any], object],
    *,
    rules: Sequence[str] = (),
    package: ModuleType | None = None,
    errors: tuple[type[Exception], ...] = ERRORS,
) -> list[Mutant]:
    """Find the mutants of `module` that `check` passes; there are none if it proves every term of every rule.

    `check` receives a copy of the module (with `package`, of the whole package, as for `load_changed`), from which it
    must take the rules. For element functions that several kernels share, `package` is one that has such kernels. It
    notices a mutant by raising one of `errors`; any other error is raised. It must first pass on an unchanged copy.
    """
    with load_changed(module, _path(module).read_bytes(), package=package) as copy:
        check(copy)
    return [mutant for mutant in mutants(module, *rules) if not notices(check, mutant, package=package, errors=errors)]


def notices(
    check: Callable[[Any], object],
    mutant: Mutant,
    *,
    package: ModuleType | None = None,
    errors: tuple[type[Exception], ...] = ERRORS,
) -> bool:
    """True if `check` raises one of `errors` on the mutant; an `untrusted` gradcheck has not noticed it."""
    with load_changed(mutant.module, mutant.source, package=package) as copy:
        try:
            with np.errstate(all="ignore"):  # a mutant may divide by zero
                check(copy)
        except errors as error:
            report = error.report if isinstance(error, GradcheckError) else None
            return report is None or report.outcome == "failed"
    return False


@contextlib.contextmanager
def load_changed(module: ModuleType, source: bytes, *, package: ModuleType | None = None) -> Iterator[ModuleType]:
    """Load a second `module`, of the same package, made of `source`. Its file lasts as long as the context.

    All other modules keep the original. With `package` the whole package is loaded once more, with `source` in place of
    the module, so that its other modules use the changed one. The module lies in it, in a folder of it, or in another
    package that it imports, such as one of element functions: that one is replaced while the context lasts.
    """
    path = _path(module)
    if package is None:
        with tempfile.TemporaryDirectory() as folder:
            changed = Path(folder, path.name)
            changed.write_bytes(source)
            with _loaded(f"{module.__name__}_mutant", changed, None) as copy:
                yield copy
        return
    home = _path(package).parent
    owner = package if path.is_relative_to(home) else sys.modules.get(module.__name__.rpartition(".")[0])
    if owner is None:
        remedy = "Pass the package that holds the module, or one that uses it."
        raise InputError("load_changed", f"{module.__name__} lies in a package", package.__name__, remedy)
    with tempfile.TemporaryDirectory() as folder:
        inside = path.relative_to(_path(owner).parent)
        if len(inside.parts) > 1:
            shutil.copytree(_path(owner).parent / inside.parts[0], Path(folder, inside.parts[0]))
        Path(folder, inside).write_bytes(source)
        places = [folder, *owner.__path__]  # the changed file comes first
        name = f"{package.__name__}_mutant"
        if owner is package:
            with _loaded(name, _path(package), places) as copy:
                yield copy
        else:
            with _replacing(owner, places), _loaded(name, _path(package), list(package.__path__)) as copy:
                yield copy


@contextlib.contextmanager
def _loaded(name: str, file: Path, places: list[str] | None) -> Iterator[ModuleType]:
    """Load a file as a module, or as a package with its modules in `places`; forget all of it at the end."""
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=places)
    assert spec is not None and spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    sys.modules[name] = copy
    try:
        spec.loader.exec_module(copy)
        yield copy
    finally:
        _forget(name)
        for place in places or ():
            for known in [other for other in sys.path_importer_cache if Path(other).is_relative_to(place)]:
                del sys.path_importer_cache[known]


@contextlib.contextmanager
def _replacing(package: ModuleType, places: list[str]) -> Iterator[None]:
    """Load a package anew under its own name, with its modules in `places`; put the first one back at the end."""
    name = package.__name__
    first = _forget(name)
    above, _, last = name.rpartition(".")
    try:
        with _loaded(name, _path(package), places) as copy:
            if above:
                setattr(sys.modules[above], last, copy)
            yield
    finally:
        sys.modules |= first
        if above:
            setattr(sys.modules[above], last, package)


def _forget(name: str) -> dict[str, ModuleType]:
    """Take a package and its modules from those that are loaded, and return them."""
    return {other: sys.modules.pop(other) for other in list(sys.modules) if f"{other}.".startswith(f"{name}.")}


def _replaced(source: bytes, change: Change) -> bytes:
    """The source with the change made; the rest stays, with its comments."""
    node = change.node
    lines = source.splitlines(keepends=True)
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    last = node.end_lineno or node.lineno
    after = lines[last - 1][node.end_col_offset :] + b"".join(lines[last:])
    text = f"({change.text})" if isinstance(node, ast.expr) else change.text or "pass"
    return before + text.encode() + after


def _functions(scope: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """All functions, methods and functions in functions with their dotted paths; lambdas among keyword arguments."""
    for node in ast.iter_child_nodes(scope):
        match node:
            case ast.FunctionDef(name=name):
                yield prefix + name, node
                yield from _functions(node, f"{prefix}{name}.")
            case ast.ClassDef(name=name):
                yield from _functions(node, f"{prefix}{name}.")
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(keywords=keywords)):
                for keyword in keywords:
                    if isinstance(keyword.value, ast.Lambda):
                        yield f"{prefix}{name}.{keyword.arg}", _as_function(keyword.value)
            case _:
                yield from _functions(node, prefix)


def _as_function(rule: ast.Lambda) -> ast.FunctionDef:
    """The function that a lambda abbreviates, at the same place in the source."""
    result = ast.copy_location(ast.Return(rule.body), rule.body)
    return ast.FunctionDef("rule", rule.args, [result], [], None)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) or fnmatchcase(name.rsplit(".", 1)[-1], pattern)


def _path(module: ModuleType) -> Path:
    assert module.__file__ is not None
    return Path(module.__file__).resolve()
