"""Make the measurements beside this script: what a camera sees of a squeezed block of gel, and a shape of pressed clay.

The motions are the simulator's own, of the scenes with the values below: none is known otherwise. The camera's pictures
are uneven in time and noisy: about 100 a second, good to 0.2 mm, which is 1 % of the farthest that a mark goes.
The clay's shape is told as its density on the grid of the scene's loss.

    python scenes/mpm/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from simphys import scenefile as config
from simphys.autograd import no_grad
from simphys.experiment.density import Cells, Density
from simphys.experiment.scene import Scene, build_scene

HERE = Path(__file__).parent

SQUEEZE = {"young_modulus": 12000.0, "poisson_ratio": 0.38}
"""[Pa], and a number."""
NOISE = 2e-4
"""Standard deviation of a measured position [m]."""
MARKS = [24 * column + row for column in (2, 9, 16, 22, 29) for row in (5, 13, 21)]
"""Particles of the block, of 32 columns of 24 each, that are marked."""

TOOL = [[-0.25, -0.07, 0], [-0.25, -0.2, 0], [0.25, 0.0, 0], [0.35, 0.0, 0], [0.0, 0.2, 0], [0.0, 0.2, 0]]
"""Velocity [m/s] and spin of the tool that gave the clay its shape, at the scene's knots."""


def scene(name: str, *overrides: str) -> Scene:
    """A scene without its measurement and loss, which are not there yet."""
    loaded = config.load(HERE / f"{name}.toml", overrides)
    return build_scene(loaded.model_copy(update={"observations": None, "loss": config.LossSection()}))


def squeeze(random: np.random.Generator) -> np.ndarray:
    """Rows of time and the positions of all marks."""
    made = scene("squeeze", *[f"bodies.0.{name}={value}" for name, value in SQUEEZE.items()])
    with no_grad():
        marks = made.rollout().position.data[:, MARKS].reshape(made.steps + 1, -1)
    regular = (np.arange(60) + 0.5) / 100
    time = np.round(regular + random.uniform(-2e-3, 2e-3, regular.size), 3)
    along = made.dt * np.arange(made.steps + 1)
    seen = np.stack([np.interp(time, along, mark) for mark in marks.T], axis=1)
    return np.column_stack([time, seen + NOISE * random.standard_normal(seen.shape)])


def press() -> np.ndarray:
    """The density that the tool leaves."""
    made = scene("press", f"control.value={TOOL}")
    term = config.load(HERE / "press.toml").loss.terms[0]
    assert term.kind == "final_density"
    cells = Cells(tuple(term.cells), term.spacing, tuple(term.origin or ()))
    with no_grad():
        found: np.ndarray = Density.apply(cells, made.rollout().final.position, made.params.mass).data
    return found


def main(folder: Path) -> None:
    random = np.random.default_rng(1687)
    names = " ".join(f"{axis}{mark}" for mark in MARKS for axis in "xy")
    formats = ["%5.3f"] + ["%8.5f"] * (2 * len(MARKS))
    rows = squeeze(random)
    np.savetxt(folder / "squeeze.txt", rows, fmt=formats, header=f"time {names}", comments="% ")
    np.savetxt(folder / "press.txt", press(), fmt="%7.1f", header="kg/m^2: a row along y for each x", comments="% ")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
