"""The code of docs/gpu.md runs, its commands name scenes that ship, and `info --counters` counts on a GPU alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simphys.app.cli import app
from simphys.autograd import runtime

from .test_guide import DOCS, blocks, outputs

PAGE = DOCS / "gpu.md"


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (printed,) = outputs(list(blocks(PAGE.read_text())), tmp_path)
    assert printed.startswith("Counters(launches=0, tasks=0, uploads=0,")


def test_the_scenes_of_the_page_are_there() -> None:
    named = re.findall(r"scenes/\S+\.toml", PAGE.read_text())
    assert named and all((DOCS.parent / path).exists() for path in named)


def test_nothing_is_counted_on_the_processor() -> None:
    scene = str(DOCS.parent / "scenes/pendulum/swing.toml")
    found = CliRunner().invoke(app, ["info", scene, "--counters"])
    assert found.exit_code == 2 and "found runtime.arch = cpu. Add runtime.arch=gpu" in found.stderr
    found = CliRunner().invoke(app, ["info", "--counters"])
    assert found.exit_code == 2 and "needs a scene" in found.stderr


@pytest.mark.skipif(not runtime.available("vulkan"), reason="no Vulkan driver")
@pytest.mark.gpu
def test_the_work_of_a_scene_is_counted() -> None:
    scene = str(DOCS.parent / "scenes/pendulum/swing.toml")
    settings = ["runtime.arch=vulkan", "runtime.precision=f32"]
    found = CliRunner().invoke(app, ["info", scene, *settings, "--counters"], env={"COLUMNS": "120"})
    assert found.exit_code == 0, found.stderr
    assert "simulation" in found.stdout and "gradient" in found.stdout and "MiB at most" in found.stdout
