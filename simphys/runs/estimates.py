"""Identified values with their standard errors, and on what conditions the data can give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective

RANK_CHECK_UNKNOWNS = 200
"""Largest number of unknowns whose Jacobian is computed to see whether the data determine them."""
LEAST_SQUARES_UNKNOWNS = 2000
"""Largest number of unknowns for which least_squares may compute Jacobians."""


@dataclass(frozen=True)
class Estimate:
    """One row of the table of identified values, in the unit of its unknown."""

    label: str
    unit: str
    start: float
    value: float
    standard_error: float
    """Standard error of the value; NaN if there is none."""
    note: str
    """Reason why there is no standard error; empty if there is one, or none was computed."""


def make_estimates(objective: SceneObjective, result: optimize.Result) -> tuple[Estimate, ...]:
    """Make the table of a fit: a row for each entry of theta."""
    unknowns, config = objective.unknowns, objective.scene.config
    observed = objective.scene.observations is not None
    errors, notes = np.full(result.theta.size, np.nan), [""] * result.theta.size
    if observed and len(objective.labels) > RANK_CHECK_UNKNOWNS:
        notes = ["too many unknowns"] * result.theta.size
    elif objective.scene.lowpass is not None:
        notes = ["filtered misfits"] * result.theta.size  # their noise is no longer independent
    elif observed and config.optimizer.smoothing is not None:
        notes = ["smoothed loss"] * result.theta.size  # its minimum is not that of the squares
    elif observed and objective.has_residuals and result.status in ("converged", "iteration limit"):
        active = optimize.active_bounds(result.theta, objective.lower, objective.upper)
        found = optimize.standard_errors(
            objective.jacobian(result.theta), objective.residuals(result.theta), active=active
        )
        derivative = unknowns.natural_derivative(result.theta)
        errors = found.values * np.abs(derivative)
        notes = ["smooth" if lost else note for lost, note in zip(np.isnan(derivative), found.notes, strict=True)]
    columns = (
        objective.labels,
        unknowns.units,
        unknowns.natural(objective.start),
        unknowns.natural(result.theta),
        errors,
        notes,
    )
    return tuple(
        Estimate(label, unit, float(start), float(value), float(error), note)
        for label, unit, start, value, error, note in zip(*columns, strict=True)
    )


def require_determined(objective: SceneObjective) -> None:
    """Raise InputError if a measurement does not determine all unknowns at their start.

    Nothing is checked where a Jacobian is too large, not available, or no judge of the loss (a smoothed one).
    """
    scene = objective.scene
    if scene.observations is None or scene.config.optimizer.smoothing is not None:
        return
    if len(objective.labels) <= RANK_CHECK_UNKNOWNS and objective.has_residuals:
        precision: Any = scene.config.runtime.precision
        optimize.rank_report(objective.jacobian(objective.start), objective.labels, precision=precision).require_full()


def require_feasible_jacobians(objective: SceneObjective) -> None:
    """Raise InputError if there are too many unknowns for the Jacobians of least_squares."""
    count = len(objective.labels)
    if objective.scene.config.optimizer.method == "least_squares" and count > LEAST_SQUARES_UNKNOWNS:
        constraint = f"least_squares computes Jacobians, for at most {LEAST_SQUARES_UNKNOWNS} unknowns"
        raise InputError("optimizer.method", constraint, f"{count} unknowns", 'Use method = "lbfgs".')
