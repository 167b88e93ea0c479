"""Laplace approximation of the posterior of many unknowns: a standard deviation of each value of a field.

    C = (J^T J / s^2 + D^-2)^-1        J the derivatives of the residuals, s their standard deviation, D the prior's

In units of the prior, with A = D J^T J D / s^2 = sum_k l_k w_k w_k^T,

    C = D (1 - sum_k l_k / (1 + l_k) w_k w_k^T) D

so only directions with l_k around 1 or more matter, of which data tell as much as the prior, or more. Lanczos finds
them by products J^T (J v), each a tangent and an adjoint of the motion. It bounds A from below, and so C from above:
what it has not found counts as unknown.

The prior is normal. A term `regularization` of weight w gives 1 / sqrt(2 w) in theta; without one, a value is as
uncertain as its `scale`, a smooth one on average over its cells. Source: Bui-Thanh, Ghattas, Martin and Stadler 2013,
SIAM J. Sci. Comput. 35, A2494.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.experiment.misfits import sigma_is_stated
from simphys.experiment.objective import SceneObjective
from simphys.experiment.setup import Setup
from simphys.optimize.lanczos import Lanczos

from .criteria import Criterion, grade
from .misfit import FAILED_MISFIT, LARGE_MISFIT

Array = np.ndarray[Any, Any]

FEWEST, MOST = 10, 1000
"""Products that are made in any case, and at most."""
SETTLED = 0.01
"""Part of what is determined that the last fifth of the products found, below which no more are made."""
UNSETTLED = 0.1
"""The same, above which the deviations are doubtful: more products would tell more."""
CHECK_EVERY = 20
LEAST = 1e-100
"""Least sum of squares: that of a fit to its own prediction is 0."""


@dataclass(frozen=True, eq=False)
class Laplace:
    """Standard deviations of the values of a fit, in their units [p], and what they rest on."""

    deviation: Array
    prior: Array
    """Standard deviations before the data [p]."""
    eigenvalues: Array
    """Information of the data on directions of theta, relative to the prior, the largest first [k]."""
    sigma: float
    """Standard deviation of the whitened residuals."""
    products: int
    """Number of products J^T (J v)."""
    unfinished: float
    """Part of what is determined that the last fifth of the products found; 0 if nothing is left to find."""

    @property
    def determined(self) -> float:
        """Number of independent directions that the data determine, sum of l / (1 + l)."""
        return float(np.sum(self.eigenvalues / (1 + self.eigenvalues)))


def approximate_posterior(
    objective: SceneObjective[Any],
    theta: Array,
    *,
    until: float = np.inf,
    on_product: Callable[[int], None] | None = None,
) -> Laplace:
    """Approximate the posterior about an optimum theta [p] by products that end by `until`, of `time.monotonic()`.

    `on_product` is called with their number. Bounds are not regarded. Errors: optimize.FailedTrial.
    """
    prior = _prior_deviations(objective)
    motion = objective.linearize(theta)
    lanczos = Lanczos(lambda v: prior * motion.multiply(prior * v), theta.size)
    squares, count = float(motion.residuals @ motion.residuals), int(np.count_nonzero(motion.residuals))
    began = time.monotonic()
    while not lanczos.complete and lanczos.products < MOST:
        lanczos.extend()
        done = lanczos.products
        if on_product is not None:
            on_product(done)
        if done >= FEWEST and time.monotonic() + (time.monotonic() - began) / done > until:
            break
        if done % CHECK_EVERY == 0 and _unfinished(lanczos, _variance(lanczos, squares, count)) < SETTLED:
            break
    variance = _variance(lanczos, squares, count)
    values, vectors = lanczos.bound()
    values = values / variance
    unknowns = objective.unknowns
    before = unknowns.natural_deviation(theta, prior)
    known = np.zeros(theta.size)
    for value, vector in zip(values, vectors.T, strict=True):
        known += value / (1 + value) * unknowns.natural_change(theta, prior * vector) ** 2
    return Laplace(
        deviation=np.sqrt(np.maximum(before**2 - known, 0.0)),
        prior=before,
        eigenvalues=values,
        sigma=float(np.sqrt(variance)),
        products=lanczos.products,
        unfinished=0.0 if lanczos.complete else _unfinished(lanczos, variance),
    )


def judge_laplace(scene: Setup, found: Laplace) -> list[Criterion]:
    """Judge the misfit, and whether the data tell much about the unknowns that the prior does not."""
    criteria = []
    if sigma_is_stated(scene):
        verdict = grade(found.sigma, doubtful=LARGE_MISFIT, failed=FAILED_MISFIT)
        remedy = "Look at gather.png or fit.png: a wrong unit or sigma, a missing effect, or another optimum."
        words = f"RMSE / sigma {found.sigma:.3g}, with {found.determined:.0f} directions of the unknowns determined"
        criteria.append(Criterion("misfit", found.sigma, verdict, words, "" if verdict == "passed" else remedy))
    halved = float(np.mean(found.deviation < 0.5 * found.prior))
    words = f"the data halve the prior's deviation in {100 * halved:.3g} % of {found.prior.size} values"
    words += f", after {found.products} products"
    if found.unfinished > UNSETTLED:
        words += f"; the last fifth of these found {100 * found.unfinished:.2g} % of what is determined"
        remedy = "Deviations are upper bounds: give more time (--seconds), for more products."
        return [*criteria, Criterion("determined field", halved, "doubtful", words, remedy)]
    if halved == 0:
        remedy = "What is found is the prior's: observe more, or raise unknowns.NAME.smooth."
        return [*criteria, Criterion("determined field", halved, "doubtful", words, remedy)]
    return [*criteria, Criterion("determined field", halved, "passed", words)]


def _prior_deviations(objective: SceneObjective[Any]) -> Array:
    """Compute the standard deviations of theta before the data, [p]."""
    _, stated = objective.priors()
    found = np.ones_like(stated)
    for block in objective.unknowns.blocks:
        if block.smooth is not None:
            found[block.where] = 1 / np.mean(block.smooth.deviation)
    return np.where(np.isfinite(stated), stated, found)


def _variance(lanczos: Lanczos, squares: float, count: int) -> float:
    """Estimate the variance s^2 of the residuals: their squares per degree of freedom that is left."""
    values, _ = lanczos.bound()
    variance = squares = max(squares, LEAST)
    for _ in range(5):  # the number of directions that are determined depends on it, weakly
        variance = squares / max(count - float(np.sum(values / (values + variance))), 1.0)
    return variance


def _unfinished(lanczos: Lanczos, variance: float) -> float:
    now, before = (lanczos.bound(count)[0] for count in (None, -(-4 * lanczos.products // 5)))
    determined, earlier = (float(np.sum(each / (each + variance))) for each in (now, before))
    return 1 - earlier / determined if determined else 0.0
