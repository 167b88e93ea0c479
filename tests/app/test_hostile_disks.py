"""Names that no file can have, a disk that fills, a folder that vanishes: each command says so, and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simphys.app.sweep import sweep
from simphys.autograd.errors import InputError, StorageError
from simphys.record import Recording

from ..helpers import oscillator
from ..helpers.oscillator import simphys

LONG = "x" * 4000


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simphys.plot.all_figures", lambda recording, folder: [])


@pytest.mark.parametrize("name", ["with space ünï ₿ 𝄞", "-dash [brackets]$\\x\n\"quote'", "a" * 200])
def test_any_name_that_a_file_may_have_is_fine(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    scene = oscillator.write(folder).rename(folder / f"{name}.toml")
    run = folder / f"{name}.run"
    assert simphys("optimize", scene, f"output.folder={run}").exit_code == 0
    assert simphys("report", run, "-o", folder / f"{name}.html").exit_code == 0
    assert simphys("export", run, "--to", "npz", "-o", folder / "out").exit_code == 0
    assert {path.name for path in folder.iterdir()} >= {f"{name}.html", f"{name}.run", "out"}


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            [name, LONG]
            for name in ("plot", "report", "export", "check", "run", "optimize", "assess", "graph", "health")
        ),
        *([name, LONG] for name in ("info", "list", "new", "schema", "sweep")),
        ["compare", LONG, LONG],
        ["optimize", "scene.toml", f"output.folder={LONG}"],
        ["optimize", "scene.toml", f"observations.file={LONG}"],
        ["run", "scene.toml", f"{LONG}=1"],
    ],
    ids=lambda given: " ".join(given)[:30],
)
def test_a_name_of_4000_characters_is_refused_in_a_short_message(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    oscillator.write(tmp_path)
    result = simphys(*arguments)
    assert result.exit_code in (1, 2)
    assert 20 < len(result.stderr) < 3000 and "x ... x" in result.stderr


def test_a_null_byte_in_the_output_folder_is_refused(tmp_path: Path) -> None:
    result = simphys("optimize", oscillator.write(tmp_path), "output.folder=a\0b")
    assert result.exit_code == 2 and "must be a folder that can be written" in result.stderr


def test_python_is_told_so_by_input_errors() -> None:
    with pytest.raises(InputError, match=r"recording x.*: must be a path; found File name too long"):
        Recording(LONG)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk that is full."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.name == "nt" or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a disk")
    (disk / "rest").write_bytes(bytes(56 << 10))
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_each_command_that_writes_says_that_the_disk_is_full(tmp_path: Path, full: Path) -> None:
    scene, run = oscillator.write(tmp_path), tmp_path / "run"
    assert simphys("optimize", scene, f"output.folder={run}").exit_code == 0
    commands: list[list[Any]] = [
        ["report", run, "-o", full / "r.html"],
        *(["export", run, "--to", kind, "-o", full / kind] for kind in ("csv", "npz", "vtkhdf")),
        ["schema", full / "s.json"],
        ["optimize", scene, f"output.folder={full / 'fit'}"],
        ["assess", scene, f"output.folder={full / 'assessed'}"],
        ["run", scene, f"output.folder={full / 'motion'}"],
    ]
    for command in commands:
        result = simphys(*map(str, command))
        assert result.exit_code == 1, command
        assert "No space left on device" in result.stderr or "file write failed" in result.stderr
        assert "ree some space" in result.stderr or "free space" in result.stderr


def test_a_sweep_on_a_full_disk_has_the_reason_in_its_error(tmp_path: Path, full: Path) -> None:
    scene = tmp_path / "swing.toml"
    scene.write_text(oscillator.SIMULATION)
    tables = {"scene": str(scene), "do": "run", "folder": str(full / "sweep"), "engine": {"kind": "serial"}}
    with pytest.raises(StorageError, match=r"No space left on device|cannot be made"):
        sweep({**tables, "grid": {"material.drag": [0.01 * n for n in range(40)]}})


@pytest.mark.parametrize("what", ["run", "run/segments"])
def test_a_folder_that_vanishes_while_it_is_recorded_is_named(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, folder, shown = oscillator.write(tmp_path), tmp_path / "run", []
    monkeypatch.setattr("simphys.record.recorder.FLUSH_SECONDS", 0.0)

    def update(self: object, record: object) -> None:
        shown.append(record)
        if len(shown) == 3:
            shutil.rmtree(tmp_path / what)

    monkeypatch.setattr("simphys.app.report.FitProgress.update", update)
    result = simphys("optimize", scene, f"output.folder={folder}")
    assert result.exit_code == 1
    assert f"somebody has removed or moved files of {folder} while the run was recorded" in result.stderr
