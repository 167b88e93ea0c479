"""Small objectives, given by their residuals alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path

import numpy as np
import pytest

RECORDINGS = Path(os.environ.get("SIMPHYS_DATA", Path(__file__).parents[3] / "shared" / "data"))
collect_ignore = [] if (RECORDINGS / "air_track_and_pendulum").is_dir() else ["test_recordings.py"]

Residuals = Callable[[np.ndarray], np.ndarray]


class FromResiduals:
    """Half the sum of squared residuals, in order of time; derivatives by complex steps or central differences.

    All results are NaN if blows_up(theta). Evaluation number interrupt_at (from 1) raises KeyboardInterrupt.
    """

    def __init__(
        self,
        residuals: Residuals,
        start: Sequence[float],
        *,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
        blows_up: Callable[[np.ndarray], bool] = lambda theta: False,
        interrupt_at: int | None = None,
        analytic: bool = True,
    ) -> None:
        self.function = residuals
        self.start = np.array(start, dtype=float)
        self.lower = np.full(len(start), -np.inf) if lower is None else np.array(lower)
        self.upper = np.full(len(start), np.inf) if upper is None else np.array(upper)
        self.labels = [f"unknown {i}" for i in range(len(start))]
        self.blows_up = blows_up
        self.interrupt_at = interrupt_at
        self.analytic = analytic
        self.asked: list[np.ndarray] = []
        self.fraction = 1.0

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        return self._ask(theta) * self._rows(theta)

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        return self._ask(theta) * self._derivative(theta)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        factor, rows = self._ask(theta), self._rows(theta)
        return 0.5 * factor * float(rows @ rows), factor * (self._derivative(theta).T @ rows)

    def until(self, fraction: float) -> FromResiduals:
        part = copy(self)
        part.fraction = fraction
        return part

    def _ask(self, theta: np.ndarray) -> float:
        self.asked.append(theta)
        if len(self.asked) == self.interrupt_at:
            raise KeyboardInterrupt
        assert np.all(self.lower <= theta) and np.all(theta <= self.upper)
        return np.nan if self.blows_up(theta) else 1.0

    def _rows(self, theta: np.ndarray) -> np.ndarray:
        rows = self.function(theta)
        return rows[: round(self.fraction * len(rows))]

    def _derivative(self, theta: np.ndarray) -> np.ndarray:
        unit = np.eye(len(theta))
        if self.analytic:
            return np.stack([self._rows(theta + 1e-30j * e).imag / 1e-30 for e in unit], axis=1)
        return np.stack([(self._rows(theta + 1e-6 * e) - self._rows(theta - 1e-6 * e)) / 2e-6 for e in unit], axis=1)


@pytest.fixture
def from_residuals() -> type[FromResiduals]:
    return FromResiduals


@pytest.fixture
def rosenbrock() -> Residuals:
    """Residuals of Rosenbrock's valley: 0 at (1, 1)."""
    return lambda theta: np.array([10 * (theta[1] - theta[0] ** 2), 1 - theta[0]])


@pytest.fixture
def bowl() -> Residuals:
    """Residuals of a quadratic with curvatures 1 and 4, and the minimum 0.5 at (2, -1)."""
    return lambda theta: np.array([theta[0] - 2, 2 * (theta[1] + 1), 1 + 0 * theta[0]])


@pytest.fixture
def oscillation() -> Residuals:
    """Residuals of 25 noisy periods of a cosine; unknowns: both amplitudes and the frequency, all truly 1."""
    time = np.linspace(0, 50 * np.pi, 400)
    noise = 0.05 * np.random.default_rng(1).standard_normal(time.size)
    seen = np.cos(time) + np.sin(time) + noise
    return lambda theta: theta[0] * np.cos(theta[2] * time) + theta[1] * np.sin(theta[2] * time) - seen
