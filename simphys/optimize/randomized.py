"""Randomized smoothing: average the loss over perturbations of theta, for a loss whose own gradient is misleading.

    F(theta) = E f(theta + w),    w ~ N(0, s^2 I),    s the radius

F is smooth even if f jumps or is chaotic. For n pairs theta + w, theta - w with losses f+, f- and gradients h+, h-

    F ~ mean (f+ + f-) / 2
    first order    g1 = mean (h+ + h-) / 2             low noise for a smooth f; wrong if f jumps, as h misses the jump
    zeroth order   g0 = mean (f+ - f-) w / (2 s^2)     right for every f, but noisy

Pairs cancel the baseline f(theta) of the single-sample estimate (f+ - f(theta)) w / s^2, and all even terms of f. The
search follows the mixture

    g = alpha g1 + (1 - alpha) g0,    alpha = v0 / (v0 + v1) if that keeps alpha |g1 - g0| <= gamma - epsilon,
                                              (gamma - epsilon) / |g1 - g0| otherwise

with the variances v1, v0 of g1 and g0, summed over components and estimated from the pairs. The first alpha has the
least variance. The second keeps the mixture within gamma of the gradient of F as long as g0 is within epsilon of it.
epsilon is two standard errors of g0, 2 sqrt(v0); gamma is `accuracy` times epsilon. (Suh, Simchowitz, Zhang and
Tedrake, Do Differentiable Simulators Give Better Policy Gradients?, ICML 2022, arXiv:2202.00817, section 5: the
alpha-order batched gradient; there gamma is an absolute number, and the samples are single.)

Variances overlook a jump that few pairs straddle. So the pairs themselves are tested: for a quadratic f, half the
difference of a pair (f+ - f-) / 2 equals w.(h+ + h-) / 2 (the trapezoidal rule). If this leaves more than a quarter of
the sum of squared differences unexplained, alpha is 0: a pair straddles a jump, or f bends so much within the radius
that g1 is no better than g0. If an h is not finite (a chaotic motion of finite loss), v1 is infinite, and alpha is 0.

Each theta has its own samples. With the same ones throughout, g0 would stay in their span, and F would be a staircase
wherever f is one. So the losses of iterates can be compared only up to noise, and searches average over iterates.

Beyond the bounds, f is continued by its value at the nearest point within: f(P(theta + w)), with the projection P. g0
is unchanged, and h loses the projected components; so both remain estimates of the gradient of F.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, fields
from functools import partial

import numpy as np

from simphys.autograd.errors import InputError
from simphys.optimize.evaluations import Objective
from simphys.optimize.mapping import Carried, Map
from simphys.optimize.result import FailedTrial, Mixture

STANDARD_ERRORS = 2.0
"""Value of epsilon in standard errors: 95 % confidence for one unknown, more for several; at least 75 % in any case."""
UNEXPLAINED = 0.25
"""Largest fraction of the squared differences that the gradients may leave unexplained."""


@dataclass(frozen=True, kw_only=True)
class RandomizedSmoothing:
    """Settings of the smoothing of a loss. Errors: InputError."""

    radius: float
    """Standard deviation of the perturbations, in units of theta."""
    samples: int = 32
    """Evaluations of loss and gradient per estimate, in pairs; one more gives the loss without smoothing."""
    accuracy: float = 2.0
    """Ratio gamma / epsilon. 1: the zeroth order alone; the larger, the more the first order is trusted."""
    seed: int = 0

    def __post_init__(self) -> None:
        def require(holds: bool, constraint: str, found: object, remedy: str) -> None:
            if not holds:
                raise InputError("smoothing", constraint, found, remedy)

        require(0 < self.radius < math.inf, "radius must be positive", self.radius, "Try 0.05, in units of theta.")
        remedy = "Samples come in pairs, and a variance needs two of them; 32 is the default."
        require(
            self.samples >= 4 and self.samples % 2 == 0,
            "samples must be an even number, 4 or more",
            self.samples,
            remedy,
        )
        remedy = "1 takes the zeroth order alone, 2 is the default."
        require(1 <= self.accuracy < math.inf, "accuracy must be 1 or more", self.accuracy, remedy)
        require(self.seed >= 0, "seed must not be negative", self.seed, "0 is the default.")

    def perturbations(self, theta: np.ndarray) -> np.ndarray:
        """Draw the perturbations w of the pairs, [samples / 2, p]; they differ for every theta.

        They depend on the seed and on theta alone, so an interrupted run continues with the same ones.
        """
        digest = hashlib.sha256(theta.tobytes()).digest()
        source = np.random.default_rng([self.seed, *np.frombuffer(digest, np.uint32).tolist()])
        return self.radius * source.standard_normal((self.samples // 2, theta.size))


@dataclass(frozen=True)
class Estimate:
    """Estimate of the smoothed loss and its gradient [p] at some theta."""

    loss: float
    gradient: np.ndarray
    mixture: Mixture

    def arrays(self) -> dict[str, np.ndarray]:
        """Convert to arrays by name, for the log."""
        numbers = {"loss": self.loss, "gradient": self.gradient, **asdict(self.mixture)}
        return {name: np.asarray(value, dtype=np.float64) for name, value in numbers.items()}


def failed_estimate(unknowns: int) -> Estimate:
    """Make the estimate for a failed sample: NaN in all entries."""
    return Estimate(math.nan, np.full(unknowns, math.nan), Mixture(*[math.nan] * len(fields(Mixture))))


def estimate(objective: Objective, theta: np.ndarray, smoothing: RandomizedSmoothing, *, each: Map = map) -> Estimate:
    """Estimate the smoothed loss and its gradient at theta [p]; `each` computes the samples.

    Errors: FailedTrial if the loss of a sample is not finite, or huge; and those of the objective. The average over
    samples is not finite if one of them is not, and a theta at which perturbations fail is no good iterate.
    """
    shifts = smoothing.perturbations(theta)
    points = [theta, *[theta + shift for shift in shifts], *[theta - shift for shift in shifts]]
    losses, gradients = (
        np.array(made) for made in zip(*each(partial(_sample, Carried(objective)), points), strict=True)
    )
    plain_loss, (above, below) = float(losses[0]), np.split(losses[1:], 2)
    gradient_above, gradient_below = np.split(gradients[1:], 2)
    first = 0.5 * (gradient_above + gradient_below)
    gradient, mixture = _mix(smoothing, shifts, first, 0.5 * (above - below), plain_loss)
    if not np.isfinite(gradient).all():
        raise FailedTrial("the losses of samples differ by more than the largest finite number")
    return Estimate(float(np.mean(0.5 * (above + below))), gradient, mixture)


def _sample(objective: Carried[Objective], at: np.ndarray) -> tuple[float, np.ndarray]:
    """Loss and gradient at a perturbed theta [p], continued beyond the bounds."""
    within = np.clip(at, objective.value.lower, objective.value.upper)
    with np.errstate(all="ignore"):
        loss, gradient = objective.value.value_and_gradient(within)
    if not math.isfinite(loss):
        raise FailedTrial(f"the loss of a sample is {loss}")
    return float(loss), np.where(within == at, gradient, 0.0)


def _mix(
    smoothing: RandomizedSmoothing, shifts: np.ndarray, first: np.ndarray, rises: np.ndarray, plain_loss: float
) -> tuple[np.ndarray, Mixture]:
    """Mix the gradient [p] from each pair's w [n, p], mean gradient [n, p] and half the difference of losses [n]."""
    zeroth = (rises / smoothing.radius**2)[:, None] * shifts
    g1, g0 = first.mean(axis=0), zeroth.mean(axis=0)
    v1, v0 = _variance_of_mean(first), _variance_of_mean(zeroth)
    if not math.isfinite(v1):
        return g0, Mixture(plain_loss, 0.0, 0.0, math.inf, v0)
    by_variance = v0 / (v0 + v1) if v0 + v1 > 0 else 1.0
    apart = float(np.linalg.norm(g1 - g0))
    allowed = (smoothing.accuracy - 1) * STANDARD_ERRORS * math.sqrt(v0)
    alpha = by_variance if by_variance * apart <= allowed else allowed / apart
    unexplained = rises - np.sum(shifts * first, axis=1)
    if np.sum(unexplained**2) > UNEXPLAINED * np.sum(rises**2):
        alpha = 0.0
    return alpha * g1 + (1 - alpha) * g0, Mixture(plain_loss, alpha, by_variance, v1, v0)


def _variance_of_mean(samples: np.ndarray) -> float:
    """Variance of the mean of the samples [n, p], summed over components."""
    return float(np.sum(np.var(samples, axis=0, ddof=1))) / len(samples)
