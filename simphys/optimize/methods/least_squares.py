"""Nonlinear least squares by scipy's trust region reflective method (trf), with our Jacobian.

trf shrinks its region if a trial's residuals are not finite (read in its source and tested here). Three things it does
not do: survive a Jacobian that is not finite (it raises); report iterates, before scipy 1.16; and distinguish small
steps at convergence from small steps towards a wall of failed trials.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simphys.optimize.problem import IN_FRONT, BadStart, Outcome, StageProblem

_BLOCKED_LIMIT = 30
_EVALUATIONS_PER_ITERATION = 100
_REASONS = {
    1: "the gradient is below the tolerance",
    2: "the last step lowered the loss by less than the tolerance",
    3: "the last step was shorter than the tolerance",
    4: "the last step and its gain are below the tolerance",
}


class _Exhausted(Exception):
    """Signal that all iterations have been used."""


class _Blocked(Exception):
    """Signal that the Jacobian is not finite at a point with finite residuals."""


def least_squares(problem: StageProblem) -> Outcome:
    """Minimize half the sum of squared residuals.

    Stops if the relative change of the loss, or of theta, in a step is below the tolerance, or if the gradient is below
    the tolerance times the loss at the start.
    """
    from scipy.optimize import least_squares as trf

    search = _Search(problem)
    while len(search.blocked) <= _BLOCKED_LIMIT:
        try:
            end = trf(
                search.residuals,
                problem.found.theta,
                jac=search.jacobian,
                bounds=(problem.lower, problem.upper),
                method="trf",
                x_scale="jac",
                ftol=problem.tolerance,
                xtol=problem.tolerance,
                gtol=problem.tolerance,
                max_nfev=_EVALUATIONS_PER_ITERATION * problem.iterations,
            )
        except _Blocked:
            continue
        except _Exhausted:
            return Outcome("iteration limit", f"stopped after {problem.index} iterations before it converged")
        return search.judge(end)
    return Outcome("failed", f"the Jacobian was not finite at {len(search.blocked)} points")


class _Search:
    """Residuals and Jacobian as trf wants them, scaled, and what has happened so far. Errors: BadStart."""

    def __init__(self, problem: StageProblem) -> None:
        residuals = problem.residuals(problem.start)
        loss, jacobian = _loss(residuals), problem.jacobian(problem.start)
        if not np.isfinite(loss) or not np.isfinite(jacobian).all():
            raise BadStart
        self.problem, self.start_loss = problem, loss
        # Scaling by a power of two brings the loss at the start, and the absolute tolerance on the gradient, to order
        # one.
        self.unit = float(2.0 ** -np.round(0.5 * np.log2(loss))) if loss > 0 else 1.0
        self.blocked: list[bytes] = []
        """Points at which the Jacobian is not finite."""
        problem.accept(problem.start, loss, jacobian.T @ residuals)

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        residual = self.problem.residuals(theta)
        return np.full_like(residual, np.nan) if theta.tobytes() in self.blocked else residual * self.unit

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        """Compute the Jacobian and report the iterate: trf evaluates it at accepted points only."""
        problem = self.problem
        residual, matrix = problem.residuals(theta), problem.jacobian(theta)
        if not np.isfinite(matrix).all():
            self.blocked.append(theta.tobytes())
            raise _Blocked
        assert problem.last is not None
        if np.array_equal(theta, problem.last.theta):
            return matrix * self.unit
        problem.accept(theta, _loss(residual), matrix.T @ residual)
        if problem.exhausted:
            raise _Exhausted
        return matrix * self.unit

    def judge(self, end: Any) -> Outcome:
        """Make the outcome of trf's result."""
        problem = self.problem
        if end.status == 0:
            return Outcome("iteration limit", f"stopped after {end.nfev} trials before it converged")
        if problem.failed_trials > 0:
            left = _decrease_left(problem, end.jac / self.unit, end.fun / self.unit)
            if left > _allowed_decrease(problem, self.start_loss):
                return Outcome("failed", IN_FRONT)
        return Outcome("converged", _REASONS[end.status])


def _loss(residuals: np.ndarray) -> float:
    return 0.5 * float(residuals @ residuals)


def _decrease_left(problem: StageProblem, jacobian: np.ndarray, residuals: np.ndarray) -> float:
    """Predict the gain of a Gauss-Newton step in the unknowns that no bound holds."""
    assert problem.best is not None
    theta, gradient = problem.best.theta, jacobian.T @ residuals
    near = 1e-6 * np.maximum(1.0, np.abs(theta))
    held = ((theta - problem.lower <= near) & (gradient > 0)) | ((problem.upper - theta <= near) & (gradient < 0))
    free = jacobian[:, ~held]
    step = np.linalg.lstsq(free, residuals, rcond=None)[0]
    return _loss(free @ step)


def _allowed_decrease(problem: StageProblem, start_loss: float) -> float:
    assert problem.best is not None
    return max(1e3 * problem.tolerance, 1e-6) * problem.best.loss + problem.tolerance * start_loss
