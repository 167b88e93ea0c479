"""Loop of gradient descent and Adam: take a step, project it into the bounds, go back if it made things worse."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from simphys.optimize.methods.convergence import decrease_left
from simphys.optimize.problem import BadStart, Iterate, Outcome, StageProblem

_SUFFICIENT = 0.1
"""Smallest accepted fraction of the decrease that the gradient predicts (Armijo's condition)."""
_RETREAT_LIMIT = 40
"""Number of halvings of the learning rate after which a run gives up, with 1e-12 of it left."""


class Rule(Protocol):
    """Update rule of a method, which turns gradients into steps."""

    monotone: bool
    """True if a step that hardly lowers the loss, or raises it, is taken back."""

    def step(self, gradient: np.ndarray) -> np.ndarray:
        """Compute the step [p] for a learning rate of 1."""
        ...

    def reset(self) -> None:
        """Forget earlier gradients."""
        ...


def descend(problem: StageProblem, rule: Rule, rate: float) -> Outcome:
    """Apply the rule until little is left to gain.

    Converged: the estimated remaining decrease is below the tolerance times the loss, or the gradient's norm is below
    the tolerance times its norm at the start. The run goes back to the best iterate, with half the learning rate, after
    a failed trial, after a step that the rule takes back, and if it settles at a higher loss than the best one.
    """
    loss, gradient = problem.value_and_gradient(problem.start)
    if not np.isfinite(loss):
        raise BadStart
    problem.accept(problem.start, loss, gradient)
    assert problem.last is not None and problem.best is not None
    enough = problem.tolerance * _norm(problem, problem.last)
    if enough == 0:
        return _without_gradient(problem.last)
    point, halvings = problem.last, 0
    while not problem.exhausted and halvings <= _RETREAT_LIMIT:
        trial = problem.project(point.theta + rate * rule.step(point.gradient))
        loss, gradient = problem.value_and_gradient(trial)
        slack = problem.tolerance * abs(loss)
        demanded = _SUFFICIENT * float(point.gradient @ (point.theta - trial))
        if np.isfinite(loss) and not (rule.monotone and loss > point.loss - demanded + slack):
            problem.accept(trial, loss, gradient)
            point, before = problem.last, point
            if _norm(problem, point) > enough and decrease_left(problem, before, point) > slack:
                continue
            if loss <= problem.best.loss + slack:
                return Outcome("converged", "the gradient or the estimated gain left is below the tolerance")
        halvings += 1
        rate *= 0.5
        rule.reset()
        point = problem.best
    if problem.exhausted:
        return Outcome("iteration limit", f"stopped after {problem.index} iterations before it converged")
    return Outcome("failed", f"no lower loss was found: the learning rate was halved {halvings} times")


def _without_gradient(start: Iterate) -> Outcome:
    if start.mixture is not None and np.isclose(start.loss, start.mixture.plain_loss, rtol=1e-12, atol=0):
        return Outcome("failed", "no sample around the start changed the loss: raise the smoothing's radius or samples")
    hint = "" if start.mixture is not None else " (if the loss is flat only near the start, smoothing may help)"
    return Outcome("converged", f"the gradient at the start is zero{hint}")


def _norm(problem: StageProblem, at: Iterate) -> float:
    return float(np.linalg.norm(problem.project_gradient(at.theta, at.gradient)))
