"""Least squares from many starts in lockstep: all trials of an iteration are evaluated as one batch.

Levenberg's and Marquardt's method with the scaling of Moré (1978), and projection onto bounds: an unknown at a bound is
held if its gradient points outward. Each start has a damping of its own, and rests once it has converged. On a horizon
that grows, by doubling, starts that have met at one point go on as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

Array = np.ndarray
FIRST_DAMPING, LEAST_DAMPING, LARGEST_DAMPING = 1e-3, 1e-9, 1e9
EASIER, HARDER = 0.2, 5.0
"""Factors of the damping after a step that lowers the loss, and after one that does not."""
MET = 1e-5
"""Distance of two points [theta] that count as one."""


class Batched(Protocol):
    """Residuals and Jacobians of several thetas [B, p] at once; NaN for those that fail."""

    def residuals(self, thetas: Array) -> Array:
        """Compute residuals [B, m]."""
        ...

    def jacobians(self, thetas: Array) -> Array:
        """Compute Jacobians [B, m, p]."""
        ...


@dataclass(frozen=True)
class Ends:
    """Ends of all starts."""

    theta: Array
    """[B, p]"""
    loss: Array
    """[B]; infinite for starts that fail."""
    converged: Array
    """True for those that converged [B]."""
    motions: int
    """Number of motions that were simulated, with or without tangents."""


def minimize_from_many(
    stages: Sequence[Batched],
    starts: Array,
    lower: Array,
    upper: Array,
    *,
    iterations: int = 50,
    tolerance: float = 1e-8,
    on_iteration: Callable[[int, Array], None] | None = None,
) -> Ends:
    """Minimize half the sum of squared residuals from starts [B, p], on each stage from the ends of the one before.

    Every stage but the last pulls towards its start, as in `horizon.py`. `on_iteration` is called with the number of
    the stage and the losses.
    """
    tell = on_iteration or (lambda stage, losses: None)
    thetas, own, motions = starts.copy(), np.arange(len(starts)), 0
    for number, stage in enumerate(stages):
        last = number == len(stages) - 1
        search = _Search(stage, thetas, lower, upper, pull=not last)
        search.run(iterations, tolerance if last else max(tolerance, 1e-4), partial(tell, number))
        motions += search.motions
        thetas, converged, losses = search.theta, search.converged, search.loss
        if not last:
            thetas, merged = _merge(thetas, losses)
            own = merged[own]
    return Ends(thetas[own], losses[own], converged[own], motions)


def _merge(thetas: Array, losses: Array) -> tuple[Array, Array]:
    """Keep one of the points that have met; return them and, for each point, the number of its own."""
    kept: list[int] = []
    number = np.zeros(len(thetas), int)
    for place in np.argsort(losses):
        near = [i for i, other in enumerate(kept) if np.abs(thetas[place] - thetas[other]).max() <= MET]
        if near:
            number[place] = near[0]
        else:
            number[place] = len(kept)
            kept.append(int(place))
    return thetas[kept], number


class _Search:
    """One stage of all starts."""

    def __init__(self, problem: Batched, starts: Array, lower: Array, upper: Array, *, pull: bool) -> None:
        self.problem, self.start, self.lower, self.upper = problem, starts, lower, upper
        self.theta = starts.copy()
        self.residual = np.array(problem.residuals(starts))
        self.motions = len(starts)
        self.weight = np.mean(self.residual**2, axis=1) if pull else np.zeros(len(starts))
        self.loss = self._losses(self.residual, self.theta, np.arange(len(starts)))
        self.converged = np.zeros(len(starts), bool)
        self.damping = np.full(len(starts), FIRST_DAMPING)
        self.curvature = np.zeros((len(starts), starts.shape[1], starts.shape[1]))
        self.gradient = np.zeros_like(starts)
        self.scale = np.zeros_like(starts)

    def run(self, iterations: int, tolerance: float, tell: Callable[[Array], None]) -> None:
        active = np.isfinite(self.loss)
        fresh = active.copy()
        for _ in range(4 * iterations):
            if not active.any():
                return
            self._differentiate(np.flatnonzero(active & fresh))
            active &= np.isfinite(self.gradient).all(axis=1)
            where = np.flatnonzero(active)
            if not where.size:
                return
            step, gain = self._steps(where)
            done = gain <= tolerance * np.maximum(self.loss[where], 1e-300)
            self.converged[where[done]] = True
            active[where[done]] = False
            where, step = where[~done], step[~done]
            if not where.size:
                continue
            fresh[:] = False
            fresh[self._try(where, step)] = True
            active &= self.damping < LARGEST_DAMPING
            tell(self.loss)

    def _losses(self, residual: Array, theta: Array, where: Array) -> Array:
        away = theta - self.start[where]
        with np.errstate(over="ignore", invalid="ignore"):
            loss = 0.5 * (residual**2).sum(axis=1) + 0.5 * self.weight[where] * (away**2).sum(axis=1)
        return np.where(np.isfinite(loss), loss, np.inf)

    def _differentiate(self, where: Array) -> None:
        if not where.size:
            return
        jacobian = self.problem.jacobians(self.theta[where])
        self.motions += len(where)
        if jacobian.ndim != 3:
            self.gradient[where] = np.nan
            return
        weight, away = self.weight[where], self.theta[where] - self.start[where]
        self.curvature[where] = np.einsum("bmp,bmq->bpq", jacobian, jacobian)
        self.curvature[where] += weight[:, None, None] * np.eye(self.theta.shape[1])
        self.gradient[where] = np.einsum("bmp,bm->bp", jacobian, self.residual[where]) + weight[:, None] * away
        diagonal = np.diagonal(self.curvature[where], axis1=1, axis2=2)
        self.scale[where] = np.maximum(self.scale[where], np.where(diagonal > 0, diagonal, 1.0))

    def _steps(self, where: Array) -> tuple[Array, Array]:
        """Steps [b, p] within the bounds, and the gains that the linear model predicts without damping [b]."""
        steps, gains = [], []
        for b in where:
            gradient, theta = self.gradient[b], self.theta[b]
            free = ~(((theta <= self.lower) & (gradient > 0)) | ((theta >= self.upper) & (gradient < 0)))
            step = np.zeros_like(theta)
            inside = self.curvature[b][np.ix_(free, free)]
            damped = inside + self.damping[b] * np.diag(self.scale[b][free])
            step[free] = -np.linalg.lstsq(damped, gradient[free], rcond=None)[0]
            whole = np.linalg.lstsq(inside, gradient[free], rcond=1e-12)[0]
            gains.append(0.5 * float(gradient[free] @ whole))
            steps.append(np.clip(theta + step, self.lower, self.upper) - theta)
        return np.array(steps), np.array(gains)

    def _try(self, where: Array, step: Array) -> Array:
        """Take the steps that lower the loss; return the members that took one."""
        trial = self.theta[where] + step
        residual = self.problem.residuals(trial)
        self.motions += len(where)
        if residual.shape[1] != self.residual.shape[1]:
            residual = np.full((len(where), self.residual.shape[1]), np.nan)
        loss = self._losses(residual, trial, where)
        better = loss < self.loss[where]
        stuck = np.abs(step).max(axis=1) <= 1e-14 * np.maximum(1.0, np.abs(trial).max(axis=1))
        self.converged[where[stuck]] = True
        taken = where[better]
        self.theta[taken], self.residual[taken], self.loss[taken] = trial[better], residual[better], loss[better]
        self.damping[taken] = np.maximum(self.damping[taken] * EASIER, LEAST_DAMPING)
        self.damping[where[~better]] *= HARDER
        return taken
