"""Entry point of all optimization methods, on the whole horizon or in stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from simphys.autograd.errors import InputError
from simphys.optimize.evaluations import Evaluations, Log, Objective, format_theta
from simphys.optimize.horizon import INTERMEDIATE_TOLERANCE, add_pull, growing_fractions
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
    horizon        "growing": fit the first part of the horizon, then twice as much, up to the whole (horizon.py)
    lowpass        fit misfits that are filtered up to the first of these frequencies [Hz], then up to the next; 0 or
                   inf as the last one means no filter (stages.py)
    log            records every evaluation. Evaluations that it already holds are taken from it, so that an
                   interrupted run, started again, ends bitwise as if it had not been interrupted
    on_iteration   called with each iterate, including those that a resumed run takes from the log

    A trial that gives NaN or infinity, or raises FailedTrial, an ArithmeticError or a LinAlgError, counts as failed,
    and the search goes on. Errors: InputError for an invalid argument, a start that is outside the bounds or cannot be
    evaluated, or a log of another problem; Interrupted, with the result so far, on Ctrl-C.
    """
    start = _check_arguments(objective, method, iterations, tolerance, learning_rate, horizon, smoothing)
    if lowpass and horizon == "growing":
        remedy = "Leave one of them out."
        raise InputError("optimizer", "a fit has stages of one kind", "lowpass and a growing horizon", remedy)
    frequency_stages = make_frequency_stages(objective, tuple(lowpass)) if lowpass else None
    smooth = None if smoothing is None else partial(estimate, smoothing=smoothing)
    evaluations = Evaluations(log)
    history: list[IterationRecord] = []
    reached: StageProblem | None = None

    def problem_at(stage: Stage, number: int = 0, count: int = 1) -> StageProblem:
        return StageProblem(
            stage.restrict(objective),
            evaluations,
            start=start,
            iterations=iterations,
            tolerance=tolerance if number == count - 1 else max(tolerance, INTERMEDIATE_TOLERANCE),
            report=report,
            smooth=smooth,
            scope=stage,
            stage=number,
            stages=count,
        )

    def report(record: IterationRecord) -> None:
        history.append(record)
        if on_iteration is not None:
            on_iteration(record)

    def result(outcome: Outcome) -> Result:
        best = None if reached is None else reached.best
        failed = evaluations.failed
        survived = f"; {failed} failed trial{'s' * (failed > 1)} (not finite) survived" if failed else ""
        return Result(
            theta=start.copy() if best is None else best.theta.copy(),
            loss=np.nan if best is None else best.loss,
            horizon=1.0 if reached is None else reached.scope.horizon,
            lowpass=None if reached is None else reached.scope.lowpass,
            status=outcome.status,
            message=outcome.message + survived,
            iterations=sum(record.index > 0 for record in history),
            evaluations=evaluations.count,
            failed_trials=failed,
            history=tuple(history),
            mixture=None if best is None else best.mixture,
        )

    problem: StageProblem | None = None
    try:
        stages = frequency_stages or [Stage()]
        if horizon == "growing":
            stages = [Stage(horizon=fraction) for fraction in growing_fractions(lambda f: problem_at(Stage(horizon=f)))]
        for number, stage in enumerate(stages):
            problem = problem_at(stage, number, len(stages))
            if stage.horizon < 1:
                add_pull(problem)
            outcome = METHODS[method](problem, learning_rate)
            assert problem.best is not None
            start, reached = problem.best.theta, problem
    except BadStart:
        if reached is None:
            wider = "" if smoothing is None else ", or a smaller radius of the smoothing, as its samples count too"
            raise InputError(
                "optimizer",
                "the loss and its gradient must be finite at the start",
                f"NaN or infinity at theta = {format_theta(start)}",
                f"Choose start values with which the simulation does not blow up, or a smaller time step{wider}.",
            ) from None
        seen, more = reached.scope.describe(), "of it" if reached.scope.lowpass is None else "frequencies"
        outcome = Outcome("failed", f"the optimum on {seen} blows up on more {more}")
    except KeyboardInterrupt:
        if problem is not None and problem.best is not None:
            reached = problem
        raise Interrupted(result(Outcome("interrupted", "interrupted"))) from None
    return result(outcome)


def _check_arguments(
    objective: Objective,
    method: str,
    iterations: int,
    tolerance: float,
    learning_rate: float | None,
    horizon: str,
    smoothing: RandomizedSmoothing | None,
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
