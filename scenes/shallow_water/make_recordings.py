"""Make the files beside this script: the depth of a model harbour, and what gauges read of the waves in it.

The motion is the simulator's own, of the scene with the values below: none is known otherwise. Each of the gauges reads
25 times a second, at its own cell, to 0.2 mm.

    python scenes/shallow_water/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from simphys import scenefile as config
from simphys.autograd import no_grad, tensor
from simphys.experiment.scene import build_scene

HERE = Path(__file__).parent

FRICTION = 0.024
"""c_f of the bottom."""
DEPTH = 0.046
"""Of the inner basin [m]."""
NOISE = 2e-4
"""Standard deviation of a measured elevation [m]."""
GAUGES = [(6, 4), (14, 19), (22, 11), (27, 5), (32, 20), (37, 9)]
"""Their cells."""


def depth() -> np.ndarray:
    """Of the bottom as surveyed [m]: a channel leads over a sill to the inner basin, given as it was built."""
    x, y = 0.1 * (np.indices((40, 24)) + 0.5)
    outer = 0.09 + 0.05 * np.exp(-(((y - 0.9 - 0.2 * x) / 0.4) ** 2)) - 0.03 * np.exp(-(((x - 2.0) / 0.3) ** 2))
    return np.where(x < 2.4, outer, 0.055)


def readings(random: np.random.Generator) -> np.ndarray:
    """Rows of time and what all gauges read."""
    loaded = config.load(HERE / "harbour.toml", [f"medium.friction={FRICTION}"])
    made = build_scene(loaded.model_copy(update={"observations": None}))
    bottom = made.params.depth.data.copy()
    bottom[24:] = DEPTH
    with no_grad():
        motion = made.rollout(made.params.replace(depth=tensor(bottom)))
    seen = np.stack([motion.elevation.data[:, i, j] for i, j in GAUGES], axis=1)
    time = made.dt * np.arange(made.steps + 1)
    return np.column_stack([time, seen + NOISE * random.standard_normal(seen.shape)])[1:]


def main(folder: Path) -> None:
    np.savetxt(folder / "harbour_depth.txt", depth(), fmt="%6.4f", header="m: a row along y for each x", comments="% ")
    rows = readings(np.random.default_rng(1834))
    names = " ".join(f"gauge{i}" for i in range(len(GAUGES)))
    formats = ["%5.2f"] + ["%8.5f"] * len(GAUGES)
    np.savetxt(folder / "harbour.txt", rows, fmt=formats, header=f"time {names}", comments="% ")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
