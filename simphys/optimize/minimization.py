"""Entry point of all optimization methods, on the whole horizon or in stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from simphys.autograd.errors import InputError
from simphys.optimize.evaluations import Evaluations, Log, Objective, format_theta
from simphys.optimize.horizon import INTERMEDIATE_TOLERANCE, HorizonGrowth, add_pull, is_worth_another_round
from simphys.optimize.mapping import Map
from simphys.optimize.methods.adam import adam
from simphys.optimize.methods.gradient_descent import gradient_descent
from simphys.optimize.methods.lbfgs import lbfgs
from simphys.optimize.methods.least_squares import least_squares
from simphys.optimize.problem import BadStart, Outcome, StageProblem
from simphys.optimize.randomized import RandomizedSmoothing, estimate
from simphys.optimize.result import Interrupted, IterationRecord, Result
from simphys.optimize.stages import Stage, make_frequency_stages

Method = Literal["least_squares", "lbfgs", "adam", "gradient_descent"]
Horizon = Literal["full", "growing"]

METHODS: dict[str, Callable[[StageProblem, float | None], Outcome]] = {
    "least_squares": lambda problem, _: least_squares(problem),
    "lbfgs": lambda problem, _: lbfgs(problem),
    "adam": adam,
    "gradient_descent": gradient_descent,
}
WITH_LEARNING_RATE = ("adam", "gradient_descent")
"""Methods that need gradients alone, and so can minimize a smoothed loss."""


def minimize(
    objective: Objective,
    *,
    method: Method = "least_squares",
    iterations: int = 50,
    tolerance: float = 1e-10,
    learning_rate: float | None = None,
    smoothing: RandomizedSmoothing | None = None,
    horizon: Horizon = "full",
    lowpass: Sequence[float] = (),
    log: Log | None = None,
    on_iteration: Callable[[IterationRecord], None] | None = None,
    each: Map = map,
) -> Result:
    """Minimize the loss within the bounds, from the objective's start.

    method         least_squares (scipy's trf; uses residuals and Jacobian), lbfgs (scipy's L-BFGS-B), adam or
                   gradient_descent (use value and gradient)
    iterations     largest number of iterations per stage
    tolerance      largest gain that may be left, relative to the loss; each method's docstring says how it is estimated
    learning_rate  for adam (default 0.05) and gradient_descent (default: the first step moves theta by 0.01)
    smoothing      for adam and gradient_descent: minimize the loss averaged over perturbations of theta, for a loss
                   that jumps or is chaotic (randomized.py). As losses are then noisy, the search runs all iterations,
                   and gradient_descent takes back no step
    horizon        "growing": fit the first part of the horizon, then as far as its optimum predicts (horizon.py)
    lowpass        fit misfits that are filtered up to the first of these frequencies [Hz], then up to the next; 0 or
                   inf as the last one means no filter (stages.py)
    log            records every evaluation. Evaluations that it already holds are taken from it, so that an
                   interrupted run, started again, ends bitwise as if it had not been interrupted
    on_iteration   called with each iterate, including those that a resumed run takes from the log
    each           computes the samples of a smoothed loss (mapping.py)

    A trial that gives NaN or infinity, or raises FailedTrial, an ArithmeticError or a LinAlgError, counts as failed,
    and the search goes on. Errors: InputError for an invalid argument, a start that is outside the bounds or cannot be
    evaluated, or a log of another problem; Interrupted, with the result so far, on Ctrl-C.
    """
    start = _check_arguments(objective, method, iterations, tolerance, learning_rate, horizon, smoothing, lowpass)
    smooth = None if smoothing is None else partial(estimate, smoothing=smoothing, each=each)
    shared = {"iterations": iterations, "smooth": smooth}
    search = _Search(
        objective, METHODS[method], learning_rate, Evaluations(log), start, tolerance, shared, on_iteration
    )
    try:
        if horizon == "growing":
            outcome = search.grow()
        else:
            outcome = search.solve(make_frequency_stages(objective, tuple(lowpass)) if lowpass else [Stage()])
    except BadStart:
        outcome = search.fail()
    except KeyboardInterrupt:
        search.keep_best()
        raise Interrupted(search.result(Outcome("interrupted", "interrupted"))) from None
    return search.result(outcome)


@dataclass
class _Search:
    """A search under way: where its next stage starts, and the last stage whose optimum counts."""

    objective: Objective
    method: Callable[[StageProblem, float | None], Outcome]
    learning_rate: float | None
    evaluations: Evaluations
    start: np.ndarray
    tolerance: float
    options: dict[str, Any]
    """What the problems of all stages have in common."""
    on_iteration: Callable[[IterationRecord], None] | None
    history: list[IterationRecord] = field(default_factory=list)
    rounds: int = 0
    """Number of problems solved so far."""
    problem: StageProblem | None = None
    """The problem at work."""
    reached: StageProblem | None = None

    def solve(self, stages: Sequence[Stage]) -> Outcome:
        """Solve stages that are known beforehand, each from the optimum of the one before."""
        for left, stage in zip(reversed(range(len(stages))), stages, strict=True):
            outcome, self.reached = self._solve_stage(stage, later=left)
            self.start = self.reached.found.theta
        return outcome

    def grow(self) -> Outcome:
        """Fit a horizon that grows as far as the last optimum predicts."""
        growth = HorizonGrowth(lambda fraction, at: self._problem_at(Stage(horizon=fraction), begin=at), self.start)
        fraction: float | None = growth.first
        while fraction is not None:
            outcome, problem = self._solve_stage(Stage(horizon=fraction), later=int(fraction < 1), noise=growth.noise)
            decision = growth.decide(fraction, problem.found.theta)
            if decision.accepted:
                self.start, self.reached = problem.found.theta, problem
            fraction = decision.farther
        return outcome

    def _solve_stage(self, stage: Stage, *, later: int, noise: float = 0.0) -> tuple[Outcome, StageProblem]:
        """Solve a stage, and again as long as another round is worth it.

        `later`: the number of stages to come. `noise`: root mean square of residuals that are noise.
        """
        begin, pull = self.start, np.inf
        while True:
            problem = self.problem = self._problem_at(stage, self.rounds, self.rounds + 1 + later, begin)
            if stage.horizon < 1:
                add_pull(problem)
            outcome = self.method(problem, self.learning_rate)
            self.rounds += 1
            if not is_worth_another_round(problem, pull, noise):
                return outcome, problem
            begin, pull = problem.found.theta, problem.pull

    def _problem_at(
        self, stage: Stage, number: int = 0, count: int = 1, begin: np.ndarray | None = None
    ) -> StageProblem:
        return StageProblem(
            stage.restrict(self.objective),
            self.evaluations,
            start=self.start if begin is None else begin,
            tolerance=self.tolerance if number == count - 1 else max(self.tolerance, INTERMEDIATE_TOLERANCE),
            report=self._report,
            scope=stage,
            stage=number,
            stages=count,
            **self.options,
        )

    def _report(self, record: IterationRecord) -> None:
        self.history.append(record)
        if self.on_iteration is not None:
            self.on_iteration(record)

    def fail(self) -> Outcome:
        """Make the outcome of a stage whose start blows up. Errors: InputError for the first one, the user's start."""
        if self.reached is None:
            smoothed = self.options["smooth"] is not None
            wider = ", or a smaller radius of the smoothing, as its samples count too" if smoothed else ""
            raise InputError(
                "optimizer",
                "the loss and its gradient must be finite at the start",
                f"NaN or infinity at theta = {format_theta(self.start)}",
                f"Choose start values with which the simulation does not blow up, or a smaller time step{wider}.",
            ) from None
        scope = self.reached.scope
        more = "of it" if scope.lowpass is None else "frequencies"
        return Outcome("failed", f"the optimum on {scope.describe()} blows up on more {more}")

    def keep_best(self) -> None:
        """Let the problem at work count, if it has come anywhere."""
        if self.problem is not None and self.problem.best is not None:
            self.reached = self.problem

    def result(self, outcome: Outcome) -> Result:
        reached, failed = self.reached, self.evaluations.failed
        best = None if reached is None else reached.best
        survived = f"; {failed} failed trial{'s' * (failed > 1)} (not finite) survived" if failed else ""
        return Result(
            theta=self.start.copy() if best is None else best.theta.copy(),
            loss=np.nan if best is None else best.loss,
            horizon=1.0 if reached is None else reached.scope.horizon,
            lowpass=None if reached is None else reached.scope.lowpass,
            status=outcome.status,
            message=outcome.message + survived,
            iterations=sum(record.index > 0 for record in self.history),
            evaluations=self.evaluations.count,
            failed_trials=failed,
            history=tuple(self.history),
            mixture=None if best is None else best.mixture,
        )


def _check_arguments(
    objective: Objective,
    method: str,
    iterations: int,
    tolerance: float,
    learning_rate: float | None,
    horizon: str,
    smoothing: RandomizedSmoothing | None,
    lowpass: Sequence[float],
) -> np.ndarray:
    """Return the start [p], after all checks that need no evaluation. Errors: InputError."""

    def require(holds: bool, constraint: str, found: object, remedy: str) -> None:
        if not holds:
            raise InputError("optimizer", constraint, found, remedy)

    require(method in METHODS, f"method must be one of {', '.join(METHODS)}", method, "Choose one of them.")
    require(horizon in ("full", "growing"), "horizon must be full or growing", horizon, "Choose one of them.")
    require(iterations >= 1, "iterations must be at least 1", iterations, "Raise it.")
    require(1e-15 <= tolerance < 1, "tolerance must be from 1e-15 to below 1", tolerance, "1e-10 is the default.")
    if learning_rate is not None:
        remedy = "Leave learning_rate out."
        require(method in WITH_LEARNING_RATE, f"{method} has no learning rate", learning_rate, remedy)
        require(0 < learning_rate < np.inf, "learning_rate must be positive", learning_rate, "Try 0.05.")
    if smoothing is not None:
        constraint = f"smoothing belongs to the methods {' and '.join(WITH_LEARNING_RATE)}"
        remedy = 'Use method = "adam", or leave smoothing out.'
        require(method in WITH_LEARNING_RATE, constraint, method, remedy)
    found, remedy = "lowpass and a growing horizon", "Leave one of them out."
    require(not lowpass or horizon != "growing", "a fit has stages of one kind", found, remedy)
    start = np.array(objective.start, dtype=np.float64)
    lower, upper = np.asarray(objective.lower, dtype=np.float64), np.asarray(objective.upper, dtype=np.float64)
    require(start.size > 0, "at least one unknown is needed", "none", "Name what is unknown.")
    require(
        bool(np.isfinite(start).all()), "the start must be finite", format_theta(start), "Give finite start values."
    )
    for label, at, low, high in zip(objective.labels, start, lower, upper, strict=True):
        who, found = f"the bounds of {label}", f"{low:g} to {high:g} with the start {at:g} (optimizer coordinates)"
        require(low < high, f"{who} must be in order and apart", found, "Widen them, or leave the unknown out.")
        require(low <= at <= high, f"{who} must hold its start", found, "Widen them, or move the start.")
    return start
