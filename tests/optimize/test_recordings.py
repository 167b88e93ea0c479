"""Fits of real recordings, of gliders between springs on an air track, by the exact solution from 30 % off.

The files are those of Schmidt and Lipson (Science 324, 2009); conftest.py ignores this module if they are missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.optimize import minimize

DATA = Path(os.environ.get("SIMPHYS_DATA", Path(__file__).parents[3] / "shared" / "data"))
SIGNS: dict[str, Callable[[int], np.ndarray]] = {
    "all high": lambda count: np.ones(count),
    "all low": lambda count: -np.ones(count),
    "mixed": lambda count: np.random.default_rng(2).choice([-1.0, 1.0], count),
}


def recording(name: str, columns: int) -> np.ndarray:
    return np.loadtxt(DATA / "air_track_and_pendulum" / name, comments="%", usecols=range(1, 2 + columns))


@pytest.mark.parametrize("signs", SIGNS)
def test_one_glider_is_identified_from_30_percent_off(signs: str, from_residuals: Any) -> None:
    time, seen = recording("real_linear_h_1.txt", 1).T
    time = time - time[0]
    scale = np.array([100.0, 40.0, 6.2, 0.014, 60.0])  # start, velocity, k/m, c/m, rest point: 30 % of a typical size

    def residuals(theta: np.ndarray) -> np.ndarray:
        start, velocity, stiffness, drag, rest = theta * scale
        frequency = np.sqrt(stiffness - drag**2 / 4)
        sine = (velocity + drag / 2 * (start - rest)) / frequency
        wave = (start - rest) * np.cos(frequency * time) + sine * np.sin(frequency * time)
        return rest + np.exp(-drag * time / 2) * wave - seen

    best = np.array([-102.788, 39.044, 6.2203, 0.013680, -0.038]) / scale
    start = best + 0.3 * SIGNS[signs](5)
    objective = from_residuals(residuals, start, lower=[-np.inf, -np.inf, 0.1, 0, -np.inf])
    found = minimize(objective, horizon="growing")
    assert found.success
    assert np.sqrt(2 * found.loss / seen.size) < 0.415
    np.testing.assert_allclose((found.theta * scale)[2:4], [6.220, 0.01368], rtol=1e-3)


@pytest.mark.parametrize("signs", SIGNS)
def test_two_gliders_are_identified_from_30_percent_off(signs: str, from_residuals: Any) -> None:
    time, *seen = recording("real_double_linear_h_1.txt", 2).T
    time = time - time[0]
    scale = np.array([40.0, 140.0, 40.0, 40.0, 7.8, 78.0, 7.7, 2.5, 63.0, 62.0, 0.03, 0.004])

    def residuals(theta: np.ndarray) -> np.ndarray:
        x1, x2, v1, v2, k1, k_mid, k2, m2, rest1, rest2, drag1, drag2 = theta * scale
        motion = np.zeros((4, 4))
        motion[:2, 2:] = np.eye(2)
        motion[2] = -(k1 + k_mid), k_mid, -drag1, 0
        motion[3] = k_mid / m2, -(k2 + k_mid) / m2, 0, -drag2
        rates, modes = np.linalg.eig(motion)
        weights = np.linalg.solve(modes, np.array([x1 - rest1, x2 - rest2, v1, v2], dtype=complex))
        moved = (modes[:2] @ (np.exp(np.outer(rates, time)) * weights[:, None])).real
        return (moved - np.stack(seen) + np.array([[rest1], [rest2]])).T.ravel()

    truth = np.array([0.28, -143.2, -40.6, 1.3, 7.78, 78.0, 7.73, 2.48, 63.05, -61.99, 0.0324, 0.00384]) / scale
    start = truth + 0.3 * SIGNS[signs](12)
    lower = np.where(np.isin(np.arange(12), [4, 5, 6, 7, 10, 11]), 0.01, -np.inf)
    objective = from_residuals(residuals, start, lower=lower, analytic=False)  # eig does not support complex steps
    found = minimize(objective, horizon="growing")
    assert found.success
    assert np.sqrt(2 * found.loss / (2 * time.size)) < 0.62
    k1, k_mid, k2, m2 = (found.theta * scale)[4:8]
    np.testing.assert_allclose([k1, k_mid, k2 / m2, k_mid / m2], [7.78, 78.0, 3.12, 31.5], rtol=3e-3)
