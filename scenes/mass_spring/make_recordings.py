"""Make the recordings beside this script: gliders between springs on an air track, seen by a camera.

The motion is the exact solution of the linear system, not a simulation: with y = (x - x_rest, v), dy/dt = A y has the
solution y(t) = V exp(lambda t) V^-1 y(0) in the eigenvalues lambda and eigenvectors V of A. Noise, stamps and gaps are
those of a camera: about 30 pictures a second at uneven times, positions good to 0.4 px, some pictures lost.

    python scenes/mass_spring/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

NOISE = 0.4
"""Standard deviation of a measured position [px]."""

AIR_TRACK = {"start": -99.2, "velocity": 21.0, "stiffness": 6.34, "rest_point": 0.7, "drag": 0.0146}
"""[px], [px/s], stiffness/mass [1/s^2], [px], [1/s]."""

TWO_GLIDERS: dict[str, Any] = {
    "start": [1.6, -139.5],
    "velocity": [-9.0, -25.0],
    "stiffness": [7.93, 7.58],
    "stiffness_between": 76.6,
    "mass": [1.0, 2.43],
    "rest_point": [64.5, -61.2],
    "drag": [0.030, 0.0045],
}
"""The same of each glider, the first one's mass as unit; the spring between them is at rest at the length below."""

TRIALS = [
    {"start": [1.6, -139.5], "velocity": [-9.0, -25.0]},
    {"start": [104.0, -60.0], "velocity": [0.0, 35.0]},
    {"start": [40.0, -75.0], "velocity": [150.0, -60.0]},
]
"""Start positions [px] and velocities [px/s] of three recordings of the two gliders."""

LENGTH_BETWEEN = 125.0
"""[px]"""


def solution(time: np.ndarray, pull: np.ndarray, rest: np.ndarray, glider: dict[str, Any]) -> np.ndarray:
    """Positions [N, n] at times [N] of dv/dt = -pull (x - rest) - drag v, with pull = mass^-1 stiffness [n, n]."""
    start, velocity, drag = (np.atleast_1d(glider[name]) for name in ("start", "velocity", "drag"))
    n = start.size
    system = np.block([[np.zeros((n, n)), np.eye(n)], [-pull, -np.diag(drag)]])
    rates, modes = np.linalg.eig(system)
    weights = np.linalg.solve(modes, np.concatenate([start - rest, velocity]).astype(complex))
    return rest + ((np.exp(np.outer(time, rates)) * weights) @ modes[:n].T).real


def one_glider(time: np.ndarray) -> np.ndarray:
    """The glider's position [N, 1]."""
    p = AIR_TRACK
    return solution(time, np.array([[p["stiffness"]]]), np.array([p["rest_point"]]), p)


def two_gliders(time: np.ndarray, **start: Any) -> np.ndarray:
    """Both gliders' positions [N, 2], from the `start` and the `velocity` above or from others."""
    p = TWO_GLIDERS | start
    outer, between = np.diag(p["stiffness"]), p["stiffness_between"] * np.array([[1, -1], [-1, 1]])
    # The gliders rest where all springs balance: outer (rest_point - x) + between (lengths - x) = 0.
    lengths = np.array([LENGTH_BETWEEN / 2, -LENGTH_BETWEEN / 2])
    rest = np.linalg.solve(outer + between, outer @ p["rest_point"] + between @ lengths)
    pull = (outer + between) / np.array(p["mass"])[:, None]
    return solution(time, pull, rest, p)


def stamps(random: np.random.Generator, duration: float) -> np.ndarray:
    """Times of the pictures [s]: about 30 a second, uneven by some milliseconds, told to a millisecond."""
    regular = np.arange(1, int(duration * 30) + 1) / 30
    return np.round(regular + random.uniform(-0.005, 0.005, regular.size), 3)


def keep(time: np.ndarray, *gaps: tuple[float, float]) -> np.ndarray:
    """The times outside the gaps (from, to) [s]."""
    lost = [(time > first) & (time < last) for first, last in gaps]
    return time[~np.any(lost, axis=0)]


def columns(trial: int, time: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Columns: trial, time, positions, and velocities taken from the positions by differences."""
    velocity = np.gradient(position, time, axis=0)
    return np.column_stack([np.full_like(time, trial), time, position, velocity])


def write(path: Path, rows: np.ndarray) -> None:
    names = [f"{name}{i + 1}" for name in "xv" for i in range(rows.shape[1] // 2 - 1)]
    formats = ["%2.0f", "%8.3f"] + ["%9.2f"] * (rows.shape[1] - 2)
    np.savetxt(path, rows, fmt=formats, header=f"trial time {' '.join(names)}", comments="% ")


def main(folder: Path) -> None:
    random = np.random.default_rng(2009)
    time = keep(stamps(random, 29.04), (6.3, 7.1), (18.0, 18.4), (24.75, 24.9))
    seen = one_glider(time)
    write(folder / "air_track.txt", columns(0, time, seen + NOISE * random.standard_normal(seen.shape)))

    time = keep(stamps(random, 16.5), (9.1, 9.5))
    seen = two_gliders(time) + NOISE * random.standard_normal((time.size, 2))
    seen[(time > 4.0) & (time < 4.4), 0] = np.nan  # a hand before the first glider
    seen[random.choice(time.size, 12, replace=False), 1] = np.nan  # the second one's mark was not found
    write(folder / "two_gliders.txt", columns(0, time, seen))

    trials = []
    for trial, start in enumerate(TRIALS, 1):
        time = stamps(random, 6.0)
        seen = two_gliders(time, **start)
        trials.append(columns(trial, time, seen + NOISE * random.standard_normal(seen.shape)))
    write(folder / "two_gliders_trials.txt", np.concatenate(trials))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
