"""A horizon that grows: how a fit of many oscillations escapes the local minima of the whole.

Over N periods a frequency that is wrong by more than about 1/N puts model and measurement out of phase, and descent
ends in a local minimum. On a horizon short enough there is no such minimum; its optimum predicts the motion well
enough to start on twice the horizon; and so on to the whole, which alone decides about convergence.

A short horizon hardly shows some unknowns (the damping, say). So the stages before the last pull every unknown towards
the value that it had at the stage's start, as weakly as a prior knowledge of theta within +-1 would: the pull is
the mean squared residual at the stage's start (over 1^2). It holds what the data do not show and leaves the rest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simphys.optimize.problem import BadStart, Problem

FIRST_FRACTION = 1 / 64
GROWTH = 2
RESIDUALS_PER_UNKNOWN = 3
INTERMEDIATE_TOLERANCE = 1e-4
"""An intermediate optimum is only a start: digits beyond these are lost at the next stage."""


def growing_fractions(problem_at: Callable[[float], Problem]) -> list[float]:
    """Fractions of the horizon, doubling up to 1, from the first that shows three residuals an unknown.

    problem_at(fraction): the problem from the user's start on that fraction.
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


def hold(problem: Problem) -> None:
    """Give an intermediate stage its pull towards the start."""
    residuals = problem.residuals(problem.start)
    if not np.isfinite(residuals).all():
        raise BadStart
    problem.pull = float(residuals @ residuals) / residuals.size
