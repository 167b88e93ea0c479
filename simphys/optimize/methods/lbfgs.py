"""Quasi-Newton method with bounds: scipy's L-BFGS-B, with our gradient and made to survive failed trials.

Measured with scipy 1.17: with a NaN in the line search it goes outward by factors of four and ends with ABNORMAL; with
an infinity it stops where it is and reports convergence. So a failed trial is presented to the line search as a wall:
a finite loss, higher than at the line's origin and rising outward. The line search never accepts it, interpolates to a
shorter step, and takes no curvature from it.
"""

from __future__ import annotations

import numpy as np

from simphys.optimize.methods.convergence import decrease_left
from simphys.optimize.problem import IN_FRONT, BadStart, Iterate, Outcome, StageProblem

_CONVERGED = Outcome("converged", "the gradient or the last gain is below the tolerance")


def lbfgs(problem: StageProblem) -> Outcome:
    """Minimize a loss by its gradient.

    Stops if an iteration lowers the loss by less than the tolerance times the loss, or if the largest component of the
    gradient that no bound holds is below the tolerance times the loss at the start.
    """
    from scipy.optimize import minimize

    search = _Search(problem)
    if search.is_stationary():
        return _CONVERGED
    end = minimize(
        search.evaluate,
        problem.start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(problem.lower, problem.upper, strict=True)),
        callback=search.accept,
        options={
            "ftol": problem.tolerance,
            "gtol": 0.0,
            "maxiter": problem.iterations,
            "maxfun": 100 * problem.iterations,
        },
    )
    return _CONVERGED if search.is_stationary() else search.judge(end.status)


class _Search:
    """Loss and callback as scipy wants them, and the iterates of its line searches. Errors: BadStart."""

    def __init__(self, problem: StageProblem) -> None:
        loss, gradient = problem.value_and_gradient(problem.start)
        if not np.isfinite(loss):
            raise BadStart
        problem.accept(problem.start, loss, gradient)
        assert problem.last is not None
        self.problem = problem
        # scipy's test of the gain is relative to max(|loss|, 1). With the start's loss scaled to 2^20 by a power of
        # two, it is relative to the loss down to a millionth of the start's, whatever the unit of the loss.
        self.unit = float(2.0 ** (20 - np.round(np.log2(abs(loss))))) if loss != 0 else 1.0
        self.allowed = problem.tolerance * abs(loss)
        self.origin = self.before = problem.last
        """The iterate from which the line search begins, and the one before."""
        self.trials: dict[bytes, Iterate] = {}

    def evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute the scaled loss and gradient; those of a wall for a failed trial."""
        loss, gradient = self.problem.value_and_gradient(theta)
        if not np.isfinite(loss):
            origin = self.origin
            loss, gradient = origin.loss + abs(float(origin.gradient @ (theta - origin.theta))), -origin.gradient
        else:
            self.trials[theta.tobytes()] = Iterate(theta.copy(), loss, gradient)
        return loss * self.unit, gradient * self.unit

    def accept(self, theta: np.ndarray) -> None:
        """Report the end of a line search, and stop at a stationary one."""
        if not np.array_equal(theta, self.origin.theta):  # the line search may fall back to its origin
            self.before = self.origin
        self.origin = origin = self.trials[theta.tobytes()]
        self.trials = {theta.tobytes(): origin}
        self.problem.accept(origin.theta, origin.loss, origin.gradient)
        if self.is_stationary():
            raise StopIteration

    def is_stationary(self) -> bool:
        """True if every component of the last iterate's gradient is below the tolerance or held by a bound.

        scipy's own test projects the step on the bounds, and so compares a length in theta with a tolerance of
        gradients: near a bound, any start would count as converged.
        """
        at, problem = self.origin, self.problem
        out = ((at.theta <= problem.lower) & (at.gradient > 0)) | ((at.theta >= problem.upper) & (at.gradient < 0))
        return bool(np.abs(np.where(out, 0.0, at.gradient)).max(initial=0.0) <= self.allowed)

    def judge(self, status: int) -> Outcome:
        """Make the outcome of a search that ended with scipy's `status`, not at a stationary iterate."""
        problem, loss = self.problem, abs(self.origin.loss)
        left = decrease_left(problem, self.before, self.origin)
        if status == 1:
            return Outcome("iteration limit", f"stopped after {problem.index} iterations before it converged")
        if status == 0 and (problem.failed_trials == 0 or left <= 1e3 * problem.tolerance * max(loss, 1 / self.unit)):
            return _CONVERGED
        if status != 0 and left <= problem.tolerance * loss:
            return Outcome("converged", "no lower loss within rounding: the decrease left is below the tolerance")
        if problem.failed_trials > 0:
            return Outcome("failed", IN_FRONT)
        message = "the line search found no lower loss: the gradient may be inexact or tolerance too small"
        return Outcome("failed", message)
