"""Long simulations are written while they run, in little memory, and readable whatever ends them."""

from __future__ import annotations

import math
import re
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys as api
from simphys import plot
from simphys.app.report import RunProgress
from simphys.experiment.scene import Scene
from simphys.record import Recorder, Recording
from simphys.runs import motion

from .helpers import oscillator
from .helpers.interrupts import heed_interrupts
from .helpers.oscillator import simphys
from .helpers.small_scenes import soft_square

POSITION = "particles/nodes/position"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set blocks of seven states of the square."""
    monkeypatch.setattr("simphys.runs.motion.BLOCK_BYTES", 7 * 192)


def square(folder: Path, **output: Any) -> Scene:
    return soft_square(time={"steps": 300}, output={"folder": str(folder / "run"), **output})


@pytest.mark.parametrize("every", [1, 5, 7, 400])
def test_what_is_recorded_does_not_depend_on_the_blocks(every: int, tmp_path: Path, small_blocks: None) -> None:
    scene = square(tmp_path, every=every)
    assert motion.count_block_steps(scene) == 7
    run = api.simulate(scene)
    np.testing.assert_array_equal(run[f"{POSITION}/step"], np.arange(0, 301, every))
    np.testing.assert_array_equal(run[f"{POSITION}/time"], np.arange(0, 301, every) * scene.dt)
    np.testing.assert_array_equal(run[f"{POSITION}/value"], scene.rollout().position.data[::every])
    assert run.attrs("motion") == {"status": "completed", "message": "completed", "steps": 300}


def test_predictions_are_made_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from .helpers.small_scenes import oscillator as glider

    scene = glider(tmp_path / "seen.txt")
    monkeypatch.setattr("simphys.runs.motion.BLOCK_BYTES", 1)
    run = api.simulate(scene)
    np.testing.assert_array_equal(run["fit/predicted"], scene.predict(scene.rollout()).data)


def test_ctrl_c_leaves_what_was_simulated(tmp_path: Path, small_blocks: None) -> None:
    scene = square(tmp_path)

    def on_progress(step: int, steps: int) -> None:
        assert steps == 300
        if step >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.simulate(scene, folder=tmp_path / "run", on_progress=on_progress)
    run = Recording(tmp_path / "run")
    assert run.attrs("motion")["status"] == "interrupted"
    count = len(run[f"{POSITION}/step"])
    assert run.attrs("motion")["steps"] == count - 1
    assert 101 <= count < 301
    np.testing.assert_array_equal(run[f"{POSITION}/value"], scene.rollout().position.data[:count])
    figure = plot.trajectory(run)
    assert figure.get_suptitle() == f"interrupted after {(count - 1) * scene.dt:.3g} s"


def test_an_interrupt_between_blocks_leaves_what_was_simulated(
    tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    extend, calls = Recorder.extend, iter(range(10))

    def interrupted(*arguments: Any, **options: Any) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        extend(*arguments, **options)

    monkeypatch.setattr("simphys.record.Recorder.extend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        api.simulate(square(tmp_path), folder=tmp_path / "run")
    assert (
        len(Recording(tmp_path / "run")[f"{POSITION}/value"]) == 1 + 10 * 7
    )  # the start, and ten blocks of two fields


def test_memory_is_that_of_some_blocks_however_long_the_motion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a run with 29 MB of states, in blocks of 0.2 MB and segments of 1 MB on disk."""
    monkeypatch.setattr("simphys.runs.motion.BLOCK_BYTES", 200_000)
    monkeypatch.setattr("simphys.record.recorder.SEGMENT_BYTES", 1 << 20)
    changes: dict[str, Any] = {"geometry": {"lattice": {"shape": [30, 30], "spacing": 0.5}}, "state": None}
    scene = soft_square(**changes, time={"steps": 1000}, output={"folder": str(tmp_path / "run")})
    extend, add = Recorder.extend, motion._Motion.add
    pending, states = [], []
    alive: list[weakref.ref[Any]] = []

    def extend_counted(self: Recorder, *arguments: Any, **options: Any) -> None:
        extend(self, *arguments, **options)
        pending.append(self._pending_bytes)

    def add_counted(self: Any, steps: Any, block: dict[str, Any]) -> None:
        alive.extend([weakref.ref(values) for values in block.values()])
        held = [values for values in [found() for found in alive] if values is not None]
        states.append(sum([values.nbytes for values in held]))
        add(self, steps, block)

    monkeypatch.setattr(Recorder, "extend", extend_counted)
    monkeypatch.setattr(motion._Motion, "add", add_counted)
    run = api.simulate(scene, folder=tmp_path / "run")
    assert np.prod(run.shape(f"{POSITION}/value")) * 16 > 28e6
    assert len(states) > 100 and max(states) <= 2 * 200_000
    assert max(pending) < 1 << 20
    last = run.thinned(f"{POSITION}/value", 1000)[-1]
    np.testing.assert_array_equal(last, scene.rollout().final.position.data)


def test_pictures_of_a_long_motion_read_a_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = api.simulate(square(tmp_path))
    monkeypatch.setattr("simphys.plot.style.FRAME_NUMBERS", 12 * 100)
    time, value = plot.style.frames(run, f"{POSITION}/time", f"{POSITION}/value")
    np.testing.assert_array_equal(time, run[f"{POSITION}/time"][::4])
    np.testing.assert_array_equal(value, run[f"{POSITION}/value"][::4])
    plot.trajectory(run)


FLUSHING = "import simphys.record.recorder as r, simphys.app.cli as c; r.FLUSH_SECONDS = 0.0; c.main()"
"""Program that runs the command line, and writes every block to disk at once."""


def count_rows(folder: Path) -> int:
    """Count the positions that can be read."""
    if not (folder / "run.h5").exists():
        return 0
    run = Recording(folder)
    return len(run[f"{POSITION}/value"]) if f"{POSITION}/value" in run else 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, "interrupted"), (signal.SIGKILL, None)])
def test_a_run_that_is_stopped_or_killed_can_be_drawn(
    number: signal.Signals, status: str | None, tmp_path: Path
) -> None:
    scene, folder = tmp_path / "scene.toml", tmp_path / "run"
    scene.write_text(oscillator.SIMULATION)
    long = ["time.steps=100_000_000", "output.every=1000", f"output.folder={folder}"]
    command = [sys.executable, "-c", FLUSHING, "run", str(scene), *long]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None and count_rows(folder) <= 10:
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    run = Recording(folder)
    assert len(run[f"{POSITION}/value"]) > 10
    if status is None:
        assert process.returncode == -signal.SIGKILL and "motion" not in run
    else:
        assert process.returncode == 130 and "Traceback" not in err
        assert f"Interrupted. The motion so far is recorded: `simphys plot {folder}` draws it." in err
        assert run.attrs("motion")["status"] == status
    assert simphys("plot", folder).exit_code == 0


def test_progress_tells_the_time_left(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simphys.app.report.LOG_SECONDS", math.inf)
    with RunProgress(0.01) as short:
        short.update(10, 100)
    assert capsys.readouterr().err == ""  # as in a log file, which a short run does not fill
    monkeypatch.setattr("simphys.app.report.LOG_SECONDS", 0.0)
    with RunProgress(0.01) as long:
        long.update(25, 100)
    assert re.fullmatch(r"step 25/100  t = 0.25 s  25%  \d+ s left\n", capsys.readouterr().err)
