"""Make the recordings beside this script: balls that bounce, an arm that swings and a block on springs, as cameras see
them.

Flights are parabolas; at each impact the ball leaves with a part of its normal speed, and friction either slides for
all of it, or as long as the ball slips. The arm follows Lagrange's equations in its two angles, the block those of
momentum and angular momentum. Each is exact, or integrated to rounding: no part of the simulator is used.

    python scenes/rigid/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

RADIUS, GRAVITY = 0.05, 9.81
"""[m], [m/s^2]; the ball is a filled one, of inertia 2/5 m r^2."""

BOUNCE: dict[str, Any] = {"restitution": 0.75, "friction": 0.15, "velocity": [2.0, 0.5], "spin": 70.0}
"""Of the ball and the floor [1], [1]; of the start [m/s], [rad/s]."""

START = np.array([0.0, 0.8, 0.0])
"""Position [m], [m], and angle [rad]."""

NOISE = np.array([0.008, 0.008, 0.06])
"""Standard deviations of what is seen [m], [m], [rad]."""

DROPS: dict[str, Any] = {"restitution": 0.82, "heights": [0.45, 0.7, 1.0]}
"""Of a ball and a table [1], and the heights of its centre from which it is let go [m]."""

DROP_NOISE = 0.002
"""[m]"""

ARM: dict[str, Any] = {
    "mass": [1.0, 0.6],
    "inertia": [0.02, 0.012],
    "damping": [0.01, 0.005],
    "pivot": [0.03, -0.02],
    "shoulder": [-0.24, -0.01],
    "elbow": [[0.27, 0.02], [-0.22, 0.015]],
    "centre": [[-0.03, 0.02], [0.04, -0.01]],
    "dots": [[0.2, 0.0], [-0.1, 0.05]],
    "start": [0.9, 0.3],
}
"""Of two links [kg], [kg m^2], [N m s]; the pivot in the world, the others in the frames of the links [m]; the angles
of both from hanging down [rad]."""

ARM_NOISE = 0.001
"""[m]"""

BLOCK: dict[str, Any] = {
    "mass": 1.5,
    "centre": [0.02, -0.01, 0.03],
    "root": [[0.08, 0.02, -0.01], [0.0, 0.06, 0.015], [0.0, 0.0, 0.1]],
    "held": [[0.1, 0.08, 0.05], [-0.1, 0.06, 0.05], [0.02, -0.09, 0.05]],
    "ceiling": [[0.25, 0.15, 0.5], [-0.2, 0.2, 0.5], [0.0, -0.25, 0.5]],
    "stiffness": 60.0,
    "length": 0.35,
    "dots": [[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, -0.1]],
}
"""Of a block [kg], in its frame [m]: its centre of mass, the root of its second moments per mass, where springs hold
it, and its dots; the other ends of the springs, in the world, where the frame of the block starts [m]; [N/m], [m]."""

BLOCK_NOISE = 0.001
"""[m]"""


def after_impact(velocity: np.ndarray) -> np.ndarray:
    """(v_x, v_y, spin) behind an impact on the floor; friction's impulse is at most mu times the other, for 1 kg."""
    v_x, v_y, spin = velocity
    slip = v_x + RADIUS * spin
    most = BOUNCE["friction"] * (1 + BOUNCE["restitution"]) * -v_y
    impulse = -np.sign(slip) * min(most, abs(slip) / (1 + 5 / 2))
    return np.array([v_x + impulse, -BOUNCE["restitution"] * v_y, spin + 5 / 2 * impulse / RADIUS])


def motion(time: np.ndarray) -> np.ndarray:
    """Position and angle at increasing times, [N, 3]."""
    begin, place, velocity = 0.0, START, np.array([*BOUNCE["velocity"], BOUNCE["spin"]])
    fall, found = np.array([0.0, -GRAVITY, 0.0]), np.empty((len(time), 3))
    for row, moment in enumerate(time):
        while True:
            v_y, height = velocity[1], place[1] - RADIUS
            impact = begin + (v_y + np.sqrt(v_y**2 + 2 * GRAVITY * height)) / GRAVITY
            if moment < impact:
                break
            t = impact - begin
            place, velocity = place + velocity * t + fall * t**2 / 2, after_impact(velocity + fall * t)
            begin, place[1] = impact, RADIUS
        t = moment - begin
        found[row] = place + velocity * t + fall * t**2 / 2
    return found


def drop(height: float, time: np.ndarray) -> np.ndarray:
    """Heights [N] of the centre of a ball that is let go and bounces."""
    found, begin, speed, low = np.zeros_like(time), 0.0, 0.0, height
    for _ in range(50):  # flights: the first one begins at rest, the others on the table
        fall = (speed + np.sqrt(speed**2 + 2 * GRAVITY * (low - RADIUS))) / GRAVITY
        since = time - begin
        there = (since >= 0) & (since < fall)
        found[there] = (low + speed * since - GRAVITY * since**2 / 2)[there]
        begin, speed, low = begin + fall, DROPS["restitution"] * (GRAVITY * fall - speed), RADIUS
    return found


def turn(angle: float, vector: Any) -> np.ndarray:
    """A vector of a link's frame, whose first axis points down at the angle 0, in the world."""
    c, s = np.cos(angle - np.pi / 2), np.sin(angle - np.pi / 2)
    return np.array([[c, -s], [s, c]]) @ np.asarray(vector)


def swing(_: float, y: np.ndarray) -> np.ndarray:
    """Rates of the angles and of their rates: M y'' = -sum m J^T (J' y' - g) - damping, with dx = J dy of centres."""
    angle, rate = y[:2], y[2:]
    upper, lower = (np.array(ARM["centre"][0]) - ARM["shoulder"], np.subtract(ARM["centre"][1], ARM["elbow"][1]))
    arms = ((upper, 0 * upper), (np.subtract(ARM["elbow"][0], ARM["shoulder"]), lower))
    M, force = np.diag(ARM["inertia"]), np.zeros(2)
    for mass, own in zip(ARM["mass"], arms, strict=True):
        turned = np.stack([turn(angle[k], own[k]) for k in (0, 1)], axis=1)
        J = np.stack([-turned[1], turned[0]])
        M = M + mass * J.T @ J
        force += mass * J.T @ (turned @ rate**2 - np.array([0.0, GRAVITY]))
    relative = ARM["damping"][1] * (rate[1] - rate[0])
    force += [relative - ARM["damping"][0] * rate[0], -relative]
    return np.concatenate([rate, np.linalg.solve(M, force)])


def film_arm(time: np.ndarray) -> np.ndarray:
    """Positions of the dots of the arm, [N, 8]."""
    found = solve_ivp(swing, (0, time[-1]), [*ARM["start"], 0, 0], "DOP853", time, rtol=1e-12, atol=1e-12)
    rows = []
    for angle in found.y[:2].T:
        elbow = ARM["pivot"] + turn(angle[0], np.subtract(ARM["elbow"][0], ARM["shoulder"]))
        upper = [ARM["pivot"] + turn(angle[0], np.subtract(dot, ARM["shoulder"])) for dot in ARM["dots"]]
        rows.append([*upper, *[elbow + turn(angle[1], np.subtract(dot, ARM["elbow"][1])) for dot in ARM["dots"]]])
    return np.reshape(rows, (len(time), 8))


def hang(_: float, y: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Rates of position and orientation of the frame of the block, and of its momentum and angular momentum."""
    x, q, p, L = np.split(y, [3, 7, 10])
    R = Rotation.from_quat(q / np.linalg.norm(q)).as_matrix()
    spin, force, torque = R @ inverse @ R.T @ L, np.array([0.0, 0.0, -GRAVITY * BLOCK["mass"]]), np.zeros(3)
    for held, end in zip(BLOCK["held"], BLOCK["ceiling"], strict=True):
        arm = R @ np.subtract(held, BLOCK["centre"])
        d = np.subtract(end, x + arm)
        pull = BLOCK["stiffness"] * (1 - BLOCK["length"] / np.linalg.norm(d)) * d
        force, torque = force + pull, torque + np.cross(arm, pull)
    turned = np.array([*(q[3] * spin + np.cross(spin, q[:3])), -spin @ q[:3]]) / 2
    return np.concatenate([p / BLOCK["mass"], turned, force, torque])


def film_block(time: np.ndarray) -> np.ndarray:
    """Positions of the dots of the block, [N, 9]."""
    A = np.array(BLOCK["root"])
    S = BLOCK["mass"] * A @ A.T
    inverse = np.linalg.inv(np.trace(S) * np.eye(3) - S)
    start = np.array([*BLOCK["centre"], 0, 0, 0, 1, *[0.0] * 6])
    found = solve_ivp(hang, (0, time[-1]), start, "DOP853", time, rtol=1e-12, atol=1e-12, args=(inverse,))
    R = Rotation.from_quat(found.y[3:7].T)
    dots = [found.y[:3].T + R.apply(np.subtract(dot, BLOCK["centre"])) for dot in BLOCK["dots"]]
    return np.concatenate(dots, axis=1)


def main(folder: Path) -> None:
    random = np.random.default_rng(2024)
    time = np.arange(1, 161) / 100  # s
    seen = motion(time) + NOISE * random.standard_normal((len(time), 3))
    np.savetxt(
        folder / "bounce.txt",
        np.column_stack([time, seen]),
        fmt=["%6.2f", "%9.5f", "%9.5f", "%9.4f"],
        header="time x y angle",
        comments="% ",
    )

    time = np.arange(1, 121) / 80
    trials = [
        np.column_stack(
            [np.full_like(time, number), time, drop(height, time) + DROP_NOISE * random.standard_normal(120)]
        )
        for number, height in enumerate(DROPS["heights"], 1)
    ]
    rows = np.concatenate(trials)
    np.savetxt(
        folder / "three_heights.txt", rows, fmt=["%2.0f", "%8.4f", "%9.5f"], header="trial time y", comments="% "
    )

    time = np.arange(1, 201) / 100
    seen = film_arm(time) + ARM_NOISE * random.standard_normal((200, 8))
    names = "time " + " ".join([f"{link}_{dot}_{axis}" for link in ("upper", "lower") for dot in "pq" for axis in "xy"])
    np.savetxt(
        folder / "filmed_arm.txt",
        np.column_stack([time, seen]),
        fmt=["%6.2f", *["%9.5f"] * 8],
        header=names,
        comments="% ",
    )

    time = np.arange(1, 151) / 100
    seen = film_block(time) + BLOCK_NOISE * random.standard_normal((150, 9))
    np.savetxt(
        folder / "block_on_springs.txt",
        np.column_stack([time, seen]),
        fmt=["%6.2f", *["%9.5f"] * 9],
        header="time " + " ".join([f"{dot}_{axis}" for dot in "pqr" for axis in "xyz"]),
        comments="% ",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
