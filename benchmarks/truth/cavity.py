"""`python -m benchmarks.truth.cavity`: flow in a lid-driven cavity, compared with Ghia, Ghia and Shin 1982.

The scene is scenes/smoke/cavity.toml, run until the flow is steady, at Reynolds numbers of 100 and 1000. A table lists
velocities along both centre lines relative to the lid's, and their differences from the paper's, which were
computed by second-order differences on a grid of 129 x 129 points.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..compare import ROOT

FOLDER = ROOT / "scenes" / "smoke"
CASES: tuple[tuple[int, dict[str, Any]], ...] = (
    (100, {"cells": 32, "dt": 0.02, "duration": 16.0}),
    (100, {"cells": 64, "dt": 5e-3, "duration": 16.0}),
    (1000, {"cells": 64, "dt": 0.01, "duration": 50.0}),
    (1000, {"cells": 128, "dt": 5e-3, "duration": 50.0}),
)
"""Reynolds number, and the grid with its time step [s] and duration [s]."""


def measure(reynolds: int, *, cells: int, dt: float, duration: float, precision: str) -> np.ndarray:
    """Compute columns y, u in the paper, u here, x, v in the paper, v here: [17, 6]."""
    import simphys

    options = {
        "fluid.viscosity": 1 / reynolds,
        "grid.cells": [cells, cells],
        "grid.spacing": 1 / cells,
        "time.dt": dt,
        "time.duration": duration,
        "runtime.precision": f'"{precision}"',
        "simulator.tolerance": 1e-5,  # relative to the change in a step, which is small once the flow is steady
    }
    scene = simphys.load_scene(FOLDER / "cavity.toml", [f"{key}={value}" for key, value in options.items()])
    for _, state in scene.stream(block=100):
        velocity = state["velocity"][-1]
    column = 1 if reynolds == 100 else 2
    y, in_u, x, in_v = np.loadtxt(FOLDER / "ghia_1982.txt", comments="%")[:, [0, column, 3, 3 + column]].T
    centres = (np.arange(cells) + 0.5) / cells
    u = np.interp(y, [0, *centres, 1], [0, *velocity[0, cells // 2, :cells], 1])
    v = np.interp(x, [0, *centres, 1], [0, *velocity[1, :cells, cells // 2], 0])
    return np.column_stack([y, in_u, u, x, in_v, v])


def table(rows: np.ndarray) -> str:
    """Format the results of `measure`, with differences."""
    lines = ["       y    u paper       here       diff         x    v paper       here       diff"]
    for y, in_u, u, x, in_v, v in rows:
        lines.append(
            f"{y:8.4f} {in_u:10.5f} {u:10.5f} {u - in_u:10.5f}  {x:8.4f} {in_v:10.5f} {v:10.5f} {v - in_v:10.5f}"
        )
    u, v = (abs(rows[:, column + 1] - rows[:, column]).max() for column in (1, 4))
    lines.append(f"largest difference: {100 * u:.2f} % of the lid's speed in u, {100 * v:.2f} % in v")
    return "\n".join(lines)


def main() -> None:
    for reynolds, grid in CASES:
        began = time.perf_counter()
        rows = measure(reynolds, **grid, precision="f32")
        print(f"Re = {reynolds}, {grid['cells']} x {grid['cells']} cells, dt = {grid['dt']} s", end="")
        print(f" ({time.perf_counter() - began:.0f} s)\n{table(rows)}\n", flush=True)


if __name__ == "__main__":
    main()
