"""Make what scenes beside this script are about: a recording of vortices that die away, and two pictures.

The vortices' motion is not that of the simulator: it is the exact solution of the Navier-Stokes equations (Taylor and
Green 1937), to which noise is added; the velocity is measured at some points. The pictures are drawn by matplotlib.

    python scenes/smoke/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

NOISE = 1e-4
"""Standard deviation of a measured velocity [m/s]."""
VISCOSITY = 1e-4
"""[m^2/s]: what is to be found."""
LENGTH, CELLS = 0.1, 32
"""Of the periodic square [m], and of the scene's grid along it."""
SPEED = 0.01
"""At the start [m/s]."""
ORIGIN = (0.0137, 0.0071)
"""A place where four vortices meet [m]."""
TIMES = np.round(np.arange(1, 37) / 30, 4)
"""Of the pictures [s]."""
PLACES = [(i, j) for i in range(3, CELLS, 8) for j in range(2, CELLS, 11)]
"""Cells at whose lower faces the velocity is measured: component a across axis a."""


def motion(time: np.ndarray) -> np.ndarray:
    """Both components at all places, [N, places, 2] [m/s]."""
    k, spacing = 2 * np.pi / LENGTH, LENGTH / CELLS
    i, j = np.array(PLACES, float).T
    x, y = k * (spacing * i - ORIGIN[0]), k * (spacing * j - ORIGIN[1])
    half = 0.5 * k * spacing
    u, v = np.sin(x) * np.cos(y + half), -np.cos(x + half) * np.sin(y)
    decay = np.exp(-2 * VISCOSITY * k * k * np.asarray(time))
    return SPEED * decay[:, None, None] * np.stack([u, v], axis=-1)


def vortices(folder: Path) -> None:
    """taylor_green.txt."""
    random = np.random.default_rng(1937)
    seen = motion(TIMES)
    seen = seen + NOISE * random.standard_normal(seen.shape)
    rows = np.column_stack([TIMES, seen.reshape(len(TIMES), -1)])
    names = " ".join(f"{axis}{place}" for place in range(len(PLACES)) for axis in "uv")
    formats = ["%6.4f"] + ["%9.5f"] * (rows.shape[1] - 1)
    np.savetxt(folder / "taylor_green.txt", rows, fmt=formats, header=f"time {names}", comments="% ")


def pictures(folder: Path) -> None:
    """picture_start.png, a layer of smoke on the ground, and picture.png, a sign; white on black, 110 x 110 cells."""
    start, end = (Figure(figsize=(1.1, 1.1), dpi=100, facecolor="black") for _ in range(2))
    layer = start.add_axes((0, 0, 1, 0.4), facecolor="white")
    layer.set(xticks=[], yticks=[])
    layer.spines[:].set_visible(False)
    end.text(0.5, 0.46, "\u2202", color="white", fontsize=100, weight="bold", ha="center", va="center")
    start.savefig(folder / "picture_start.png", facecolor="black")
    end.savefig(folder / "picture.png", facecolor="black")


def main(folder: Path) -> None:
    """Write all."""
    vortices(folder)
    pictures(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
