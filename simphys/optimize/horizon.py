"""Growing horizon: fit a short part of a motion first, to avoid the local minima of a fit to many oscillations.

Over N periods, a relative frequency error above about 1/N puts model and measurement out of phase, and descent ends in
a local minimum. A short horizon has no such minimum. Its optimum predicts the motion well enough to start on twice the
horizon, and so on up to the whole horizon, which alone decides about convergence.

Some unknowns (the damping, say) hardly affect a short horizon. So every stage but the last pulls each unknown towards
its value at the stage's start. The pull is as weak as prior knowledge of theta within +-1: its weight is the mean
squared residual at the stage's start (over 1^2). It holds the unknowns that the data do not determine, and hardly
affects the others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simphys.optimize.problem import BadStart, StageProblem

FIRST_FRACTION = 1 / 64
GROWTH = 2
RESIDUALS_PER_UNKNOWN = 3
INTERMEDIATE_TOLERANCE = 1e-4
"""Smallest tolerance of intermediate stages: their optimum is only a start, and more digits would be lost."""


def growing_fractions(problem_at: Callable[[float], StageProblem]) -> list[float]:
    """List fractions of the horizon, doubling up to 1; the first has at least three residuals per unknown.

    problem_at(fraction): the problem on that fraction, from the user's start.
    """
    fraction = FIRST_FRACTION
    while fraction < 1:
        problem = problem_at(fraction)
        if problem.residuals(problem.start).size >= RESIDUALS_PER_UNKNOWN * problem.start.size:
            break
        fraction *= GROWTH
    fractions = [min(fraction, 1.0)]
    while fractions[-1] < 1:
        fractions.append(min(GROWTH * fractions[-1], 1.0))
    return fractions


def add_pull(problem: StageProblem) -> None:
    """Set the pull of an intermediate stage towards its start."""
    residuals = problem.residuals(problem.start)
    if not np.isfinite(residuals).all():
        raise BadStart
    problem.pull = float(residuals @ residuals) / residuals.size
