"""Make the recordings beside this script: pendulums, as a camera sees them.

The motion is integrated by a Runge-Kutta method of order 8 with tolerances far below the noise (scipy's DOP853), from
equations of motion written out for one and for two links: no part of the simulator is used.

    python scenes/pendulum/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

NOISE = 0.011
"""Standard deviation of a measured angle of the single pendulum [rad]."""

SWING = {"gravity": 1.37, "damping": 0.0115, "tilt": 0.015, "angle": 1.3, "rate": -0.75}
"""Of theta'' = -k sin(theta - e) - c theta': k [1/s^2], c [1/s], e [rad], and the start [rad], [rad/s]; k and c are
gravity and damping of a unit mass on a link of unit length."""

DOUBLE: dict[str, Any] = {
    "length": [0.50, 0.38],
    "mass": [1.0, 0.62],
    "damping": [0.006, 0.004],
    "gravity": 9.81,
    "angle": [1.0, 2.4],
    "rate": [0.4, -0.6],
}
"""[m], [kg], [N m s/rad], [m/s^2], and the start [rad], [rad/s]."""

DOUBLE_NOISE = 0.01
"""[rad]"""


def swing(_: float, y: np.ndarray) -> list[float]:
    p = SWING
    return [y[1], -p["gravity"] * np.sin(y[0] - p["tilt"]) - p["damping"] * y[1]]


def double(_: float, y: np.ndarray) -> list[float]:
    """Lagrange's equations of two links, solved for the accelerations."""
    (l1, l2), (m1, m2), (c1, c2), g = (DOUBLE[name] for name in ("length", "mass", "damping", "gravity"))
    x1, x2, v1, v2 = y
    d = x1 - x2
    between = c2 * (v2 - v1)
    f1 = -m2 * l1 * l2 * np.sin(d) * v2**2 - (m1 + m2) * g * l1 * np.sin(x1) - c1 * v1 + between
    f2 = m2 * l1 * l2 * np.sin(d) * v1**2 - m2 * g * l2 * np.sin(x2) - between
    a11, a12, a22 = (m1 + m2) * l1**2, m2 * l1 * l2 * np.cos(d), m2 * l2**2
    determinant = a11 * a22 - a12**2
    return [v1, v2, (a22 * f1 - a12 * f2) / determinant, (a11 * f2 - a12 * f1) / determinant]


def angles(slope: Callable[..., list[float]], start: list[float], time: np.ndarray) -> np.ndarray:
    """The angles [N, n] at times [N] from the start at time 0."""
    span = (0.0, float(time[-1]))
    found = solve_ivp(slope, span, start, method="DOP853", dense_output=True, rtol=1e-12, atol=1e-12)
    return np.asarray(found.sol(time)[: len(start) // 2].T)


def write(path: Path, time: np.ndarray, angle: np.ndarray) -> None:
    """Columns: trial, time, angles, and rates taken from the angles by differences."""
    rate = np.gradient(angle, time, axis=0)
    names = [f"{name}{i + 1}" for name in ("angle", "rate") for i in range(angle.shape[1])]
    rows = np.column_stack([np.zeros_like(time), time, angle, rate])
    formats = ["%2.0f", "%8.3f"] + ["%8.4f"] * (rows.shape[1] - 2)
    np.savetxt(path, rows, fmt=formats, header=f"trial time {' '.join(names)}", comments="% ")


def main(folder: Path) -> None:
    random = np.random.default_rng(1656)
    time = 5 + np.arange(568) / 6  # the camera starts late, and now and then a sample is missing
    time = np.delete(time, random.choice(np.arange(1, 567), 12, replace=False))
    seen = angles(swing, [SWING["angle"], SWING["rate"]], time)
    write(folder / "swing.txt", time, seen + NOISE * random.standard_normal(seen.shape))

    time = np.arange(1, 331) / 30  # 11 s
    seen = angles(double, [*DOUBLE["angle"], *DOUBLE["rate"]], time)
    write(folder / "double.txt", time, seen + DOUBLE_NOISE * random.standard_normal(seen.shape))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
