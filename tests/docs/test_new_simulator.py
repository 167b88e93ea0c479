"""The code blocks of docs/new_simulator.md run in order and print the output shown; it has the promised length."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .test_guide import DOCS, blocks, outputs

TUTORIAL = DOCS / "new_simulator.md"


def test_the_tutorial_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(TUTORIAL.read_text()))
    assert len(chosen) > 10
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{TUTORIAL.name}, line {block.line + 1}, prints:\n{printed}"


def test_the_simulator_takes_60_lines() -> None:
    """Without imports, what documents the fields, and the checks."""
    simulator = TUTORIAL.read_text().partition("## What comes for free")[0]
    written = [block.source for block in blocks(simulator) if "print(" not in block.source]
    lines = [line.strip() for line in "\n".join(written).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("from ", "import ", '"""'))]
    assert 50 < len(lines) <= 65


def test_the_links_of_the_tutorial_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", TUTORIAL.read_text())
    assert len(targets) >= 3
    for target in targets:
        assert (DOCS / target).exists(), target
