"""The code blocks of docs/control.md run in order and print the output shown there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from simphys.scenefile.control import PatternSection
from simphys.scenefile.controller import ControllerSection

from .test_guide import DOCS, blocks, outputs

PAGE = DOCS / "control.md"


def test_the_page_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(PAGE.read_text()))
    assert len(chosen) == 2
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{PAGE.name}, line {block.line + 1}, prints:\n{printed}"


def test_the_sections_that_the_page_shows_are_valid() -> None:
    shown = tomllib.loads(PAGE.read_text().split("```toml\n")[1].split("```")[0])
    assert PatternSection(**shown["control"]).channels == 10
    assert ControllerSection(**shown["controller"]).hidden == 32
