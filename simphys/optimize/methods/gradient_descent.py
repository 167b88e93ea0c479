"""Steepest descent: theta' = theta - rate * gradient, with a rate that is halved if the loss does not fall."""

from __future__ import annotations

import numpy as np

from simphys.optimize.methods.first_order import descend
from simphys.optimize.problem import Outcome, StageProblem

_FIRST_STEP = 0.01


class _SteepestDescent:
    def __init__(self, monotone: bool) -> None:
        self.monotone = monotone

    def step(self, gradient: np.ndarray) -> np.ndarray:
        return -gradient

    def reset(self) -> None:
        """Do nothing: no earlier gradients are stored."""


def gradient_descent(problem: StageProblem, learning_rate: float | None) -> Outcome:
    """Minimize by steepest descent. With the default learning rate, the first step moves the largest component by 0.01.

    For a smoothed loss, which is an estimate, every finite step is accepted, whatever the rate.
    """
    if learning_rate is None:
        _, gradient = problem.value_and_gradient(problem.start)
        largest = float(np.max(np.abs(gradient)))
        learning_rate = _FIRST_STEP / largest if largest > 0 else 1.0
    return descend(problem, _SteepestDescent(monotone=not problem.noisy), learning_rate)
