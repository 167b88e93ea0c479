"""Make what the scene beside this script measures: a dam of particles at half the distance, with noise.

python scenes/sph/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np

from simphys import scenefile
from simphys.autograd import no_grad
from simphys.experiment.scene import build_scene
from simphys.rollout import rollout

HERE = Path(__file__).parent
FINER = 2
NOISE = 3e-4
FRAME = 0.01


def record(folder: Path) -> None:
    """Write dam.csv: the depth at each gauge [m], in frames 10 ms apart."""
    data = tomllib.loads((HERE / "dam.toml").read_text())
    truth = {name: unknown["truth"] for name, unknown in data["unknowns"].items()}
    for section in ("unknowns", "observations", "check", "optimizer"):
        data.pop(section, None)
    data["simulator"]["spacing"] /= FINER
    data["time"]["dt"] /= FINER
    data["material"] |= truth
    made = build_scene(scenefile.from_dict(data))
    with no_grad():
        depth = rollout(made.model, made.params, made.state, steps=made.steps).states.depth.data
    rows = np.arange(0, made.steps + 1, round(FRAME / made.model.dt))
    seen = depth[rows] + NOISE * np.random.default_rng(23).standard_normal((len(rows), depth.shape[1]))
    header = ",".join(["time", *[f"depth at {1000 * place:g} mm" for place in made.model.gauges]])
    table = np.column_stack([rows * made.model.dt, seen])[1:]
    np.savetxt(folder / "dam.csv", table, fmt="%.5f", delimiter=",", header=header, comments="")


if __name__ == "__main__":
    record(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
