"""The loop that gradient descent and Adam share: step, project into the bounds, retreat from a failed trial."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from simphys.optimize.methods.convergence import decrease_left
from simphys.optimize.problem import BadStart, Outcome, Problem

_RETREAT_LIMIT = 40
"""Halvings of the step after which a run gives up: 2^-40 of the learning rate is no progress in any number of steps."""


class Rule(Protocol):
    """How a method turns gradients into steps of length about one learning rate."""

    def step(self, gradient: np.ndarray) -> np.ndarray:
        """[p] the step for a learning rate of 1."""
        ...

    def reset(self) -> None:
        """Forget earlier gradients."""
        ...


def descend(problem: Problem, rule: Rule, rate: float) -> Outcome:
    """Follow the rule until little is left to gain.

    Converged: the estimated decrease left is below the tolerance times the loss, or the gradient's norm fell below
    the tolerance times that at the start. A failed trial halves the learning rate and goes back to the best iterate.
    """
    loss, gradient = problem.value_and_gradient(problem.start)
    if not np.isfinite(loss):
        raise BadStart
    problem.accept(problem.start, loss, gradient)
    assert problem.last is not None and problem.best is not None
    enough = problem.tolerance * _norm(problem, problem.start, gradient)
    if enough == 0:
        return Outcome("converged", "the gradient at the start is zero")
    point, halvings = problem.last, 0
    while not problem.exhausted:
        trial = problem.project(point.theta + rate * rule.step(point.gradient))
        loss, gradient = problem.value_and_gradient(trial)
        if not np.isfinite(loss):
            halvings += 1
            if halvings > _RETREAT_LIMIT:
                return Outcome("failed", f"{halvings} steps blew up, each half as long as the one before")
            rate *= 0.5
            rule.reset()
            point = problem.best
            continue
        problem.accept(trial, loss, gradient)
        point, before = problem.last, point
        if _norm(problem, trial, gradient) <= enough:
            return Outcome("converged", "the gradient is below the tolerance relative to the start's")
        if decrease_left(problem, before, point) <= problem.tolerance * abs(loss):
            return Outcome("converged", "the estimated decrease left is below the tolerance")
    return Outcome("iteration limit", f"stopped after {problem.index} iterations before it converged")


def _norm(problem: Problem, theta: np.ndarray, gradient: np.ndarray) -> float:
    return float(np.linalg.norm(problem.project_gradient(theta, gradient)))
