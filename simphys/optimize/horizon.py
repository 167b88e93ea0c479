"""Growing horizon: fit a short part of a motion first, to avoid the local minima of a fit to many oscillations.

Over N periods, a relative frequency error above about 1/N puts model and measurement out of phase, and descent ends in
a local minimum. A short horizon has no such minimum. Its optimum predicts the motion for some time beyond, and that is
how far the next stage goes: to the whole horizon if the optimum predicts all of it, or else half as far, and so on. A
chaotic motion, whose predictions fail soon, grows in small stages. A stage that ends at a much larger residual than the
one before has failed, and is tried again on a shorter horizon. The whole horizon alone decides about convergence.

Some unknowns (the damping, say) hardly affect a short horizon. So every stage but the last pulls each unknown towards
its value at the stage's start. The pull is as weak as prior knowledge of theta within +-1: its weight is the mean
squared residual (over 1^2), first that at the stage's start. A stage is solved again, with the pull of the residual
that it has reached, until that no longer falls, or is down at the noise: below it there is nothing to find. A motion
that starts at rest shows so little in its first part that rounding would be fitted there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from simphys.optimize.problem import BadStart, StageProblem

FIRST_FRACTION = 1 / 64
GRAIN = 1 / 1024
"""Fractions of the horizon are multiples of this."""
RESIDUALS_PER_UNKNOWN = 3
PREDICTED = 1 / 8
"""Root mean square of residuals, relative to that at the user's start, up to which an optimum predicts a motion."""
FAILED = 3.0
"""Growth of the root mean square residual from one stage to the next, beyond which the new one has failed."""
SHRINKS = 4
"""Number of times that a failed stage is tried on a shorter horizon."""
NOISE = 1.0
"""Root mean square of residuals that are noise, where they are in units of it."""
ROUNDING = 1e-6
"""Root mean square of residuals, relative to that at the user's start, that counts as noise where none is stated."""
WEAKER = 0.1
"""Part of its pull that a stage must reach to be solved again with the weaker one."""
INTERMEDIATE_TOLERANCE = 1e-4
"""Smallest tolerance of intermediate stages: their optimum is only a start, and more digits would be lost."""

ProblemAt = Callable[[float, np.ndarray], StageProblem]
"""Function from a fraction of the horizon and a start [p] to the problem there."""


@runtime_checkable
class Whitened(Protocol):
    """Objective that knows whether its residuals are in units of a stated noise."""

    @property
    def is_whitened(self) -> bool:
        """True if residuals of a perfect fit have the root mean square 1."""
        ...


@dataclass(frozen=True)
class Misfit:
    """Residuals of some part of the horizon."""

    squares: float
    count: int

    @property
    def rms(self) -> float:
        """Root mean square; 0 without residuals."""
        return float(np.sqrt(max(self.squares, 0.0) / self.count)) if self.count else 0.0

    def after(self, earlier: Misfit) -> Misfit:
        """The part behind an earlier end."""
        if not np.isfinite(self.squares):
            return self
        return Misfit(self.squares - earlier.squares, self.count - earlier.count)


@dataclass(frozen=True)
class Decision:
    """Judgement of a stage, and the fraction of the next one; None at the end."""

    accepted: bool
    farther: float | None


class HorizonGrowth:
    """Choice of the next fraction of the horizon."""

    def __init__(self, problem_at: ProblemAt, start: np.ndarray) -> None:
        """Find the first fraction: the least of 1/64, 1/32, ... with three residuals per unknown; and the noise."""
        self._problem_at = problem_at
        self._good: tuple[float, np.ndarray] | None = None
        self._shrinks = 0
        fraction = FIRST_FRACTION
        while fraction < 1 and self._residuals(fraction, start).size < RESIDUALS_PER_UNKNOWN * start.size:
            fraction *= 2
        self.first = min(fraction, 1.0)
        scale = self._measure(1.0, start).rms
        self._scale = scale if np.isfinite(scale) else self._measure(self.first, start).rms
        objective: Any = problem_at(1.0, start).objective
        whitened = isinstance(objective, Whitened) and objective.is_whitened
        self.noise = NOISE if whitened else ROUNDING * self._scale

    def decide(self, fraction: float, theta: np.ndarray) -> Decision:
        """Judge the optimum theta of the stage on `fraction`, and choose the next stage.

        Errors: BadStart if the motion of the optimum is not finite on any longer horizon.
        """
        if self._good is not None and self._shrinks < SHRINKS:
            before, earlier = self._good
            limit = max(FAILED * max(self._measure(before, earlier).rms, self.noise), GRAIN * self._scale)
            shorter = _round(0.5 * (before + fraction))
            if self._measure(fraction, theta).rms > limit and before < shorter < fraction:
                self._shrinks += 1
                return Decision(accepted=False, farther=shorter)
        self._good, self._shrinks = (fraction, theta), 0
        return Decision(accepted=True, farther=None if fraction >= 1 else self._next_fraction(fraction, theta))

    def _next_fraction(self, fraction: float, theta: np.ndarray) -> float:
        """Choose the largest fraction that an optimum predicts, and at least one grain more, predicted or not."""
        fitted = self._measure(fraction, theta)
        limit = max(FAILED * max(fitted.rms, self.noise), PREDICTED * self._scale)
        farther = 1.0
        while True:
            found = self._measure(farther, theta)
            tail = self._measure(_round(fraction + 0.75 * (farther - fraction)), theta)
            if max(found.after(fitted).rms, found.after(tail).rms) <= limit:
                return farther
            shorter = _round(fraction + 0.5 * (farther - fraction))
            if shorter >= farther:
                if not np.isfinite(found.squares):
                    raise BadStart
                return farther
            farther = shorter

    def _residuals(self, fraction: float, theta: np.ndarray) -> np.ndarray:
        return self._problem_at(fraction, theta).residuals(theta)

    def _measure(self, fraction: float, theta: np.ndarray) -> Misfit:
        try:
            residuals = self._residuals(fraction, theta)
        except BadStart:
            return Misfit(np.inf, 1)
        squares = float(residuals @ residuals)
        return Misfit(squares if np.isfinite(squares) else np.inf, residuals.size)


def _round(fraction: float) -> float:
    """Round up to a whole number of grains."""
    return min(float(np.ceil(fraction / GRAIN - 1e-9)) * GRAIN, 1.0)


def add_pull(problem: StageProblem) -> None:
    """Set the pull of an intermediate stage towards its start."""
    residuals = problem.residuals(problem.start)
    if not np.isfinite(residuals).all():
        raise BadStart
    problem.pull = float(residuals @ residuals) / residuals.size


def is_worth_another_round(problem: StageProblem, before: float, noise: float) -> bool:
    """Return True if a stage has ended at residuals so much smaller that its pull was too strong.

    `before`: pull of the round before, infinite in the first one; each round must have a weaker pull. `noise`: root
    mean square of residuals down to which a round is worth it.
    """
    if problem.pull == 0 or problem.best is None:
        return False
    residuals = problem.residuals(problem.best.theta)[: -problem.start.size]
    squares, present = float(residuals @ residuals), np.count_nonzero(residuals)  # missing samples have none
    if squares <= noise**2 * present:
        return False
    return problem.pull < WEAKER * before and squares / residuals.size < WEAKER * problem.pull
