"""Uncertainty of a fit to a measurement, by linearization at the optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from simphys import optimize
from simphys.experiment import misfits
from simphys.experiment.objective import SceneObjective
from simphys.experiment.unknowns import Unknowns

from .holdout import Holdout, predict_holdout
from .series import Series, split_residuals
from .time_step import change_by_half_step, change_by_sharper_friction

Array = np.ndarray[Any, Any]

LARGEST = 200
"""Largest number of unknowns whose Jacobian is computed."""


@dataclass(frozen=True)
class Uncertainty:
    """Errors of the identified values, in optimizer coordinates theta [p], unless said otherwise."""

    labels: tuple[str, ...]
    unknowns: Unknowns
    theta: Array
    natural_derivative: Array
    """d(value)/d(theta) [p]."""
    residuals: Array
    """All residuals [m]."""
    jacobian: Array
    """Derivatives of the residuals [m, p]."""
    gradient: Array
    """Derivative of the loss [p]."""
    standard: optimize.StandardErrors
    """Errors if residuals are independent."""
    robust_covariance: Array
    """Covariance [p, p] that allows for residuals correlated in time, and for any loss of misfits."""
    half_step: Array
    """Change of theta [p] by half the time step."""
    sharper_friction: Array | None
    """Change of theta [p] if dry friction changed its sign at once; None where its rate of transition is no default."""
    at_lower: Array
    """True for unknowns at their lower bound [p]."""
    at_upper: Array
    """True for unknowns at their upper bound [p]."""
    series: tuple[Series, ...]
    """Residuals of each experiment along time."""
    holdout: Holdout | None
    """Prediction of the held-out samples; None if there are none."""

    @property
    def natural(self) -> Array:
        """The values [p], in their units."""
        return self.unknowns.natural(self.theta)

    @property
    def robust(self) -> Array:
        """Standard errors of theta that allow for correlation [p]; NaN where there is none."""
        with np.errstate(invalid="ignore"):  # a variance within rounding of zero may be negative
            return np.sqrt(np.diag(self.robust_covariance))

    @property
    def correlations(self) -> Array:
        """Correlations of the unknowns [p, p], if residuals are independent; NaN where there is no standard error."""
        return optimize.correlations(self.standard.covariance)

    def in_units(self, covariance: Array) -> Array:
        """Convert a covariance of theta to one of the values, in their units."""
        return covariance * np.outer(self.natural_derivative, self.natural_derivative)

    @cached_property
    def gain_beyond_bounds(self) -> Array:
        """Decrease of the loss [p] that is expected of each unknown at a bound, were it and the others free.

        Zero for unknowns that no bound holds.
        """
        held = (self.at_lower & (self.gradient > 0)) | (self.at_upper & (self.gradient < 0))
        gains = np.zeros(len(self.labels))
        free = ~(self.at_lower | self.at_upper)
        for place in np.flatnonzero(held):
            columns = self.jacobian[:, free | (np.arange(held.size) == place)]
            step = np.linalg.lstsq(columns, self.residuals, rcond=None)[0]
            gains[place] = 0.5 * float(np.sum((columns @ step) ** 2))
        return gains


def estimate_uncertainty(objective: SceneObjective[Any], theta: Array) -> Uncertainty:
    """Estimate the errors of a fit to a measurement at its optimum, with one simulation of half the time step
    and, with dry friction, one of a sharper sign.

    Errors: optimize.FailedTrial if the motion at theta is not finite.
    """
    residuals, jacobian = objective.residuals(theta), objective.jacobian(theta)
    gradient = jacobian.T @ residuals
    near = 1e-6 * np.maximum(1.0, np.abs(theta))
    at_lower, at_upper = theta - objective.lower <= near, objective.upper - theta <= near
    plain = optimize.standard_errors(jacobian, residuals, active=at_lower | at_upper)
    standard, bread = _m_estimate(objective, theta, plain, at_lower | at_upper)
    split = split_residuals(objective.scene, residuals, jacobian)
    robust = optimize.correlated_covariance(
        [(each.jacobian, each.residuals, each.there) for each in split.series],
        split.extra_jacobian * split.extra_residuals[:, None],
        bread,
    )
    return Uncertainty(
        labels=tuple(objective.labels),
        unknowns=objective.unknowns,
        theta=theta,
        natural_derivative=objective.unknowns.natural_derivative(theta),
        residuals=residuals,
        jacobian=jacobian,
        gradient=gradient,
        standard=standard,
        robust_covariance=optimize.mark_unknown(robust, standard.values),
        half_step=change_by_half_step(objective, theta, residuals, jacobian, plain.spread),
        sharper_friction=change_by_sharper_friction(objective, theta, residuals, jacobian, plain.spread),
        at_lower=at_lower,
        at_upper=at_upper,
        series=split.series,
        holdout=predict_holdout(objective, theta, robust, (standard.sigma, standard.freedom)),
    )


def _m_estimate(
    objective: SceneObjective[Any], theta: Array, plain: optimize.StandardErrors, held: Array
) -> tuple[optimize.StandardErrors, Array]:
    """Compute the standard errors of a fit with a robust loss, and what its scores are multiplied by [p, p].

    They are those of the squares, `plain`, for a fit with squares.
    """
    loss = misfits.robust_loss(objective.scene.config.loss)
    if loss is None:
        return plain, plain.spread
    squares = objective.with_squares()
    residuals, jacobian = squares.residuals(theta), squares.jacobian(theta)
    standard = optimize.standard_errors(jacobian, residuals, active=held)
    split = split_residuals(squares.scene, residuals, jacobian)
    seen = np.concatenate([each.residuals[each.there] for each in split.series])
    sigma, curvature = optimize.m_estimate_sigma(loss, seen, int(np.count_nonzero(~held)))
    values = standard.values * sigma / standard.sigma
    return replace(standard, sigma=sigma, values=values), standard.spread / curvature
