"""What solves for the pressure left over: how much, and what it does to the motion and to the gradient."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

from .model import Smoke

LARGEST_ERROR = 1e-3
"""Estimated relative error of the velocities, or of the gradient, of a rollout, beyond which it is warned of."""


MEASURED = 16
"""The divergence that is left is measured in one of so many solves, the first among them: it costs as much as two of
Jacobi's sweeps."""


class UnconvergedSolve(UserWarning):
    """Solves for the pressure ended too early for the motion or the gradient to be trusted."""


@dataclass(frozen=True)
class Solve:
    """A projection of a velocity, or of its adjoint or tangent. Norms are Euclidean."""

    iterations: int
    """Of the solver; 0 for one that takes none."""
    residual: float
    """Of the equation for the pressure, relative to its right side; 0 for jacobi and fft, which do what they say."""
    divergence: float | None
    """Divergence afterwards, relative to before; None where it was not measured. On a staggered grid it is the
    residual, where there is one; on a collocated one, and after jacobi, it is not meant to be 0."""
    error: float
    """Estimated error of the result by the residual, relative to the result."""


@dataclass
class SolveReport:
    """The solves of one direction of a rollout. An engine tells the step by `at`, the projection adds the solve."""

    direction: Literal["forward", "backward", "tangent"]
    solves: int = 0
    iterations: int = 0
    """Of all solves."""
    worst: Solve | None = None
    """The one with the largest residual."""
    worst_step: int | None = None
    """Its step."""
    divergence: float = 0.0
    """The largest that was measured."""
    error: float = 0.0
    """Estimated relative error of the velocity at the end (forward), or of the gradient by backward's own solves.

    It is the sum over the solves: each error goes on through the same steps as what it is relative to. The sum is an
    upper bound, by the triangle inequality, where these steps amplify errors no more than that; a root of the sum of
    squares would not be, as the errors of one solver in successive steps are alike: its slowest modes."""
    _step: int | None = None

    def at(self, step: int) -> SolveReport:
        """Itself, for a solve in this step."""
        self._step = step
        return self

    def add(self, solve: Solve) -> None:
        """Take a solve in."""
        if self.worst is None or solve.residual > self.worst.residual:
            self.worst, self.worst_step = solve, self._step
        self.solves += 1
        self.iterations += solve.iterations
        self.divergence = max(self.divergence, solve.divergence or 0.0)
        self.error += solve.error

    def warn(self, model: Smoke) -> None:
        """Warn if the error is larger than LARGEST_ERROR: to be called once, at the end of a rollout."""
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
            f"divergence left up to {self.divergence:.1e}, estimated relative error {self.error:.1e}"
        )


def warn(model: Smoke, found: str) -> None:
    """Warn of what was found."""
    constraint = f"solves for the pressure leave a relative error of at most {LARGEST_ERROR:g}"
    remedy = (
        f"Raise most_iterations ({model.most_iterations}), lower tolerance ({model.tolerance:g}), or use another "
        f"projection than {model.projection}."
    )
    warnings.warn(f"Smoke.projection: {constraint}; found {found}. {remedy}", UnconvergedSolve, stacklevel=3)
