"""One stage of a minimization, as given to a method: it survives failed trials, reports iterates and keeps the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from simphys.optimize.evaluations import Evaluations, Objective, Row
from simphys.optimize.randomized import Estimate, failed_estimate
from simphys.optimize.result import FailedTrial, IterationRecord, Mixture, Status
from simphys.optimize.stages import Stage

WHOLE = Stage()
"""The single stage of a fit without stages."""
IN_FRONT = (
    "stopped in front of a region where every trial blows up or is unphysical, the loss still falling: if a value is "
    "at its physical limit, state that as its bounds, where a search may end"
)
FAILURES = (FailedTrial, ArithmeticError, np.linalg.LinAlgError)
"""Exceptions by which an objective reports a failed trial."""


class BadStart(Exception):
    """Error for a stage whose start cannot be evaluated."""


class Outcome(NamedTuple):
    """Final status of a method on a problem."""

    status: Status
    message: str


class Iterate(NamedTuple):
    theta: np.ndarray
    loss: float
    gradient: np.ndarray
    mixture: Mixture | None = None


class StageProblem:
    """Objective of one stage, from one start, within bounds.

    With `smooth`, loss and gradient are estimates of those of the smoothed loss. A pull w adds the term
    w/2 |theta - start|^2 to the loss, and the rows sqrt(w) (theta - start) to the residuals. A failed evaluation
    returns NaN in all entries, and is counted.
    """

    def __init__(
        self,
        objective: Objective,
        evaluations: Evaluations,
        *,
        start: np.ndarray,
        iterations: int,
        tolerance: float,
        report: Callable[[IterationRecord], None],
        smooth: Callable[[Objective, np.ndarray], Estimate] | None = None,
        scope: Stage = WHOLE,
        stage: int = 0,
        stages: int = 1,
    ) -> None:
        self.objective = objective
        self.evaluations = evaluations
        self.start = start
        self.lower = np.asarray(objective.lower, dtype=np.float64)
        self.upper = np.asarray(objective.upper, dtype=np.float64)
        self.scope = scope
        self.stage = stage
        self.stages = stages
        self.iterations = iterations
        self.tolerance = tolerance
        self.pull = 0.0
        self.best: Iterate | None = None
        self.last: Iterate | None = None
        self.index = -1
        self._report = report
        self._smooth = smooth
        self._failed_before = evaluations.failed
        self._memory: dict[str, Row] = {}

    @property
    def found(self) -> Iterate:
        """Best iterate of a search that has accepted one."""
        assert self.best is not None, "a search begins with its start"
        return self.best

    @property
    def exhausted(self) -> bool:
        """True if all iterations have been used."""
        return self.index >= self.iterations

    @property
    def noisy(self) -> bool:
        """True if losses are estimates, which can be compared only up to noise."""
        return self._smooth is not None

    @property
    def failed_trials(self) -> int:
        """Number of failed trials in this stage."""
        return self.evaluations.failed - self._failed_before

    def project(self, theta: np.ndarray) -> np.ndarray:
        """Find the nearest point within the bounds."""
        return np.clip(theta, self.lower, self.upper)

    def project_gradient(self, theta: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Set to zero the components of the gradient whose descent points out of an active bound."""
        stuck = ((theta <= self.lower) & (gradient > 0)) | ((theta >= self.upper) & (gradient < 0))
        return np.where(stuck, 0.0, gradient)

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute loss and gradient [p]; all NaN if either is not finite."""

        def compute(at: np.ndarray) -> dict[str, np.ndarray]:
            try:
                with np.errstate(all="ignore"):
                    if self._smooth is not None:
                        return self._smooth(self.objective, at).arrays()
                    loss, gradient = self.objective.value_and_gradient(at)
            except FAILURES:
                if self._smooth is not None:
                    return failed_estimate(at.size).arrays()
                loss, gradient = np.nan, np.full_like(at, np.nan)
            return _finite_or_nan(loss=loss, gradient=gradient)

        row = self._ask("value_and_gradient", theta, compute)
        away = theta - self.start
        loss = float(row["loss"]) + 0.5 * self.pull * float(away @ away)
        return loss, np.asarray(row["gradient"]) + self.pull * away

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """Compute the residuals [m], and p more for a pull; all NaN if one or the sum of squares is not finite."""

        def compute(at: np.ndarray) -> dict[str, np.ndarray]:
            try:
                with np.errstate(all="ignore"):
                    residual = np.asarray(self.objective.residuals(at), dtype=np.float64)
                    squares = float(residual @ residual)
            except FAILURES:
                if "residuals" not in self._memory:
                    raise BadStart from None
                residual, squares = np.full_like(self._memory["residuals"]["residual"], np.nan), np.nan
            return {"residual": residual if np.isfinite(squares) else np.full_like(residual, np.nan)}

        residual = np.asarray(self._ask("residuals", theta, compute)["residual"])
        return residual if self.pull == 0 else np.concatenate([residual, np.sqrt(self.pull) * (theta - self.start)])

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        """Compute the derivative of the residuals [m, p]; all NaN if an entry is not finite."""

        def compute(at: np.ndarray) -> dict[str, np.ndarray]:
            try:
                with np.errstate(all="ignore"):
                    jacobian = self.objective.jacobian(at)
            except FAILURES:
                jacobian = np.full((self._memory["residuals"]["residual"].size, at.size), np.nan)
            return _finite_or_nan(jacobian=jacobian)

        jacobian = np.asarray(self._ask("jacobian", theta, compute)["jacobian"])
        return jacobian if self.pull == 0 else np.vstack([jacobian, np.sqrt(self.pull) * np.eye(theta.size)])

    def accept(self, theta: np.ndarray, loss: float, gradient: np.ndarray) -> None:
        """Report an iterate, and keep it if it is the best."""
        step = 0.0 if self.last is None else float(np.linalg.norm(theta - self.last.theta))
        self.last = Iterate(theta.copy(), float(loss), np.array(gradient), self._mixture())
        if self.best is None or self.last.loss < self.best.loss:
            self.best = self.last
        self.index += 1
        norm = float(np.linalg.norm(self.project_gradient(theta, gradient)))
        at = (self.stage, self.stages, self.scope.horizon, self.index, self.last.loss, norm, step, theta.copy())
        mixture = self.last.mixture
        self._report(IterationRecord(*at, lowpass=self.scope.lowpass, mixture=mixture, gradient=np.array(gradient)))

    def _mixture(self) -> Mixture | None:
        """Mixture of the last evaluation. It is the accepted one, as gradient methods make no other evaluation."""
        if self._smooth is None:
            return None
        row = self._memory["value_and_gradient"]
        return Mixture(**{each.name: float(row[each.name]) for each in fields(Mixture)})

    def _ask(self, quantity: str, theta: np.ndarray, compute: Callable[[np.ndarray], dict[str, np.ndarray]]) -> Row:
        """Evaluate a quantity at theta, or return its last evaluation if theta is the same."""
        known = self._memory.get(quantity)
        if known is not None and np.asarray(known["theta"]).tobytes() == theta.tobytes():
            return known
        row = self.evaluations.evaluate(f"evaluations/{self.scope.name}/{quantity}", theta, compute)
        if any(np.isnan(array).any() for array in row.values()):
            self.evaluations.failed += 1
        self._memory[quantity] = row
        return row


def _finite_or_nan(**values: object) -> dict[str, np.ndarray]:
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
    if all(np.isfinite(array).all() for array in arrays.values()):
        return arrays
    return {name: np.full_like(array, np.nan) for name, array in arrays.items()}
