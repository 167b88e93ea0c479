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
    "centre": [0.5, 0.5],
    "inertia": [0.0208, 0.0075],
    "damping": [0.006, 0.004],
    "gravity": 9.81,
    "angle": [1.4, 2.4],
    "rate": [0.4, -0.6],
}
"""Two bars: [m], [kg], of the length, [kg m^2] about the centre, [N m s/rad], [m/s^2], and the start [rad], [rad/s]."""

DOUBLE_NOISE = 0.01
"""[rad]"""


MOTOR: dict[str, Any] = {
    "length": 0.3,
    "mass": 0.5,
    "gravity": 9.81,
    "damping": 0.008,
    "constant": 0.12,
    "delay": 0.035,
    "angle": 0.2,
    "rate": 0.0,
}
"""A motor at the pivot of a bob: torque by voltage [N m/V], and the time by which it follows the voltage [s]."""

MOTOR_NOISE = 0.003
"""[rad]"""

BENCH: dict[str, Any] = {
    "arm": 0.2,
    "mass": 0.5,
    "inertia": 0.0068,
    "gravity": 9.81,
    "damping": 0.015,
    "dry_friction": 0.06,
    "transition_rate": 0.05,
    "offset": 0.03,
    "angle": 0.1,
    "rate": 0.0,
}
"""A rod on a motor whose torque is measured: the distance from the pivot to the centre of mass [m], the inertia about
it [kg m^2], dry friction [N m] with the rate at which it changes its sign [rad/s], and the torque that the log lacks
[N m]."""

BENCH_NOISE = 0.002
"""[rad]"""

FILM: dict[str, Any] = {
    "length": 0.56,
    "dot": 0.25,
    "mass": 0.2,
    "gravity": 9.81,
    "damping": 0.0021,
    "angles": [0.37, 0.82, 1.38, 2.05],
    "scale": 640.0,
    "turn": 0.021,
    "pivot": [402.0, 655.0],
}
"""A bob, and a dot painted on its rod so far from the pivot [m]; the angles of its releases [rad]; and of the camera
its pixels per metre, the angle by which it hangs askew [rad], and the pixel of the pivot, from the lower left."""

FILM_NOISE = 0.7
"""[pixels]"""


def swing(_: float, y: np.ndarray) -> list[float]:
    p = SWING
    return [y[1], -p["gravity"] * np.sin(y[0] - p["tilt"]) - p["damping"] * y[1]]


def double(_: float, y: np.ndarray) -> list[float]:
    """Lagrange's equations of two links, solved for the accelerations."""
    p = DOUBLE
    (l1, _), (m1, m2), (k1, k2), g = (p[name] for name in ("length", "mass", "damping", "gravity"))
    s1, s2 = (length * centre for length, centre in zip(p["length"], p["centre"], strict=True))  # to the centres
    x1, x2, v1, v2 = y
    d = x1 - x2
    between = k2 * (v2 - v1)
    f1 = -m2 * l1 * s2 * np.sin(d) * v2**2 - (m1 * s1 + m2 * l1) * g * np.sin(x1) - k1 * v1 + between
    f2 = m2 * l1 * s2 * np.sin(d) * v1**2 - m2 * g * s2 * np.sin(x2) - between
    a11 = p["inertia"][0] + m1 * s1**2 + m2 * l1**2
    a12, a22 = m2 * l1 * s2 * np.cos(d), p["inertia"][1] + m2 * s2**2
    determinant = a11 * a22 - a12**2
    return [v1, v2, (a22 * f1 - a12 * f2) / determinant, (a11 * f2 - a12 * f1) / determinant]


def voltage(time: np.ndarray) -> np.ndarray:
    """The voltage at the motor [V]: three tones."""
    return 2.0 * np.sin(2.1 * time) + 1.5 * np.sin(5.3 * time + 1.0) + 1.0 * np.sin(9.7 * time + 2.0)


def motor(time: float, y: np.ndarray) -> list[float]:
    p = MOTOR
    torque = p["constant"] * voltage(np.array(time - p["delay"])) - p["damping"] * y[1]
    return [y[1], torque / (p["mass"] * p["length"] ** 2) - p["gravity"] / p["length"] * np.sin(y[0])]


def torque(time: np.ndarray) -> np.ndarray:
    """The torque of the motor as its log has it [N m]: three tones."""
    return 0.3 * np.sin(3.0 * time) + 0.2 * np.sin(5.7 * time + 1.0) + 0.15 * np.sin(8.3 * time + 2.0)


def bench(time: float, y: np.ndarray) -> list[float]:
    p = BENCH
    weight = p["mass"] * p["gravity"] * p["arm"] * np.sin(y[0])
    rubbing = 2 / np.pi * p["dry_friction"] * np.arctan(y[1] / p["transition_rate"])
    drive = torque(np.array(time)) + p["offset"]
    return [y[1], (drive - weight - p["damping"] * y[1] - rubbing) / (p["inertia"] + p["mass"] * p["arm"] ** 2)]


def film(_: float, y: np.ndarray) -> list[float]:
    p = FILM
    inertia = p["mass"] * p["length"] ** 2
    return [y[1], -p["gravity"] / p["length"] * np.sin(y[0]) - p["damping"] / inertia * y[1]]


def pixels(angle: np.ndarray, distance: float) -> np.ndarray:
    """The pixels [N, 2] of a place on the rod, so far from the pivot."""
    turned = angle + FILM["turn"]
    return np.array(FILM["pivot"]) + FILM["scale"] * distance * np.column_stack([np.sin(turned), -np.cos(turned)])


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

    time = np.arange(-20, 1000) / 100  # the log of the motor begins 0.2 s early; every third row has an angle
    seen = angles(motor, [MOTOR["angle"], MOTOR["rate"]], time[20::3])[:, 0]
    angle = [""] * len(time)
    angle[20::3] = [f"{each:.4f}" for each in seen + MOTOR_NOISE * random.standard_normal(seen.shape)]
    rows = [f"{t + 0.2:.2f},{u:.4f},{each}" for t, u, each in zip(time, voltage(time), angle, strict=True)]
    (folder / "motor.csv").write_text("\n".join(["time,voltage,angle", *rows, ""]))

    time, trials = np.arange(1, 91) / 30, []
    for number, angle in enumerate(FILM["angles"], 1):
        seen = angles(film, [angle, 0.0], time)[:, 0]
        shown = np.hstack([pixels(seen, FILM["length"]), pixels(seen, FILM["dot"])])
        shown += FILM_NOISE * random.standard_normal(shown.shape)
        trials.append(np.column_stack([np.full_like(time, number), time, shown]))
    header = "trial time u_bob v_bob u_dot v_dot"
    formats = ["%2.0f", "%8.4f", *["%7.1f"] * 4]
    np.savetxt(folder / "four_angles.txt", np.concatenate(trials), fmt=formats, header=header, comments="% ")

    time = np.arange(0, 1201) / 200  # 6 s
    seen = angles(bench, [BENCH["angle"], BENCH["rate"]], time)[:, 0]
    seen += BENCH_NOISE * random.standard_normal(seen.shape)
    rows = [f"{t:.3f},{u:.4f},{each:.4f}" for t, u, each in zip(time, torque(time), seen, strict=True)]
    (folder / "friction.csv").write_text("\n".join(["time,torque,angle", *rows, ""]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
