"""Make the recordings beside this script: balls that bounce, as a camera sees them.

Flights are parabolas; at each impact the ball leaves with a part of its normal speed, and friction either slides for
all of it, or as long as the ball slips. Each is exact: no part of the simulator is used.

    python scenes/rigid/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

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


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
