"""docs/api.md lists the public names, and its examples print what they show."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import simphys

from .test_guide import DOCS, blocks, outputs

PAGE = DOCS / "api.md"


def test_dir_lists_the_public_names_and_nothing_else() -> None:
    public = [
        "Recording",
        "Scene",
        "__version__",
        "autograd",
        "check",
        "identify",
        "load_scene",
        "optimize",
        "plot",
        "rollout",
        "simulate",
        "sweep",
    ]
    assert dir(simphys) == public == simphys.__all__
    for name in public:
        assert getattr(simphys, name) is not None
    with pytest.raises(AttributeError, match="module 'simphys' has no attribute 'Any'"):
        simphys.Any  # noqa: B018


def test_the_page_describes_every_public_name() -> None:
    text = PAGE.read_text()
    table = re.findall(r"^\| \[?`(\w+)`", text.partition("## load_scene")[0], re.MULTILINE)
    assert sorted(table) == dir(simphys)
    sections = re.findall(r"^## (\w+)$", text, re.MULTILINE)
    assert {*sections, "__version__"} == set(table)


def test_the_examples_print_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DOCS / "examples", tmp_path / "docs/examples")
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(PAGE.read_text()))
    assert len(chosen) == 14
    for block, printed in zip(chosen, outputs(chosen, tmp_path), strict=True):
        assert block.agrees_with(printed), f"{PAGE.name}, line {block.line + 1}, prints:\n{printed}"


def test_the_links_of_the_page_lead_somewhere() -> None:
    text = PAGE.read_text()
    sections = {f"#{title.lower()}" for title in re.findall(r"^## (\w+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert target in sections or (DOCS / target).exists(), target
