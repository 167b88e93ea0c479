"""Identified values with their standard errors, and on what conditions the data can give them."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.assess import Uncertainty, estimate_uncertainty
from simphys.assess.before import advise_motion
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective

RANK_CHECK_UNKNOWNS = 200
"""Largest number of unknowns whose Jacobian is computed to see whether the data determine them."""
RANK_CHECK_PARTS = (1 / 2, 1 / 4, 1 / 8)
"""Parts of the horizon that may determine the unknowns in place of all of it, where a fit goes in stages."""
LEAST_SQUARES_UNKNOWNS = 2000
"""Largest number of unknowns for which least_squares may compute Jacobians."""


class UndeterminedStart(UserWarning):
    """Warning that the data do not determine the unknowns at their start, of a fit that is judged at its end."""


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
    robust_error: float = math.nan
    """Standard error that allows for residuals correlated in time; NaN if there is none."""
    half_step_change: float = math.nan
    """Change of the value by half the time step, to first order; NaN if not computed."""

    @property
    def larger_error(self) -> float:
        """The larger one of both errors, which is to be believed; NaN if there is none."""
        return float(np.fmax(self.standard_error, self.robust_error))


def find_uncertainty(objective: SceneObjective, result: optimize.Result) -> tuple[Uncertainty | None, str]:
    """Estimate the errors of a fit; None, and the reason if it is not plain, where there are none."""
    observed = objective.scene.measured
    if observed and len(objective.labels) > RANK_CHECK_UNKNOWNS:
        return None, "too many unknowns"
    if objective.scene.lowpass is not None:
        return None, "filtered misfits"  # their noise is no longer independent
    if observed and objective.scene.config.optimizer.smoothing is not None:
        return None, "smoothed loss"  # its minimum is not that of the squares
    if observed and objective.has_residuals and result.status in ("converged", "iteration limit"):
        return estimate_uncertainty(objective, result.theta), ""
    return None, ""


def make_estimates(
    objective: SceneObjective, result: optimize.Result, uncertainty: Uncertainty | None, reason: str
) -> tuple[Estimate, ...]:
    """Make the table of a fit: a row for each entry of theta; `reason`: why there is no uncertainty."""
    unknowns = objective.unknowns
    errors = robust = change = np.full(result.theta.size, np.nan)
    notes = [reason] * result.theta.size
    if uncertainty is not None:
        derivative = uncertainty.natural_derivative
        errors, robust = (each * np.abs(derivative) for each in (uncertainty.standard.values, uncertainty.robust))
        change = uncertainty.half_step * derivative
        told = zip(np.isnan(derivative), uncertainty.standard.notes, strict=True)
        notes = ["smooth" if lost else note for lost, note in told]
    columns = (
        objective.labels,
        unknowns.units,
        unknowns.natural(objective.start),
        unknowns.natural(result.theta),
        errors,
        notes,
        robust,
        change,
    )
    return tuple(
        Estimate(label, unit, float(start), float(value), float(error), note, float(robust_error), float(half))
        for label, unit, start, value, error, note, robust_error, half in zip(*columns, strict=True)
    )


def require_determined(objective: SceneObjective) -> bool:
    """Raise InputError if a measurement does not determine all unknowns at their start; return True if it does.

    A fit in stages is warned of that, as its way may lead to a motion that tells more; `judge_determined` judges its
    end. Nothing is checked where a Jacobian is too large, not available, or no judge of the loss (a smoothed one).
    """
    scene = objective.scene
    if not scene.measured or scene.config.optimizer.smoothing is not None:
        return True
    if len(objective.labels) > RANK_CHECK_UNKNOWNS or not objective.has_residuals:
        return True
    report = _find_rank(objective)
    if report is None:
        return True
    if scene.config.optimizer.horizon == "full":
        report.require_full(advise_motion(objective))
    constraint = f"the data determine all {len(objective.labels)} unknowns at the start"
    remedy = f"The fit is judged at its end. {advise_motion(objective)}".rstrip()
    message = f"unknowns: {constraint}; found rank {report.rank}: {report.describe()}. {remedy}"
    warnings.warn(message, UndeterminedStart, stacklevel=2)
    return False


def judge_determined(objective: SceneObjective, result: optimize.Result) -> optimize.Result:
    """Let a fit fail whose unknowns the data do not determine at its end, either."""
    if result.status not in ("converged", "iteration limit"):
        return result
    report = _find_rank(objective.with_start(result.theta))
    if report is None:
        return result
    message = f"the data do not determine all unknowns at the end: {report.describe()}. {optimize.DETERMINE}"
    return replace(result, status="failed", message=message)


def _find_rank(objective: SceneObjective) -> optimize.RankReport | None:
    """Find the unknowns that the data determine at the start; None if they determine all.

    A fit in stages is judged by the first part of the horizon that determines them: over all of a chaotic motion one
    direction outgrows all others.
    """
    chosen = objective.scene.config
    precision: Any = chosen.runtime.precision

    def find_rank(of: SceneObjective) -> optimize.RankReport:
        return optimize.rank_report(of.jacobian(of.start), of.labels, precision=precision)

    whole = find_rank(objective)
    shorter = RANK_CHECK_PARTS if chosen.optimizer.horizon != "full" else ()
    if whole.full or any(find_rank(objective.until(part)).full for part in shorter):
        return None
    return whole


def require_feasible_jacobians(objective: SceneObjective) -> None:
    """Raise InputError if there are too many unknowns for the Jacobians of least_squares."""
    count = len(objective.labels)
    if objective.scene.config.optimizer.method == "least_squares" and count > LEAST_SQUARES_UNKNOWNS:
        constraint = f"least_squares computes Jacobians, for at most {LEAST_SQUARES_UNKNOWNS} unknowns"
        raise InputError("optimizer.method", constraint, f"{count} unknowns", 'Use method = "lbfgs".')
