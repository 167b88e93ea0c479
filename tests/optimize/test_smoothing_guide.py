"""The code blocks of docs/smoothing.md run in order and print the output shown there."""

from __future__ import annotations

import re
from pathlib import Path

from ..docs.test_guide import DOCS, blocks, outputs

TEXT = DOCS / "smoothing.md"


def test_the_text_prints_what_it_shows(tmp_path: Path) -> None:
    chosen = list(blocks(TEXT.read_text()))
    assert len(chosen) == 2
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{TEXT.name}, line {block.line + 1}, prints:\n{printed}"


def test_its_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", TEXT.read_text())
    assert len(targets) == 3
    assert all(target.startswith("https://") or (DOCS / target).exists() for target in targets)
