"""Ctrl-C at any moment of a command, on a terminal: exit status 130, no traceback, the terminal as it was."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from ..helpers import oscillator
from ..helpers.interrupts import heed_interrupts

pty = pytest.importorskip("pty", reason="terminals of this kind are those of POSIX")

LONG = ["optimizer.method=adam", "optimizer.learning_rate=1e-4", "optimizer.iterations=100000", "time.dt=5e-4"]
SWEEP = f"""\
scene = "scene.toml"
folder = "sweep"
overrides = {LONG}
[grid]
"material.drag" = {{ low = 0.1, high = 1.0, count = 8 }}
"""
COMMANDS = {
    "optimize": ["optimize", "scene.toml", *LONG],
    "assess": ["assess", "scene.toml", *LONG],
    "run": ["run", "long.toml"],
    "check": ["check", "scene.toml", "time.dt=1e-4"],
    "sweep": ["sweep", "sweep.toml"],
}
PROGRAM = """
import signal
from simphys.app import entry

signal.signal(signal.SIGINT, entry._leave)  # as main() does first of all, but before the word that starts the clock
print("begin", flush=True)
entry.main()
"""


class Ending(NamedTuple):
    """How an interrupted command ended."""

    status: int
    text: str
    left: list[str]
    """Processes of its session that live on."""


def interrupt(arguments: list[str], folder: Path, after: float) -> Ending:
    """Run a command on a terminal of its own; press Ctrl-C, which all its processes get, `after` [s]."""
    terminal, its_end = pty.openpty()
    before = termios.tcgetattr(its_end)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=its_end,
        stdout=its_end,
        stderr=its_end,
        start_new_session=True,
        cwd=folder,
        preexec_fn=heed_interrupts,
    )
    text, pressed, deadline, until = b"", False, time.monotonic() + 120, float("inf")
    while process.poll() is None or select.select([terminal], [], [], 0.1)[0]:
        if select.select([terminal], [], [], 0.02)[0]:
            text += os.read(terminal, 1 << 16)
            until = min(until, time.monotonic() + after)
        if not pressed and time.monotonic() > until:
            os.killpg(process.pid, signal.SIGINT)
            pressed = True
        if time.monotonic() > deadline:
            process.kill()
    assert termios.tcgetattr(its_end) == before
    for end in (terminal, its_end):
        os.close(end)
    deadline = time.monotonic() + 60
    while (left := find_living(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return Ending(process.returncode, text.decode(errors="replace"), left)


def find_living(session: int) -> list[str]:
    """List the processes of a session that live."""
    return subprocess.run(["pgrep", "-s", f"{session}", "-r", "D,R,S"], capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("after", [0.05, 3.0])
def test_ctrl_c_at_any_moment_ends_a_command_in_silence(name: str, after: float, tmp_path: Path) -> None:
    oscillator.write(tmp_path)
    (tmp_path / "long.toml").write_text(oscillator.SIMULATION.replace("steps = 50", "steps = 100000000"))
    (tmp_path / "sweep.toml").write_text(SWEEP.replace("'", '"'))
    ended = interrupt(COMMANDS[name], tmp_path, after)
    assert ended.status == 130 and "interrupted" in ended.text.lower()
    assert "Traceback" not in ended.text
    assert ended.text.rfind("\x1b[?25l") <= ended.text.rfind("\x1b[?25h")  # the cursor is shown again
    assert not ended.left


def test_an_interrupted_assessment_goes_on_with_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = oscillator.write(tmp_path)
    arguments = ["assess", str(scene), f"output.folder={tmp_path / 'run'}", "--seconds", "1"]

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("simphys.plot.all_figures", lambda recording, folder: [])
    with monkeypatch.context() as patch:
        patch.setattr("simphys.app.assessment.try_starts", stop)
        stopped = oscillator.simphys(*arguments)
    assert stopped.exit_code == 130
    assert f"What there is of the fit is recorded in {tmp_path / 'run_assessed'}: --resume continues." in stopped.stderr
    assert oscillator.simphys(*arguments).exit_code == 2
    resumed = oscillator.simphys(*arguments, "--resume")
    assert resumed.exit_code in (0, 3) and "starts tried" in resumed.stdout
