"""A fit that is interrupted, killed or out of disk: nothing is lost, and resuming ends bitwise as without it."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from simphys.record import Recording

from ..helpers import oscillator
from ..helpers.interrupts import heed_interrupts
from ..helpers.oscillator import assert_same_fit, simphys
from ..helpers.printed import table_rows

ITERATIONS = 200
FIT = ["optimizer.method=adam", "optimizer.learning_rate=1e-4", f"optimizer.iterations={ITERATIONS}", "time.dt=5e-4"]
"""It runs for all its iterations."""
PROGRAM = f"""
import time
from simphys.app import cli, report
from simphys.record import recorder

recorder.FLUSH_SECONDS = 0.0
update = report.FitProgress.update

def update_and_wait(self, record):
    update(self, record)
    if record.index >= {ITERATIONS // 2}:
        time.sleep(600)

report.FitProgress.update = update_and_wait
cli.main()
"""
"""The command line, with every evaluation on disk at once. It goes halfway, and waits there for the signal."""


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simphys.plot.all_figures", lambda recording, folder: [])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the same fit, without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simphys.plot.all_figures", lambda recording, folder: [])
        result = simphys("optimize", oscillator.write(folder), *FIT, f"output.folder={folder / 'run'}")
    assert result.exit_code == 1 and f"iteration limit: stopped after {ITERATIONS}" in result.stdout
    return folder / "run"


def stop_by(number: signal.Signals, scene: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Fit in another process that gets a signal once it has recorded some iterations."""
    command = [sys.executable, "-c", PROGRAM, "optimize", str(scene), *FIT, f"output.folder={folder}"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None and recorded(folder) < 10:
            time.sleep(0.005)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def recorded(folder: Path) -> int:
    """Count the iterations that can be read."""
    if not (folder / "run.h5").exists():
        return 0
    recording = Recording(folder)
    return len(recording["iterations/index"]) if "iterations" in recording else 0


def test_ctrl_c_tells_the_best_so_far_and_resume_ends_as_without_it(tmp_path: Path, whole: Path) -> None:
    scene, folder = oscillator.write(tmp_path), tmp_path / "run"
    stopped = stop_by(signal.SIGINT, scene, folder)
    assert stopped.returncode == 130
    rows = {name: row for name, *row in table_rows(stopped.stdout)}
    unit, start, _, error, *_ = rows["rate"]
    assert (unit, start, error) == ("N/m", "30", "-")
    assert re.search(r"\ninterrupted\nloss \S+ after \d+ iterations, \d+ evaluations\n$", stopped.stdout)
    assert f"The evaluations so far are recorded in {folder}: --resume continues." in stopped.stderr
    assert "Traceback" not in stopped.stderr
    done = recorded(folder)
    assert 10 <= done < ITERATIONS
    found = Recording(folder)
    assert found.attrs("unknowns")["status"] == "interrupted"
    assert found.attrs("unknowns")["loss"] == found["iterations/loss"].min()
    resumed = simphys("optimize", scene, *FIT, f"output.folder={folder}", "--resume")
    assert resumed.exit_code == 1 and f"stopped after {ITERATIONS}" in resumed.stdout
    assert_same_fit(folder, whole)


def test_after_kill_9_resume_ends_as_without_it(tmp_path: Path, whole: Path) -> None:
    scene, folder = oscillator.write(tmp_path), tmp_path / "run"
    assert stop_by(signal.SIGKILL, scene, folder).returncode == -signal.SIGKILL
    done = recorded(folder)
    assert 10 <= done < ITERATIONS
    assert np.array_equal(Recording(folder)["iterations/loss"], Recording(whole)["iterations/loss"][:done])
    simphys("optimize", scene, *FIT, f"output.folder={folder}", "--resume")
    assert_same_fit(folder, whole)


def test_a_fit_by_least_squares_on_a_growing_horizon_resumes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = oscillator.write(tmp_path)
    growing = ["optimize", str(scene), "optimizer.horizon=growing"]
    assert simphys(*growing, f"output.folder={tmp_path / 'whole'}").exit_code == 0
    count = recorded(tmp_path / "whole")
    for number in (1, count - 1):
        iterations = iter(range(number))

        def interrupt(*_: object, iterations: Iterator[int] = iterations) -> None:
            if next(iterations, None) is None:
                raise KeyboardInterrupt

        folder = tmp_path / str(number)
        with monkeypatch.context() as patch:
            patch.setattr("simphys.app.report.FitProgress.update", interrupt)
            stopped = simphys(*growing, f"output.folder={folder}")
        assert stopped.exit_code == 130 and "\ninterrupted\n" in stopped.stdout
        assert simphys(*growing, f"output.folder={folder}", "--resume").exit_code == 0
        assert_same_fit(folder, tmp_path / "whole")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[Path, Callable[[], object]]]:
    """A folder on a disk of 80 kB, and what makes the disk larger."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=80k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode == 0:
        yield disk, lambda: subprocess.check_call(["mount", "-o", "remount,size=9m", str(disk)])
        subprocess.run(["umount", str(disk)], check=True)
        return
    # Without the right to mount: no file may grow past a size, which fails in the same call, by another number.
    earlier = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (15_000, earlier[1]))
    yield disk, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, earlier)
    resource.setrlimit(resource.RLIMIT_FSIZE, earlier)


def test_a_full_disk_is_told_and_when_there_is_room_again_resume_ends_as_without_it(
    tmp_path: Path, small_disk: tuple[Path, Callable[[], object]], whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, (disk, enlarge) = oscillator.write(tmp_path), small_disk
    fit = ["optimize", str(scene), *FIT, f"output.folder={disk / 'run'}"]
    with monkeypatch.context() as patch:
        patch.setattr("simphys.record.recorder.FLUSH_SECONDS", 0.0)  # every evaluation takes room
        stopped = simphys(*fit)
    assert (stopped.exit_code, stopped.stdout) == (1, "")
    message = stopped.stderr.splitlines()[-1]
    assert message.startswith(str(disk / "run"))
    assert re.search(r"cannot be written \(.*\): .*\. What was recorded before is safe in .*run\.h5: \d+ rows", message)
    assert message.endswith("Free some space there or choose another output.folder, then resume.")
    done = recorded(disk / "run")
    assert done > 10
    losses = Recording(whole)["iterations/loss"]
    assert np.array_equal(Recording(disk / "run")["iterations/loss"], losses[:done])
    enlarge()
    assert f"stopped after {ITERATIONS}" in simphys(*fit, "--resume").stdout
    assert_same_fit(disk / "run", whole)
