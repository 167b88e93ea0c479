"""Another optimum than that of a fit: which part of the misfit it leaves, and its values in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.experiment.misfits import robust_loss, sigma_is_stated
from simphys.experiment.setup import Setup

from .misfit import chi_square_per_freedom
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

HALF = 0.5
"""Part of chi^2, beyond that of the noise where it is stated, that may be left by what explains a misfit."""
NAMED = 3
"""Largest number of values that are named."""
ITERATIONS = 20
"""Iterations of a fit from the end of another."""


def most_left(scene: Setup, uncertainty: Uncertainty) -> float:
    """Return the part of chi^2 that what explains a misfit may leave: noise that is stated, nothing explains."""
    noise = 0.0
    if sigma_is_stated(scene) and robust_loss(scene.config.loss) is None:
        noise = min(1 / chi_square_per_freedom(uncertainty), 1.0)
    return noise + HALF * (1 - noise)


def part_left(uncertainty: Uncertainty, loss: float) -> float:
    """Return a loss as a part of that of the fit."""
    return 2 * loss / float(uncertainty.residuals @ uncertainty.residuals)


def describe_values(uncertainty: Uncertainty, theta: Array) -> str:
    """Name the values at theta [p] that differ most from those of the fit, in its standard errors, and both of each.

    Those without an error, which a bound has held, come first.
    """
    before, after = uncertainty.natural, uncertainty.unknowns.natural(theta)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = np.abs(theta - uncertainty.theta) / uncertainty.standard.values
    moved = np.where(np.isnan(moved) & (theta != uncertainty.theta), np.inf, np.nan_to_num(moved))
    first = np.argsort(-moved, kind="stable")[:NAMED]
    return ", ".join([f"{uncertainty.labels[i]} {before[i]:.5g} -> {after[i]:.5g}" for i in first])


def describe_local_optimum(uncertainty: Uncertainty, theta: Array, left: float) -> str:
    """Say that a fit has ended in a local optimum, with a better start, theta [p], and the part of chi^2 left there."""
    values = describe_values(uncertainty, theta)
    return f"This is a local optimum: start [unknowns] from {values}, where {100 * np.sqrt(left):.2g} % of it are left."
