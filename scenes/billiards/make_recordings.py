"""Make the recording beside this script: three balls of carom billiards, as a camera sees them.

Balls roll straight and slow down at a constant rate. The first moment at which two balls, or a ball and a cushion,
touch is found by steps of 0.1 ms and bisection. No part of the simulator is used.

    python scenes/billiards/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

CAROM = {"restitution": 0.93, "cushion_restitution": 0.78, "deceleration": 0.12}
"""Of two balls [1], of a ball and a cushion [1], of the cloth [m/s^2]."""

RADIUS, TABLE = 0.03075, np.array([2.84, 1.42])
"""[m], [m]; the balls are equal."""

START = np.array([[0.60, 0.45], [1.90, 0.90], [2.06, 0.62]])
"""Centres of the balls [m]."""

VELOCITY = np.array([[2.6, 0.95], [0.0, 0.0], [0.0, 0.0]])
"""[m/s]."""

NOISE = 0.002
"""Standard deviation of what is seen [m]."""

FINE = 1e-4
"""Step in which impacts are sought [s]."""


def roll(x: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of balls that roll freely for a time t."""
    speed = np.linalg.norm(v, axis=1, keepdims=True)
    along = v / np.where(speed > 0, speed, 1.0)
    s = np.minimum(t, speed / CAROM["deceleration"])
    return (
        x + along * (speed * s - CAROM["deceleration"] * s**2 / 2),
        along * (speed - CAROM["deceleration"] * s),
    )


def touching(x: np.ndarray, v: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Balls that touch and approach: a ball, its partner or -1 for a cushion, and the normal towards the ball."""
    found = []
    for i in range(len(x)):
        for axis in range(2):
            for side, wall in ((1.0, 0.0), (-1.0, TABLE[axis])):
                if side * (x[i, axis] - wall) <= RADIUS and side * v[i, axis] < 0:
                    found.append((i, -1, side * np.eye(2)[axis]))
        for j in range(i):
            d = x[i] - x[j]
            if np.linalg.norm(d) <= 2 * RADIUS and d @ (v[i] - v[j]) < 0:
                found.append((i, j, d / np.linalg.norm(d)))
    return found


def strike(v: np.ndarray, i: int, j: int, n: np.ndarray) -> None:
    """Change the velocities in an impact along n."""
    if j < 0:
        v[i] -= (1 + CAROM["cushion_restitution"]) * (n @ v[i]) * n
        return
    impulse = (1 + CAROM["restitution"]) * (n @ (v[i] - v[j])) / 2 * n
    v[i] -= impulse
    v[j] += impulse


def motion(time: np.ndarray) -> np.ndarray:
    """Centres of the balls at increasing times, [N, 3, 2]."""
    now, x, v = 0.0, START.copy(), VELOCITY.copy()
    found = np.empty((len(time), *START.shape))
    for row, moment in enumerate(time):
        while now < moment:
            step = min(FINE, moment - now)
            if touching(*roll(x, v, step)):
                before, after = 0.0, step
                for _ in range(60):
                    middle = (before + after) / 2
                    before, after = (before, middle) if touching(*roll(x, v, middle)) else (middle, after)
                step = after
            x, v = roll(x, v, step)
            now += step
            for i, j, n in touching(x, v):
                strike(v, i, j, n)
        found[row] = x
    return found


def main(folder: Path) -> None:
    random = np.random.default_rng(2025)
    time = np.arange(1, 121) / 40  # s
    seen = motion(time) + NOISE * random.standard_normal((len(time), *START.shape))
    np.savetxt(
        folder / "carom.txt",
        np.column_stack([time, seen.reshape(len(time), -1)]),
        fmt=["%7.3f", *["%9.5f"] * 6],
        header="time x0 y0 x1 y1 x2 y2",
        comments="% ",
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
