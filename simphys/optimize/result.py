"""What a minimization reports: one record an iteration, one result at the end, also of an interrupted one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Status = Literal["converged", "iteration limit", "failed", "interrupted"]


class BlowUp(RuntimeError):
    """An objective raises this where the simulation left the finite numbers: that trial failed, the search goes on."""


@dataclass(frozen=True)
class Mixture:
    """How the gradient of a smoothed loss was mixed from two estimates (randomized.py)."""

    plain_loss: float
    """The loss without smoothing, at the same theta."""
    alpha: float
    """Share of the first-order estimate; the zeroth-order one has the rest."""
    alpha_by_variance: float
    """The share of least variance. alpha is below it where the two estimates contradict each other: the loss jumps."""
    variance_first: float
    """Of the first-order estimate, the mean over all samples, summed over components; in (loss / unit of theta)^2."""
    variance_zeroth: float
    """Of the zeroth-order estimate, likewise."""

    @property
    def limited(self) -> bool:
        """Whether the accuracy kept alpha below the share of least variance."""
        return self.alpha < self.alpha_by_variance


@dataclass(frozen=True)
class IterationRecord:
    """An accepted iterate. Numbers are in optimizer coordinates (theta), losses those that the stage minimizes."""

    stage: int
    """Number of the stage, from 0."""
    stages: int
    """How many stages there are: 1 unless the horizon grows, or the fit goes by frequency."""
    horizon: float
    """Fraction of the horizon that the stage sees."""
    index: int
    """Number of the iteration in its stage; 0 is the stage's start."""
    loss: float
    gradient_norm: float
    """Euclidean norm of the gradient without the components that point out of an active bound."""
    step_length: float
    """Euclidean distance from the iterate before; 0 at a stage's start."""
    theta: np.ndarray
    lowpass: float | None = None
    """In a fit by frequency the one [Hz] up to which the stage sees misfits; inf: all of them."""
    mixture: Mixture | None = None
    """With smoothing: where the gradient came from, and the loss without."""


@dataclass(frozen=True)
class Result:
    """The best point found and an honest account of how the search ended."""

    theta: np.ndarray
    """[p] the iterate of lowest loss in the last stage that ran (the start where none was evaluated)."""
    loss: float
    """Loss at theta on the horizon below; NaN where nothing was evaluated."""
    horizon: float
    """Fraction of the horizon that the loss belongs to: below 1 only if a growing horizon did not reach its end."""
    status: Status
    """Only 'converged' is a success."""
    message: str
    iterations: int
    """Iterations of all stages."""
    evaluations: int
    """Evaluations of all stages, those taken from a log included."""
    failed_trials: int
    """Evaluations that gave NaN, infinity or a BlowUp and were survived."""
    history: tuple[IterationRecord, ...]
    lowpass: float | None = None
    """The frequency [Hz] that the loss belongs to, in a fit by frequency; inf: all of them."""
    mixture: Mixture | None = None
    """With smoothing, at theta: where the gradient came from, and the loss without."""

    @property
    def success(self) -> bool:
        """Whether the search converged on the whole horizon."""
        return self.status == "converged"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a minimization: `result` holds the best point so far, the log every finished evaluation."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.message)
        self.result = result
