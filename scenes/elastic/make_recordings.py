"""Make what the scenes beside this script are about: the section to be found, and its shots.

The shots are simulated on a grid of half the spacing, with a third of the time step and differences of order 8, so that
the inversion does not know its data's own errors, and noise is added. The section is a function of the place: a
weathered layer, deeper in a channel, on firmer ground. The start is what a survey knows: speeds that grow with depth.

    python scenes/elastic/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from simphys import scenefile as config
from simphys.autograd import no_grad
from simphys.experiment.scene import build_scene
from simphys.rollout import rollout

HERE = Path(__file__).parent
EVERY = 4
"""A sample is taken at every so many steps of the scene: 2.4 ms, of waves up to about 90 Hz."""
FINER = 3
"""Steps of the data by one of the scene, odd: readings are half a step before the states, which then coincide."""
NOISE = 0.01
"""Standard deviation of the noise, as part of the standard deviation of all samples."""
NEAR = 3.0
"""Receivers nearer to a shot than this [m] are left out: there the grid itself is heard."""


def ground(x: np.ndarray, z: np.ndarray) -> dict[str, np.ndarray]:
    """vp and vs [m/s] at a place [m]."""
    base = 7 + 1.0 * np.sin(2 * np.pi * x / 70) + 6 * np.exp(-(((x - 66) / 10) ** 2))
    firm = 0.5 + 0.5 * np.tanh((z - base) / 0.8)
    deep = 0.5 + 0.5 * np.tanh((z - 19 - 0.03 * (x - 60)) / 0.8)
    return {"vs": 200 + 120 * firm + 70 * deep, "vp": 420 + 260 * firm + 200 * deep}


def start(x: np.ndarray, z: np.ndarray) -> dict[str, np.ndarray]:
    """The speeds that a survey begins with [m/s]."""
    rise = np.clip(z / 24, 0, 1) + 0 * x
    return {"vs": 215 + 160 * rise, "vp": 460 + 380 * rise}


def places(cells: Sequence[int], spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """x [n, 1] and z [1, m] of the middles of all cells."""
    return spacing * (np.arange(cells[0])[:, None] + 0.5), spacing * (np.arange(cells[1])[None, :] + 0.5)


def main(folder: Path) -> None:
    """section_vp.npy, section_vs.npy, section_start_vp.npy, section_start_vs.npy and section_shots.h5."""
    folder.mkdir(parents=True, exist_ok=True)
    data = tomllib.loads((HERE / "section.toml").read_text())
    for section in ("unknowns", "loss", "observations", "check"):
        del data[section]
    grid, time = data["grid"], data["time"]
    for name, made in (("section", ground), ("section_start", start)):
        for field, values in made(*places(grid["cells"], grid["spacing"])).items():
            np.save(folder / f"{name}_{field}.npy", values.astype(np.float32))
    every, interval = FINER * EVERY, EVERY * time["dt"]
    grid |= {"cells": [2 * n for n in grid["cells"]], "spacing": grid["spacing"] / 2, "layer": 2 * grid["layer"]}
    time |= {"dt": time["dt"] / FINER, "steps": FINER * time["steps"]}
    data["simulator"]["order"] = 8
    with tempfile.TemporaryDirectory() as scratch:
        for field, values in ground(*places(grid["cells"], grid["spacing"])).items():
            np.save(Path(scratch) / f"{field}.npy", values)
            data["medium"][field] = {"file": str(Path(scratch) / f"{field}.npy")}
        made = build_scene(config.from_dict(data))
    with no_grad():
        motion = rollout(
            made.model, made.params, made.state, steps=made.steps, control=made.control(), fields=["received"]
        )
    sampled = np.maximum(np.arange(0, made.steps + 1, every) - FINER // 2, 0)  # readings half a step before states
    received = motion.states.received.data[:, sampled]
    sources, ears = made.params.source_position.data[:, 0, 0], made.params.receiver_position.data[:, 0]
    heard = np.tile(np.abs(sources[:, None] - ears) >= NEAR, 2)[:, None]
    received = np.where(heard, received, np.nan)
    noise = NOISE * np.nanstd(received)
    seen = received + noise * np.random.default_rng(1).standard_normal(received.shape)
    with h5py.File(folder / "section_shots.h5", "w") as file:
        file["time"] = interval * np.arange(seen.shape[1])
        file.create_dataset("values", data=seen.astype(np.float32), compression="gzip", shuffle=True)
        file["values"].attrs["noise"] = noise


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
