"""Samples of the posterior by NUTS, the sampler of Hoffman and Gelman (2014), as PINTS has it, on gradients of ours.

    log p(theta) = -loss(theta) / s^2        within the bounds, with the standard deviation s of the whitened residuals

The prior is flat in theta; a term `regularization` is a normal one. Chains move in coordinates in which the linearized
posterior is a standard normal. R-hat and effective sizes are those of Vehtari et al. (2021), on halves of the chains.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.optimize.evaluations import Objective
from simphys.optimize.problem import FAILURES

Array = np.ndarray
CHAINS, WARMUP = 4, 200
SPREAD = 1.5
"""Standard deviation of the starts of chains, in standard errors."""
LOWEST = -1e6
"""Logarithm of the density beyond a bound, and where a motion is not finite."""


@dataclass(frozen=True)
class Posterior:
    """Samples of the unknowns."""

    theta: Array
    """Samples [chains, draws, p]."""
    rhat: Array
    """R-hat [p]: near 1 if chains agree."""
    effective: Array
    """Effective number of samples [p]."""
    divergences: int
    """Number of draws after the warm-up on which the integrator of NUTS diverged."""
    gradients: int
    """Number of gradients, of the warm-up, too."""
    seconds: float

    @property
    def flat(self) -> Array:
        """Samples of all chains, [chains * draws, p]."""
        return self.theta.reshape(-1, self.theta.shape[-1])


def load_pints() -> Any:
    """Import PINTS. Errors: InputError without it (extra `bayes`)."""
    try:
        import pints
    except ImportError as error:
        remedy = "Run pip install 'simphys[bayes]'."
        raise InputError("sample", "needs the package pints", "not installed", remedy) from error
    return pints


def sample_posterior(
    objective: Objective,
    theta: Array,
    covariance: Array,
    sigma: float,
    *,
    draws: int = 250,
    seed: int = 0,
    on_draw: Callable[[int, int], None] | None = None,
) -> Posterior:
    """Draw samples about an optimum theta [p], given its covariance [p, p] and sigma; CHAINS chains of `draws` each.

    `on_draw(done, whole)` is called after each draw. Errors: InputError without PINTS (extra `bayes`), or with unknowns
    that have no standard error.
    """
    pints = load_pints()
    if not np.isfinite(covariance).all():
        remedy = "Move bounds that hold the fit, or fix unknowns that the data do not determine."
        raise InputError("sample", "every unknown needs a standard error", "some have none", remedy)
    density = _Density(objective, theta, np.linalg.cholesky(covariance), sigma)
    chains, divergences, began, whole = [], 0, time.perf_counter(), CHAINS * (WARMUP + draws)
    state = np.random.get_state()  # PINTS draws from NumPy's own generator
    try:
        np.random.seed(seed)
        for chain in range(CHAINS):
            sampler = pints.NoUTurnMCMC(density.draw_start(), np.ones(theta.size))
            sampler.set_number_adaption_steps(WARMUP)
            made: list[Array] = []
            while len(made) < WARMUP + draws:
                reply = sampler.tell(density.evaluate(sampler.ask()))
                if reply is not None:
                    made.append(np.array(reply[0]))
                    if on_draw is not None:
                        on_draw(chain * (WARMUP + draws) + len(made), whole)
            chains.append(density.to_theta(np.array(made[WARMUP:])))
            divergences += int(np.sum(np.asarray(sampler.divergent_iterations()) > WARMUP))
    finally:
        np.random.set_state(state)
    samples = np.array(chains)
    rhat, effective = diagnose(samples)
    return Posterior(samples, rhat, effective, divergences, density.count, time.perf_counter() - began)


def diagnose(samples: Array) -> tuple[Array, Array]:
    """Compute R-hat and effective sizes [p] of samples [chains, draws, p], each chain taken as two halves."""
    half = samples.shape[1] // 2
    chains = np.concatenate([samples[:, :half], samples[:, half : 2 * half]])
    within = chains.var(axis=1, ddof=1).mean(axis=0)
    pooled = within * (half - 1) / half + chains.mean(axis=1).var(axis=0, ddof=1)
    away = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(away, 2 * half, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :half].mean(axis=0) / half
    correlation = 1 - (within - covariance) / pooled
    pairs = correlation[: half // 2 * 2].reshape(half // 2, 2, -1).sum(axis=1)  # Geyer: positive, and falling
    pairs = np.minimum.accumulate(np.where(np.cumprod(pairs > 0, axis=0), pairs, 0.0), axis=0)
    count = chains.shape[0] * half
    return np.sqrt(pooled / within), np.minimum(count / np.maximum(2 * pairs.sum(axis=0) - 1, 1 / count), count)


class _Density:
    """The logarithm of the posterior density in coordinates z = L^-1 (theta - optimum), and its gradient."""

    def __init__(self, objective: Objective, optimum: Array, root: Array, sigma: float) -> None:
        self._objective, self._optimum, self._root, self._sigma = objective, optimum, root, sigma
        self.count = 0
        self._base = objective.value_and_gradient(optimum)[0]

    def to_theta(self, z: Array) -> Array:
        return np.asarray(self._optimum + z @ self._root.T)

    def draw_start(self) -> Array:
        """Draw a start within the bounds, with a finite motion."""
        for scale in SPREAD * 0.5 ** np.arange(20):
            z = scale * np.random.standard_normal(self._optimum.size)
            if self.evaluate(z)[0] > LOWEST:
                return z
        return np.zeros(self._optimum.size)

    def evaluate(self, z: Array) -> tuple[float, Any]:
        theta = self.to_theta(np.asarray(z, float))
        lower, upper = np.asarray(self._objective.lower), np.asarray(self._objective.upper)
        self.count += 1
        outside = np.zeros_like(theta), LOWEST
        if (theta < lower).any() or (theta > upper).any():
            return outside[1], outside[0]
        try:
            with np.errstate(all="ignore"):
                loss, gradient = self._objective.value_and_gradient(theta)
        except FAILURES:
            return outside[1], outside[0]
        if not (np.isfinite(loss) and np.isfinite(gradient).all()):
            return outside[1], outside[0]
        return -(loss - self._base) / self._sigma**2, -(self._root.T @ gradient) / self._sigma**2
