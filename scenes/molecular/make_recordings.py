"""Make what the scene beside this script measures: argon at three temperatures, with other noise than the scene's own.

python scenes/molecular/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np

from simphys import scenefile
from simphys.autograd import no_grad, tensor
from simphys.experiment.scene import build_scene
from simphys.rollout import rollout

HERE = Path(__file__).parent
TRUTH = {"epsilon": 0.996, "sigma": 0.3405}
"""Depth [kJ/mol] and diameter [nm] of argon, Rahman 1964."""
REALIZATIONS = 24


def record(folder: Path) -> None:
    """Write argon.txt: a row for each temperature, the mean over realizations of the noise."""
    data = tomllib.loads((HERE / "argon.toml").read_text())
    temperatures = [each["values"]["temperature"]["value"] for each in data["experiments"]]
    for section in ("unknowns", "loss", "observations", "check", "optimizer", "experiments"):
        data.pop(section, None)
    data["runtime"] = {"threads": 2}
    made = build_scene(scenefile.from_dict(data))
    params = made.params.replace(**{name: tensor(value) for name, value in TRUTH.items()})
    rows = []
    for trial, temperature in enumerate(temperatures):
        found = []
        for seed in range(REALIZATIONS):
            model = replace(made.model, seed=100 + seed)
            hot = params.replace(temperature=tensor(temperature))
            with no_grad():
                final = rollout(model, hot, made.state, steps=made.steps, keep="final").final
            found.append([final.thermo.data[1], *final.rdf.data])
        spread = np.std(found, axis=0, ddof=1)
        print(f"{temperature}: spread of pressure {spread[0]:.2f}, of the distribution {spread[1:].max():.3f}")
        rows.append([trial, made.steps * made.model.dt, *np.mean(found, axis=0)])
    count = len(rows[0]) - 3
    header = f"trial, time [ps], pressure [kJ/(mol nm^3)], radial distribution function in {count} bins"
    np.savetxt(folder / "argon.txt", rows, fmt=["%d", "%.2f", "%.4f"] + ["%.5f"] * count, header=header)


if __name__ == "__main__":
    record(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
