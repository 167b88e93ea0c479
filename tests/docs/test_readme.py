"""The README's scripts run in order and write nothing but pictures; its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from simphys.app.cli import app
from simphys.experiment.scene import load_scene
from simphys.scenefile import load, to_dict

from .test_guide import blocks, outputs

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
SECTIONS = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


def test_the_scripts_run_and_write_nothing_but_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scenes").symlink_to(ROOT / "scenes")
    monkeypatch.chdir(tmp_path)
    chosen = list(blocks(SECTIONS["In a script"]))
    assert len(chosen) == 2
    printed = list(outputs(chosen, tmp_path))
    assert re.search(r"^stiffness 6\.34\d* \+- 0\.00014 1/s\^2$", printed[0], re.MULTILINE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["guide.py", "pictures", "scenes"]
    assert {path.name for path in Path("pictures").iterdir()} >= {"fit.png", "convergence.png", "adjoint.png"}
    assert f"# {printed[1].strip()}\n" in chosen[1].source


def test_the_table_lists_every_command() -> None:
    listed = re.findall(r"^\| `simphys ([\w-]+)", SECTIONS["The command line"], re.MULTILINE)
    assert sorted(listed) == sorted(get_command(app).commands)  # type: ignore[attr-defined]


def test_the_scenes_of_commands_exist_and_a_second_run_in_a_folder_overwrites_the_first() -> None:
    pages = [TEXT, *[(ROOT / "docs" / f"{name}.md").read_text() for name in ("gallery", "growing_horizon")]]
    commands = re.findall(r"`?(simphys (?:optimize|run|check) scenes/[^`\n]*)", "\n".join(pages))
    assert len(commands) > 8
    seen = set()
    for command in commands:
        scene, *options = command.split()[2:]
        assert (ROOT / scene).exists(), scene
        if options and "observations.file=PATH" not in options:
            assert (scene not in seen) or "--overwrite" in options, command
        seen.add(scene)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "command_line.md"])
@pytest.mark.filterwarnings("error")
def test_overrides_that_are_shown_change_something_in_the_scenes_that_they_are_shown_for(page: Path) -> None:
    found = re.findall(r"simphys (?:run|optimize) (scenes/\S+) ([^`\n]*=[^`\n]*)", page.read_text())
    assert found
    for scene, options in found:
        given = [each for each in options.split() if "=" in each and "PATH" not in each]
        before, after = (to_dict(load(ROOT / scene, each)) for each in ((), given))
        assert not given or before != after


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_scene_for_ones_own_recording_finds_the_spring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (scene,) = re.findall(r"^```toml\n(.*?)^```", SECTIONS["Your own recording"], re.DOTALL | re.MULTILINE)
    Path("spring.toml").write_text(scene)
    stiffness, drag = 40.0, 0.3
    t = 0.01 * np.arange(100)
    rate = np.sqrt(stiffness - drag**2 / 4)
    x = 0.2 * np.exp(-drag / 2 * t) * (np.cos(rate * t) + drag / (2 * rate) * np.sin(rate * t))
    x += 0.002 * np.random.default_rng(0).normal(size=t.size)
    Path("film.csv").write_text(
        "time, position\n" + "\n".join([f"{a:.3f}, {b:.5f}" for a, b in zip(t, x, strict=True)])
    )
    found = CliRunner().invoke(app, ["optimize", "spring.toml"])
    assert found.exit_code == 0, found.output
    fitted = load_scene("runs/spring/fitted.toml")
    assert abs(float(fitted.params.stiffness.data[0]) - stiffness) < 0.2
    assert Path("runs/spring/values.csv").exists()


def test_the_layer_by_itself_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = blocks(SECTIONS["The autograd layer by itself"])
    list(outputs([block], tmp_path))
