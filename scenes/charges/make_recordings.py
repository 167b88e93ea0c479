"""Make the recording beside this script: eight charged pucks on an air table, seen by a camera from above.

The motion is not that of the simulator: it comes from an integrator of order 8 with tolerances of 1e-12. Noise, stamps
and gaps are those of a camera: about 60 pictures a second at uneven times, positions good to half a millimetre, some
pictures lost, and pucks that were not found in some.

    python scenes/charges/make_recordings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

NOISE = 0.05
"""Standard deviation of a measured position [cm]."""
DURATION = 3.0
"""[s]"""

COUPLING = 8.98755
"""Coulomb's constant in dyn cm^2/nC^2: lengths are in cm, masses in g, charges in nC."""
SOFTENING = 1.0
"""The pucks' size [cm]."""
MASS = np.array([2.05, 0.92, 1.14, 1.52, 0.85, 1.23, 1.07, 1.44])
"""[g]"""
CHARGE = np.array([24.0, -16.5, -5.2, 6.5, 8.7, 13.1, -6.2, 18.9])
"""[nC]"""
POSITION = np.array(
    [
        [0.8, -1.7], [-16.1, 3.2], [-19.4, 14.8], [2.7, -13.2],
        [-1.6, 11.5], [17.9, -14.4], [17.2, 1.9], [14.3, 18.7],
    ]
)  # fmt: skip
VELOCITY = np.array(
    [
        [2.0, -5.7], [-0.5, 8.0], [-9.1, -10.1], [13.9, 3.8],
        [-7.3, 6.9], [8.9, 13.9], [2.6, 1.5], [-9.1, 8.5],
    ]
)  # fmt: skip
"""At the start, [cm] and [cm/s]."""


def motion(time: np.ndarray) -> np.ndarray:
    """Positions [N, n, 2] at times [N]."""
    n = len(CHARGE)

    def rates(_: float, state: np.ndarray) -> np.ndarray:
        x, v = state.reshape(2, n, 2)
        d = x[:, None] - x
        pull = COUPLING * CHARGE[:, None] * CHARGE / ((d * d).sum(axis=-1) + SOFTENING**2) ** 1.5
        return np.concatenate([v, (pull[..., None] * d).sum(axis=1) / MASS[:, None]]).reshape(-1)

    start = np.concatenate([POSITION, VELOCITY]).reshape(-1)
    solved = solve_ivp(rates, (0.0, DURATION), start, method="DOP853", rtol=1e-12, atol=1e-12, t_eval=time)
    states: np.ndarray = solved.y.T.reshape(-1, 2, n, 2)
    return states[:, 0]


def main(folder: Path) -> None:
    random = np.random.default_rng(1785)
    regular = np.arange(1, round(DURATION * 60)) / 60
    time = np.round(regular + random.uniform(-0.004, 0.004, regular.size), 3)
    time = time[~((time > 1.1) & (time < 1.25))]  # pictures that were lost
    seen = motion(time) + NOISE * random.standard_normal((time.size, len(CHARGE), 2))
    for body in (2, 5, 6):  # under a hand, or without their mark
        first = random.uniform(0.5, 2.5)
        seen[(time > first) & (time < first + 0.2), body] = np.nan
    rows = np.column_stack([time, seen.reshape(time.size, -1)])
    names = " ".join(f"{axis}{body}" for body in range(len(CHARGE)) for axis in "xy")
    formats = ["%6.3f"] + ["%7.2f"] * (rows.shape[1] - 1)
    np.savetxt(folder / "find_charges.txt", rows, fmt=formats, header=f"time {names}", comments="% ")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
