"""Docstrings begin with a noun or an imperative verb, which says at once what a thing is or does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("simphys", "autograd")
FORBIDDEN = re.compile(r"(What|Who|Of|Where|How|Whether|Which|See)\b")


def files() -> list[Path]:
    """List the Python files of the package; the symbolic link simphys/autograd is skipped."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in found if path.relative_to(ROOT).parts[:2] != ("simphys", "autograd")]


def is_public(name: str) -> bool:
    """True for names without an underscore in front, and for special methods."""
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def assigned_names(node: ast.stmt) -> list[str]:
    """Names that a statement assigns to: variables, and attributes such as self.name."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in parts]


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def public_docstrings(body: list[ast.stmt], *, owned: bool = True) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of the public docstrings in a body; `owned`: its first string belongs to a public name."""
    for place, node in enumerate(body):
        if is_docstring(node):
            before = body[place - 1] if place else None
            public = owned if before is None else any(map(is_public, assigned_names(before)))
            if public:
                yield node.lineno, node.value.value  # type: ignore[attr-defined]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if is_public(node.name):
                yield from public_docstrings(node.body)
        elif isinstance(node, ast.If | ast.Try):
            yield from public_docstrings(node.body, owned=False)


def offenders(path: Path) -> list[str]:
    """List the public docstrings of a file with a forbidden first word, as FILE:LINE: TEXT."""
    name = path.relative_to(ROOT)
    tree = ast.parse(path.read_text())
    found = [(line, text.strip()) for line, text in public_docstrings(tree.body)]
    return [f"{name}:{line}: {text.splitlines()[0]}" for line, text in found if FORBIDDEN.match(text)]


def test_public_docstrings_begin_with_a_noun_or_an_imperative_verb() -> None:
    wrong = [line for path in files() for line in offenders(path)]
    assert not wrong, "\n".join(
        ["docstrings that begin with What, Who, Of, Where, How, Whether, Which or See:", *wrong]
    )


def test_offenders_are_found_in_modules_classes_functions_and_attributes(tmp_path: Path) -> None:
    text = '''
"""Of a module."""
LIMIT = 1
"""How large it may be."""
_hidden = 1
"""What nobody reads."""

class Thing:
    """Whether it is one."""

    size: int
    """Where it ends."""

    def __init__(self) -> None:
        """See above."""
        self.width = 1
        """Which width."""

def good() -> None:
    """Howl at the moon."""

def _private() -> None:
    """Who cares."""
'''
    lines = [line for line, found in public_docstrings(ast.parse(text).body) if FORBIDDEN.match(found)]
    assert lines == [2, 4, 9, 12, 15, 17]
