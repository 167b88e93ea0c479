"""Quasi-Newton method with bounds: scipy's L-BFGS-B, with our gradient and made to survive failed trials.

Measured with scipy 1.17: with a NaN in the line search it goes outward by factors of four and ends with ABNORMAL; with
an infinity it stops where it is and reports convergence. So a failed trial is presented to the line search as a wall:
a finite loss, higher than at the line's origin and rising outward. The line search never accepts it, interpolates to a
shorter step, and takes no curvature from it.
"""

from __future__ import annotations

import numpy as np

from simphys.optimize.methods.convergence import decrease_left
from simphys.optimize.problem import BadStart, Iterate, Outcome, StageProblem


def lbfgs(problem: StageProblem) -> Outcome:
    """Minimize a loss by its gradient.

    Stops if an iteration lowers the loss by less than the tolerance times the loss, or if the largest component of the
    gradient that no bound holds is below the tolerance times the loss at the start.
    """
    from scipy.optimize import minimize

    loss, gradient = problem.value_and_gradient(problem.start)
    if not np.isfinite(loss):
        raise BadStart
    problem.accept(problem.start, loss, gradient)
    assert problem.last is not None
    # scipy's test of the gain is relative to max(|loss|, 1). With the start's loss scaled to 2^20 by a power of two,
    # it is relative to the loss down to a millionth of the start's, whatever the unit of the loss.
    unit = float(2.0 ** (20 - np.round(np.log2(abs(loss))))) if loss != 0 else 1.0
    origin, before = problem.last, problem.last
    trials: dict[bytes, Iterate] = {}

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = problem.value_and_gradient(theta)
        if not np.isfinite(loss):
            loss, gradient = origin.loss + abs(float(origin.gradient @ (theta - origin.theta))), -origin.gradient
        else:
            trials[theta.tobytes()] = Iterate(theta.copy(), loss, gradient)
        return loss * unit, gradient * unit

    def report_iterate(theta: np.ndarray) -> None:
        nonlocal origin, before
        if not np.array_equal(theta, origin.theta):  # the line search may fall back to its origin
            before = origin
        origin = trials[theta.tobytes()]
        trials.clear()
        trials[theta.tobytes()] = origin
        problem.accept(origin.theta, origin.loss, origin.gradient)
        if is_stationary(origin):
            raise StopIteration

    # scipy's own test projects the step on the bounds, and so compares a length in theta with a tolerance of gradients:
    # near a bound, any start would count as converged.
    allowed = problem.tolerance * abs(loss)

    def is_stationary(at: Iterate) -> bool:
        """True if every component of the gradient is below the tolerance or held by a bound."""
        out = ((at.theta <= problem.lower) & (at.gradient > 0)) | ((at.theta >= problem.upper) & (at.gradient < 0))
        return bool(np.abs(np.where(out, 0.0, at.gradient)).max(initial=0.0) <= allowed)

    converged = Outcome("converged", "the gradient or the last gain is below the tolerance")
    if is_stationary(origin):
        return converged
    end = minimize(
        objective,
        problem.start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(problem.lower, problem.upper, strict=True)),
        callback=report_iterate,
        options={
            "ftol": problem.tolerance,
            "gtol": 0.0,
            "maxiter": problem.iterations,
            "maxfun": 100 * problem.iterations,
        },
    )
    if is_stationary(origin):
        return converged
    left = decrease_left(problem, before, origin)
    if end.status == 1:
        return Outcome("iteration limit", f"stopped after {problem.index} iterations before it converged")
    if end.status == 0 and (
        problem.failed_trials == 0 or left <= 1e3 * problem.tolerance * max(abs(origin.loss), 1 / unit)
    ):
        return converged
    if end.status != 0 and left <= problem.tolerance * abs(origin.loss):
        return Outcome("converged", "no lower loss within rounding: the decrease left is below the tolerance")
    if problem.failed_trials > 0:
        return Outcome("failed", "stopped in front of a region where every trial blows up, with the loss still falling")
    return Outcome("failed", "the line search found no lower loss: the gradient may be inexact or tolerance too small")
