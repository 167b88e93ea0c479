"""The code blocks of new_simulator.md, patterns.md and engines.md print the output shown; the first has its length."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .test_guide import DOCS, blocks, outputs

TUTORIAL = DOCS / "new_simulator.md"
PATTERNS = DOCS / "patterns.md"
ENGINES = DOCS / "engines.md"


@pytest.mark.parametrize(
    ("page", "least"), [(TUTORIAL, 11), (PATTERNS, 7), (ENGINES, 2)], ids=["new_simulator", "patterns", "engines"]
)
def test_a_page_prints_what_it_shows(page: Path, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(page.read_text()))
    assert len(chosen) >= least
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{page.name}, line {block.line + 1}, prints:\n{printed}"


def test_the_simulator_takes_50_lines_and_its_scenes_five() -> None:
    """Without imports, what documents the fields, and the checks."""
    simulator, _, rest = TUTORIAL.read_text().partition("## What comes for free")
    assert 40 < count_lines(simulator) <= 50
    assert 1 < count_lines(rest.partition("## A scene file")[2].partition("## A second example")[0]) <= 5


def count_lines(text: str) -> int:
    written = [block.source for block in blocks(text) if "print(" not in block.source]
    lines = [line.strip() for line in "\n".join(written).splitlines()]
    return len([line for line in lines if line and not line.startswith(("from ", "import ", '"""'))])


def test_the_links_of_the_tutorial_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", TUTORIAL.read_text())
    assert len(targets) >= 3
    for target in targets:
        assert (DOCS / target).exists(), target
