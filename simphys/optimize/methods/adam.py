"""Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1), without its outer loop.

The gradient is first divided by its norm at the start, so that eps does not depend on the unit of the loss.

m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; step = -rate * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)
"""

from __future__ import annotations

import numpy as np

from simphys.optimize.methods.first_order import descend
from simphys.optimize.problem import Outcome, StageProblem

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
_LEARNING_RATE = 0.05


class _Moments:
    monotone = False

    def __init__(self, unit: float) -> None:
        self.unit = unit
        self.reset()

    def reset(self) -> None:
        self.first: np.ndarray | float = 0.0
        self.second: np.ndarray | float = 0.0
        self.count = 0

    def step(self, gradient: np.ndarray) -> np.ndarray:
        self.count += 1
        scaled = gradient / self.unit
        self.first = _BETA1 * self.first + (1 - _BETA1) * scaled
        self.second = _BETA2 * self.second + (1 - _BETA2) * scaled**2
        mean = self.first / (1 - _BETA1**self.count)
        size = np.sqrt(self.second / (1 - _BETA2**self.count))
        return -mean / (size + _EPSILON)


def adam(problem: StageProblem, learning_rate: float | None) -> Outcome:
    """Minimize by Adam; a step moves each component by about the learning rate (default 0.05)."""
    _, gradient = problem.value_and_gradient(problem.start)
    unit = float(np.linalg.norm(gradient)) or 1.0
    return descend(problem, _Moments(unit), _LEARNING_RATE if learning_rate is None else learning_rate)
