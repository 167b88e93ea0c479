"""The code blocks of docs/tutorials, docs/concepts.md and docs/fitting.md run in order, and print what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_guide import DOCS, blocks, outputs

TUTORIALS = [DOCS / "concepts.md", DOCS / "fitting.md", *sorted((DOCS / "tutorials").glob("*.md"))]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == "controller":
        pytest.importorskip("torch", reason="the tutorial is about PyTorch")
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(path.read_text()))
    assert len(chosen) >= 3
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{path.name}, line {block.line + 1}, prints:\n{printed}"
