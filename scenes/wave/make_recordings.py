"""Make what the scenes beside this script are about: the ground to be found and its shots, and a picture.

The shots are simulated on a grid of half the spacing, with half the time step and differences of order 8, so that the
inversion does not know its data's own errors, and noise is added. The ground is a function of the place: layers, the
deeper ones faster and bent, and a lens in them that is slower. The start is what a survey knows: speed that grows with
depth. The picture is drawn by matplotlib.

    python scenes/wave/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
from matplotlib.figure import Figure

from simphys import scenefile as config
from simphys.autograd import no_grad
from simphys.experiment.scene import build_scene
from simphys.rollout import rollout

HERE = Path(__file__).parent
EVERY = 4
"""A sample is taken at every so many steps of the scene: 8 ms, of waves up to about 25 Hz."""
NOISE = 0.01
"""Standard deviation of the noise, as part of the standard deviation of all samples."""
NEAR = 80.0
"""Receivers nearer to a shot than this [m] are left out: there the grid itself is heard."""
TOP = 830.0
"""y of the surface [m]."""


def ground(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Speed [m/s] at a place [m]."""
    z = TOP - y
    bend = 30 * np.sin(2 * np.pi * x / 1440)
    speed = np.full(np.broadcast_shapes(x.shape, z.shape), 1500.0)
    for depth, value in ((250, 1750.0), (390, 2050.0), (550, 2400.0)):
        speed = np.where(z > depth + bend, value, speed)
    lens = ((x - 900) / 150) ** 2 + ((z - 465) / 45) ** 2 < 1
    return np.where(lens, 1650.0, speed)


def start(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The speed that a survey begins with [m/s]."""
    z = TOP - y
    return np.broadcast_to(1500 + 950 * np.clip((z - 190) / 460, 0, 1), np.broadcast_shapes(x.shape, z.shape))


def places(cells: Sequence[int], spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """x [n, 1] and y [1, m] of all cells."""
    return spacing * np.arange(cells[0])[:, None], spacing * np.arange(cells[1])[None, :]


def shots(folder: Path) -> None:
    """inversion_speed.npy, inversion_start.npy and inversion_shots.h5."""
    data = tomllib.loads((HERE / "inversion.toml").read_text())
    for section in ("unknowns", "loss", "observations", "check"):
        del data[section]
    grid, time = data["grid"], data["time"]
    for name, of in (("speed", ground), ("start", start)):
        np.save(folder / f"inversion_{name}.npy", of(*places(grid["cells"], grid["spacing"])).astype(np.float32))
    every, interval = 2 * EVERY, EVERY * time["dt"]
    grid |= {
        "cells": [2 * count - 1 for count in grid["cells"]],
        "spacing": grid["spacing"] / 2,
        "layer": 2 * grid["layer"],
    }
    time |= {"dt": time["dt"] / 2, "steps": 2 * time["steps"]}
    data["simulator"]["order"] = 8
    with tempfile.TemporaryDirectory() as scratch:
        fine = Path(scratch) / "speed.npy"
        np.save(fine, ground(*places(grid["cells"], grid["spacing"])))
        data["medium"] = {"speed": {"file": str(fine)}}
        made = build_scene(config.from_dict(data))
    with no_grad():
        motion = rollout(
            made.model, made.params, made.state, steps=made.steps, control=made.control(), fields=["received"]
        )
        received = motion.states.received.data[:, ::every]
    sources, ears = made.state.source_position.data[:, 0, 0], made.params.receiver_position.data[:, 0]
    heard = np.abs(sources[:, None, None] - ears) >= NEAR
    received = np.where(heard, received, np.nan)
    noise = NOISE * np.nanstd(received)
    seen = received + noise * np.random.default_rng(1).standard_normal(received.shape)
    with h5py.File(folder / "inversion_shots.h5", "w") as file:
        file["time"] = interval * np.arange(seen.shape[1])
        file.create_dataset("values", data=seen.astype(np.float32), compression="gzip", shuffle=True)
        file["values"].attrs["noise"] = noise


def picture(folder: Path) -> None:
    """drop.png: a nabla, white on black, of 256 x 256 cells."""
    figure = Figure(figsize=(2.56, 2.56), dpi=100, facecolor="black")
    figure.text(0.5, 0.47, r"$\nabla$", color="white", fontsize=150, ha="center", va="center")
    figure.savefig(folder / "drop.png", facecolor="black")


def main(folder: Path) -> None:
    """Write all."""
    folder.mkdir(parents=True, exist_ok=True)
    picture(folder)
    shots(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
