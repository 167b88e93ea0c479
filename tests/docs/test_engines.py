"""docs/engines.md shows kernels as the command prints them, and its tables have all attributes."""

from __future__ import annotations

import inspect
import re
import sys
from types import FunctionType

import pytest

from simphys.substep.pattern import Pattern
from simphys.substep.scope import Scope

from ..helpers.oscillator import simphys
from .test_guide import DOCS

TEXT = (DOCS / "engines.md").read_text()


def read_table(head: str) -> set[str]:
    """List the words in the first column of a table."""
    (rows,) = re.findall(rf"^\| {head} \| meaning \|\n(.*?)\n\n", TEXT, re.DOTALL | re.MULTILINE)
    return {name for row in rows.split("\n")[1:] for name in re.findall(r"`(\w+)", row.split(" | ")[0])}


def test_the_kernels_of_the_example_are_those_that_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS / "examples")
    monkeypatch.setattr(sys, "path", list(sys.path))
    printed = simphys("kernels", "tanks.toml").stdout
    shown = re.findall(r"^```text\n(.*?)^```", TEXT.partition("## Program")[0], re.DOTALL | re.MULTILINE)
    assert len(shown) == 2
    assert all(part in printed for part in shown)


def test_the_table_of_patterns_has_all_their_attributes() -> None:
    drawn = {name for name, kind in vars(Pattern).items() if not isinstance(kind, FunctionType | type)}
    drawn |= set(Pattern.__annotations__) | set(
        re.findall(r"self\.(\w+)[\w, .:]* = ", inspect.getsource(Pattern.__init__))
    )
    assert read_table("attribute of a `Pattern`") == {name for name in drawn if not name.startswith("_")}


def test_the_table_of_scopes_has_all_their_states() -> None:
    found = read_table("state of a `Scope`")
    assert found - {"wants", "moves", "is_zero"} == {name for name in vars(Scope(gathers=True)) if name[0] != "_"}
    assert all(hasattr(Scope, name) for name in ("wants", "moves", "is_zero"))
