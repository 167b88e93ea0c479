"""The sweep that docs/sweeps.md shows is the one that ships, and its Python example runs."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import pytest

from ..helpers.oscillator import simphys
from .test_guide import DOCS, blocks, outputs

PAGE = DOCS / "sweeps.md"
SWEEP = DOCS / "examples" / "spring_sweep.toml"


def test_the_file_that_the_page_shows_is_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = tomllib.loads(PAGE.read_text().split("```toml\n")[1].split("```")[0])
    assert {key: value for key, value in shown.items() if key != "overrides"} == tomllib.loads(SWEEP.read_text())
    monkeypatch.chdir(tmp_path)
    done = simphys("sweep", SWEEP, "--dry-run")
    assert done.exit_code == 0 and done.stdout.startswith("6 members of ")
    assert "geometry.anchors.0.stiffness: 3 values, 20.0, 34.6" in done.stdout


def test_the_command_prints_and_draws_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = simphys("sweep", SWEEP)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("converged") == 6
    left = {path.name for path in (tmp_path / "runs/spring_sweep").iterdir()}
    assert left >= {"table.csv", "response.png", "members"}


def test_the_python_example_finds_one_minimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DOCS / "examples", tmp_path / "docs/examples")
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(PAGE.read_text()))
    (printed,) = outputs(chosen, tmp_path)
    assert printed.count("40.0") == 4
