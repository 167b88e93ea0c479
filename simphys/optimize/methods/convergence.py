"""Convergence estimate for gradient methods, independent of the length of their steps."""

from __future__ import annotations

import numpy as np

from simphys.optimize.problem import Iterate, StageProblem


def decrease_left(problem: StageProblem, before: Iterate, now: Iterate) -> float:
    """Estimate loss(now) minus the loss at the minimum: |g|^2 / (2 c), with the curvature c along the last step.

    c = |change of gradient| / |step| tends to the curvature along the slowest direction as descent proceeds. g is the
    gradient without the components that an active bound holds. Infinity if the last step shows no curvature.
    """
    gradient = problem.project_gradient(now.theta, now.gradient)
    if not gradient.any():
        return 0.0
    change = gradient - problem.project_gradient(before.theta, before.gradient)
    step = now.theta - before.theta
    if not change.any() or not step.any():
        return np.inf
    return 0.5 * float(gradient @ gradient) * float(np.linalg.norm(step) / np.linalg.norm(change))
