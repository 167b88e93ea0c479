"""A mass on a spring, measured with noise: a scene that is fitted in half a second, and the command line run on it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from simphys.app.cli import app
from simphys.record import Recording

STIFFNESS, DRAG, NOISE = 40.0, 0.3, 0.002

SCENE = """\
title = "A mass on a spring"

[simulator]
name = "mass_spring"
integrator = "velocity_verlet"

[time]
dt = 2e-3

[geometry]
position = [[0.2]]

[[geometry.anchors]]
node = 0
point = [0.0]
stiffness = 30.0

[material]
drag = 0.2

[unknowns.rate]
parameter = "stiffness"
transform = "log"
unit = "N/m"

[unknowns.drag]
parameter = "drag"
entries = [0]
bounds = [0, inf]
unit = "1/s"

[observations]
file = "data.txt"
time = 0

[[observations.channels]]
column = 1
field = "position"
node = 0
unit = "m"
sigma = 0.002
"""

SIMULATION = SCENE.partition("[unknowns")[0].replace("dt = 2e-3", "dt = 2e-3\nsteps = 50")
"""The same without unknowns and measurement."""


def write(folder: Path) -> Path:
    """The scene and its measurement in a folder; returns the scene's path."""
    times = np.arange(100) * 0.01
    rate = np.sqrt(STIFFNESS - DRAG**2 / 4)
    motion = np.cos(rate * times) + DRAG / (2 * rate) * np.sin(rate * times)
    measured = 0.2 * np.exp(-DRAG / 2 * times) * motion + NOISE * np.random.default_rng(0).normal(size=times.size)
    lines = [f"{time:.4f} {value:.6f}" for time, value in zip(times, measured, strict=True)]
    (folder / "data.txt").write_text("% time position\n" + "\n".join(lines) + "\n")
    path = folder / "scene.toml"
    path.write_text(SCENE)
    return path


def simphys(*arguments: str | Path) -> Result:
    """The command line, in this process: exit_code, stdout and stderr. An error that is no exit is raised."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def assert_same_fit(folder: Path, other: Path) -> None:
    """Bitwise: what was found, and every iteration and evaluation on the way."""
    one, two = Recording(folder), Recording(other)
    tables = [group for group in datasets(two) if group.startswith(("unknowns", "iterations", "evaluations"))]
    assert len(tables) > 10
    assert [group for group in datasets(one) if group.startswith(("unknowns", "iterations", "evaluations"))] == tables
    for name in tables:
        assert one[name].tobytes() == two[name].tobytes(), name
    assert one.attrs("unknowns") == two.attrs("unknowns")


def datasets(recording: Recording, group: str = "") -> list[str]:
    """The paths of all datasets below a group."""
    names = [f"{group}/{name}".lstrip("/") for name in recording.keys(group)]
    return [path for name in names for path in (datasets(recording, name) or [name])]
