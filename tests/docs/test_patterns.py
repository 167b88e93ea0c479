"""The code blocks of docs/patterns.md run in order and print the output shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_guide import DOCS, blocks, outputs

PAGE = DOCS / "patterns.md"


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(PAGE.read_text()))
    assert len(chosen) > 6
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{PAGE.name}, line {block.line + 1}, prints:\n{printed}"
