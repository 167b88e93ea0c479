"""Make what the scenes beside this script measure, on a finer grid, with smaller steps, and with noise.

The recording of quadrants.toml alone is that of the scene's own grid and steps, without noise.

python scenes/heat/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from simphys import scenefile
from simphys.autograd import no_grad, tensor
from simphys.experiment.scene import build_scene
from simphys.rollout import rollout

HERE = Path(__file__).parent
FINER = 3
"""Fine cells in a cell of the scene along each axis; odd, so that the middle of a cell is that of a fine one."""
STRIPS = (16.0, 52.0, 110.0)
"""Conductivity of the strips [W/(m K)]."""
QUADRANTS = ((1.0, 0.1), (0.1, 0.01))
"""Conductivity of the quadrants [W/(m K)], by x and y."""
EVERY = 20
"""Steps of a scene between samples of the thermocouples."""


def simulate_finely(
    name: str, fields: dict[str, Any], *, steps: int, finer: int = FINER
) -> tuple[np.ndarray, dict[str, Any]]:
    """Simulate a scene with `steps` times as many steps and fine cells: the temperatures at the scene's own steps."""
    data = tomllib.loads((HERE / f"{name}.toml").read_text())
    coarse = {key: data[key] for key in ("grid", "time", "observations")}
    for section in ("unknowns", "loss", "observations", "check", "optimizer"):
        data.pop(section, None)
    grid, time = dict(coarse["grid"]), coarse["time"]
    data["grid"] = grid | {"cells": [finer * n for n in grid["cells"]], "spacing": grid["spacing"] / finer}
    data["time"] = {"dt": time["dt"] / steps, "duration": time["duration"]}
    made = build_scene(scenefile.from_dict(data))
    params = made.params.replace(**{key: tensor(values) for key, values in fields.items()})
    with no_grad():
        states = rollout(made.model, params, made.state, steps=made.steps).states.temperature.data
    return states[::steps], coarse


def record_strips(folder: Path) -> None:
    """Write conductivity.txt."""
    conductivity = np.repeat(STRIPS, FINER * 10)[:, None] * np.ones(FINER * 20)
    states, scene = simulate_finely("conductivity", {"conductivity": conductivity}, steps=10)
    nodes = [channel["node"] for channel in scene["observations"]["channels"]]
    at = [(slice(None), *[FINER * i + FINER // 2 for i in node]) for node in nodes]
    values = np.stack([states[place] for place in at], axis=1)[::EVERY]
    seen = values + 0.5 * np.random.default_rng(1).standard_normal(values.shape)
    times = EVERY * scene["time"]["dt"] * np.arange(len(seen))
    header = "time [s], temperature of five thermocouples [deg C]"
    table = np.column_stack([times, seen])[1:]
    np.savetxt(folder / "conductivity.txt", table, fmt=["%.1f"] + ["%.2f"] * len(nodes), header=header)


def find_source(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the power of two chips and a wire at a place [m] [W/m^3]."""
    chips = 6e5 * np.exp(-(((x - 0.05) / 0.012) ** 2) - ((y - 0.08) / 0.015) ** 2)
    chips = chips + 4e5 * np.exp(-(((x - 0.11) / 0.02) ** 2) - ((y - 0.045) / 0.012) ** 2)
    wire = 1.5e5 * np.exp(-(((y - 0.02 - 0.4 * x) / 0.008) ** 2)) * (x > 0.03)
    return chips + wire


def record_film(folder: Path) -> None:
    """Write source_truth.npy and source_film.npz."""
    cells, spacing = (32, 24), 5e-3 / FINER
    x, y = np.meshgrid(*[spacing * (np.arange(FINER * n) + 0.5) for n in cells], indexing="ij")
    fine = find_source(x, y)
    states, scene = simulate_finely("source", {"source": fine}, steps=10)
    film = average_cells(states[1:])
    film += 0.05 * np.random.default_rng(2).standard_normal(film.shape)
    times = scene["time"]["dt"] * np.arange(1, len(film) + 1)
    np.save(folder / "source_truth.npy", average_cells(fine[None])[0].astype(np.float32))
    np.savez_compressed(folder / "source_film.npz", time=times, values=film.astype(np.float32))


def average_cells(fields: np.ndarray) -> np.ndarray:
    """Average fields [N, *fine cells] over the cells of the scene."""
    n, nx, ny = fields.shape
    return fields.reshape(n, nx // FINER, FINER, ny // FINER, FINER).mean(axis=(2, 4))


def record_quadrants(folder: Path) -> None:
    """Write quadrants.txt."""
    conductivity = np.repeat(np.repeat(QUADRANTS, 5, axis=0), 5, axis=1)
    states, scene = simulate_finely("quadrants", {"conductivity": conductivity}, steps=1, finer=1)
    nodes = [channel["node"] for channel in scene["observations"]["channels"]]
    times = scene["time"]["dt"] * np.arange(len(states))
    table = np.column_stack([times, *[states[:, i, j] for i, j in nodes]])[1:]
    header = "time [s], temperature in the middle of four quadrants [K]"
    np.savetxt(folder / "quadrants.txt", table, fmt=["%.1f"] + ["%.6f"] * len(nodes), header=header)


def main(folder: Path) -> None:
    """Write all."""
    folder.mkdir(parents=True, exist_ok=True)
    record_strips(folder)
    record_film(folder)
    record_quadrants(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
