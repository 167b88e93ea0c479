"""The code blocks of docs/contact.md run in order and print the output shown there; the files that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .test_guide import DOCS, blocks, outputs

PAGE = DOCS / "contact.md"


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(PAGE.read_text()))
    assert len(chosen) == 3
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{PAGE.name}, line {block.line + 1}, prints:\n{printed}"


def test_the_files_that_the_page_names_are_there() -> None:
    named = re.findall(r"simphys/\w+/\w+\.py", PAGE.read_text())
    assert named
    assert all((DOCS.parent / path).exists() for path in named)
