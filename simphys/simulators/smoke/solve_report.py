"""Reports of the pressure solves: their residuals, and the estimated errors of the motion and of the gradient."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

from .model import Smoke

Direction = Literal["forward", "backward", "tangent"]

LARGEST_ERROR = 1e-3
"""Estimated relative error of a rollout's velocities or gradient above which a warning is issued."""


class UnconvergedSolve(UserWarning):
    """Warning that pressure solves ended too early for the motion or the gradient to be trusted."""


@dataclass(frozen=True)
class Solve:
    """A projection of a velocity, or of its adjoint or tangent. Norms are Euclidean."""

    iterations: int
    """Number of iterations of the solver; 0 for a direct one."""
    residual: float
    """Residual of the pressure equation, relative to its right side: on a staggered grid, the divergence left."""
    error: float
    """Estimated relative error of the result, from the residual."""


@dataclass
class SolveReport:
    """The solves of one direction of a rollout. An engine selects the step by `at`; the projection adds the solve."""

    direction: Direction
    solves: int = 0
    iterations: int = 0
    """Total number of iterations of all solves."""
    worst: Solve | None = None
    """Solve with the largest residual."""
    worst_step: int | None = None
    """Step of that solve."""
    error: float = 0.0
    """Estimated relative error of the final velocity (forward), or of the gradient by backward's own solves.

    It is the sum over the solves, as each error propagates through the same steps as the value that it is relative to.
    By the triangle inequality the sum is an upper bound if these steps amplify errors no more than values. The root of
    the sum of squares would not be: errors in successive steps are alike, namely the solver's slowest modes."""
    _step: int | None = None

    def at_step(self, step: int) -> SolveReport:
        """Select the step of the next solve, and return the report itself."""
        self._step = step
        return self

    def add(self, solve: Solve) -> None:
        """Add a solve."""
        if self.worst is None or solve.residual > self.worst.residual:
            self.worst, self.worst_step = solve, self._step
        self.solves += 1
        self.iterations += solve.iterations
        self.error += solve.error

    def warn(self, model: Smoke) -> None:
        """Warn if the error exceeds LARGEST_ERROR. To be called once, at the end of a rollout."""
        if self.worst is None or not self.error > LARGEST_ERROR:
            return
        where = "" if self.worst_step is None else f", in step {self.worst_step}"
        warn(
            model,
            f"{self.direction}, an estimated relative error of {self.error:.1e} from {self.solves} solves with "
            f"{self.iterations} iterations, the worst residual {self.worst.residual:.1e}{where}",
        )

    def __str__(self) -> str:
        worst = 0.0 if self.worst is None else self.worst.residual
        return (
            f"{self.direction}: {self.solves} solves, {self.iterations} iterations, residual up to {worst:.1e}, "
            f"estimated relative error {self.error:.1e}"
        )


class SolveReports:
    """The reports of an engine, for each batch member and direction. A recomputed forward step does not count again."""

    def __init__(self, model: Smoke) -> None:
        self._model = model
        self._iterates = model.projection in ("conjugate_gradients", "multigrid")
        self._reports: dict[tuple[Direction, int], SolveReport] = {}
        self._last_step: dict[tuple[Direction, int], int] = {}
        self._warned: set[tuple[Direction, int]] = set()

    def select(self, direction: Direction, member: int, step: int) -> SolveReport | None:
        """Return the report for the solve of a step; None if there is nothing to report."""
        key = direction, member
        if not self._iterates or (direction == "forward" and step <= self._last_step.get(key, -1)):
            return None
        self._last_step[key] = step
        return self._reports.setdefault(key, SolveReport(direction)).at_step(step)

    def warn(self, direction: Direction) -> None:
        """Warn, once for each batch member, of results that cannot be trusted."""
        for key, report in self._reports.items():
            if key[0] == direction and key not in self._warned and report.error > LARGEST_ERROR:
                self._warned.add(key)
                report.warn(self._model)


def warn(model: Smoke, found: str) -> None:
    """Issue the warning UnconvergedSolve, with a description of the solves."""
    constraint = f"solves for the pressure leave a relative error of at most {LARGEST_ERROR:g}"
    remedy = (
        f"Raise most_iterations ({model.most_iterations}), lower tolerance ({model.tolerance:g}), or use another "
        f"projection than {model.projection}."
    )
    warnings.warn(f"Smoke.projection: {constraint}; found {found}. {remedy}", UnconvergedSolve, stacklevel=3)
