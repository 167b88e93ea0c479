"""Waves on a regular grid: by how much differences and time steps change the speed of the slowest ones.

Along an axis, where the error is largest, a plane wave of the frequency f and the wave number k obeys

    sin(pi f dt) = (c dt / 2 h) K(k h)

for leapfrog steps, with differences that turn exp(i k x) into K(k h) / h times itself (squared in second ones). Source:
Alford, Kelly and Boore 1974, Accuracy of finite-difference modeling of the acoustic wave equation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .arrays import Array


@dataclass(frozen=True)
class Waves:
    """The slowest waves of a medium, and the steps in space and time that carry them."""

    speed: float
    """Speed c of the slowest waves [m/s]."""
    spacing: float
    """Edge h of a cell [m]."""
    dt: float
    """Time step [s]."""
    differences: Callable[[Array], Array]
    """K as a function of k h, for k h from 0 to pi, where it rises."""

    def cells_a_wavelength(self, frequency: float) -> float:
        """Return the number of cells in a wavelength c / f."""
        return self.speed / (frequency * self.spacing)

    def speed_error(self, frequency: float) -> float:
        """Return the relative error of the speed; -1 for a frequency beyond those that the grid carries."""
        angles = np.linspace(0, np.pi, 4097)[1:]
        carried = self.differences(angles)
        wanted = 2 * self.spacing / (self.speed * self.dt) * np.sin(np.pi * frequency * self.dt)
        if wanted > carried[-1] or frequency * self.dt > 0.5:
            return -1.0
        angle = float(np.interp(wanted, carried, angles))
        return 2 * np.pi * frequency * self.spacing / (self.speed * angle) - 1


def differences_of_second(coefficients: tuple[float, ...], angles: Array) -> Array:
    """Compute K of second differences c_0, c_1, ...: K^2 = -c_0 - 2 sum_m c_m cos(m k h)."""
    first, *others = coefficients
    return np.sqrt(-first - 2 * sum([c * np.cos(m * angles) for m, c in enumerate(others, 1)]))


def differences_of_staggered(coefficients: tuple[float, ...], angles: Array) -> Array:
    """Compute K of differences c_1, c_2, ... on a staggered axis: K = 2 sum_m c_m sin((m - 1/2) k h)."""
    return np.asarray(2 * sum([c * np.sin((m - 0.5) * angles) for m, c in enumerate(coefficients, 1)]))
