"""Reports of a minimization: a record for each iteration and a result at the end, even if it was interrupted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Status = Literal["converged", "iteration limit", "failed", "interrupted"]


class FailedTrial(RuntimeError):
    """Error by which an objective reports a simulation that is not finite; the search goes on."""


@dataclass(frozen=True)
class Mixture:
    """Mixture of two estimates for the gradient of a smoothed loss (randomized.py)."""

    plain_loss: float
    """Loss without smoothing, at the same theta."""
    alpha: float
    """Share of the first-order estimate; the rest is the zeroth-order one."""
    alpha_by_variance: float
    """Share of least variance. alpha is smaller if the two estimates contradict each other: the loss jumps."""
    variance_first: float
    """Variance of the first-order estimate, a mean over samples; summed over components; (loss / unit of theta)^2."""
    variance_zeroth: float
    """Variance of the zeroth-order estimate, likewise."""

    @property
    def limited(self) -> bool:
        """True if the accuracy limits alpha to less than the share of least variance."""
        return self.alpha < self.alpha_by_variance


@dataclass(frozen=True)
class IterationRecord:
    """Accepted iterate, in optimizer coordinates (theta); the loss is the one that the stage minimizes."""

    stage: int
    """Number of the stage, from 0."""
    stages: int
    """Number of stages: 1 unless the horizon grows, or the fit is by frequency."""
    horizon: float
    """Fraction of the horizon that the stage fits."""
    index: int
    """Number of the iteration in its stage; 0 is the stage's start."""
    loss: float
    gradient_norm: float
    """Euclidean norm of the gradient without the components that point out of an active bound."""
    step_length: float
    """Euclidean distance from the previous iterate; 0 at a stage's start."""
    theta: np.ndarray
    lowpass: float | None = None
    """Largest frequency [Hz] of the misfits that the stage fits, in a fit by frequency; inf: all frequencies."""
    mixture: Mixture | None = None
    """Mixture of the gradient, with smoothing."""
    gradient: np.ndarray | None = None
    """Gradient of the loss by theta."""


@dataclass(frozen=True)
class Result:
    """Best point of a search, and the way in which the search ended."""

    theta: np.ndarray
    """Iterate of lowest loss in the last stage that ran [p]; the start if none was evaluated."""
    loss: float
    """Loss at theta on the horizon below; NaN if nothing was evaluated."""
    horizon: float
    """Fraction of the horizon that the loss belongs to: below 1 only if a growing horizon did not reach its end."""
    status: Status
    """Status at the end; only 'converged' is a success."""
    message: str
    iterations: int
    """Iterations of all stages."""
    evaluations: int
    """Evaluations of all stages, including those taken from a log."""
    failed_trials: int
    """Number of evaluations that gave NaN, infinity or a FailedTrial."""
    history: tuple[IterationRecord, ...]
    lowpass: float | None = None
    """Largest frequency [Hz] of the misfits in the loss, in a fit by frequency; inf: all frequencies."""
    mixture: Mixture | None = None
    """Mixture of the gradient at theta, with smoothing."""

    @property
    def success(self) -> bool:
        """True if the search converged on the whole horizon."""
        return self.status == "converged"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a minimization. `result` holds the best point so far, and the log every finished evaluation."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.message)
        self.result = result
