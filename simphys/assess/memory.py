"""Correlation time of a noise with a memory, by the restricted likelihood of the residuals of a fit.

Of an autoregressive process of first order with the standard deviation s and the correlation time tau, whose whitened
residuals are e (experiment/memory_noise.py), after a fit with the whitened derivatives J, minus the logarithm of the
likelihood is

    n/2 log s^2 + 1/2 sum_i log(1 - rho_i^2) + 1/2 log det(J^T J / s^2 + A),    rho_i = exp(-(t_i - t_(i-1)) / tau)

with s^2 = sum e^2 / (n - p) at its own optimum, p the degrees of freedom that values take, and A = J^T J of all other
residuals. The sum is the determinant of the covariance: without it, ever longer times would fit ever better. The last
term allows for what the values have taken of the noise: without it, times are too short. The unit of the residuals
plays no part. Sources: Brockwell and Davis 1991, section 8.7; Harville 1977 for the restricted likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from simphys.experiment.memory_noise import make_memories, whiten

Array = np.ndarray[Any, Any]

SHORTEST = 0.1
"""Shortest correlation time that is tried, in intervals of samples: then neighbours are alike by 5e-5."""
TRIED = 40
"""Number of correlation times of the first, coarse search."""
STEP = 0.02
"""Step in log tau for the curvature of the likelihood."""


class Residuals(NamedTuple):
    """Residuals of one channel in one recording, as they are, of n samples."""

    times: Array
    """Times [n], in s."""
    values: Array
    """Residuals [n]."""
    jacobian: Array
    """Their derivatives by theta [n, p]; p = 0 for those of no fit."""


class FoundMemory(NamedTuple):
    """The most likely noise of a channel."""

    tau: float | None
    """Correlation time [s]; None if neighbours are independent, as far as the residuals tell."""
    error: float
    """Standard error of its logarithm, by the curvature of the likelihood; 0 without a memory, inf if it is flat."""
    variance: float
    """s^2, in the square of the unit of the residuals."""
    at_longest: bool
    """True if the noise forgets no sooner than the recording ends."""


def find_memory(
    recordings: Sequence[Residuals], others: Array | None = None, left: float = 1.0, *, own: bool = False
) -> FoundMemory:
    """Find the correlation time of the noise that all recordings share, each of two samples or more.

    Args:
        others: A [p, p].
        left: part of the degrees of freedom that the values leave, (n - p) / n.
        own: True if each recording was fitted by itself, with values of its own.
    """
    from scipy.optimize import minimize_scalar

    def cost(logarithm: float) -> float:
        return disbelieve(float(np.exp(logarithm)), recordings, others, left, own=own)[0]

    shortest = SHORTEST * float(np.median(np.concatenate([np.diff(each.times) for each in recordings])))
    longest = max([float(each.times[-1] - each.times[0]) for each in recordings])
    tried = np.linspace(np.log(shortest), np.log(max(longest, 2 * shortest)), TRIED)
    best = int(np.argmin([cost(each) for each in tried]))
    if best == 0:
        _, variance = disbelieve(shortest, recordings, others, left, own=own)
        return FoundMemory(None, 0.0, variance, at_longest=False)
    around = (tried[best - 1], tried[min(best + 1, TRIED - 1)])
    at = float(minimize_scalar(cost, bounds=around, method="bounded", options={"xatol": 1e-6}).x)
    curvature = (cost(at - STEP) + cost(at + STEP) - 2 * cost(at)) / STEP**2
    error = float(1 / np.sqrt(curvature)) if curvature > 0 else np.inf
    _, variance = disbelieve(float(np.exp(at)), recordings, others, left, own=own)
    return FoundMemory(float(np.exp(at)), error, variance, at_longest=best == TRIED - 1)


def disbelieve(
    tau: float,
    recordings: Sequence[Residuals],
    others: Array | None = None,
    left: float = 1.0,
    *,
    own: bool = False,
) -> tuple[float, float]:
    """Compute minus the logarithm of the likelihood of a correlation time, up to a constant, and its variance s^2."""
    squares = determinant = 0.0
    count, informations = 0, []
    for times, values, jacobian in recordings:
        (memory,) = make_memories(times, np.ones((len(times), 1)), [tau])
        assert memory is not None
        white = whiten([memory] * (1 + jacobian.shape[1]), np.column_stack([values, jacobian]))
        squares += float(white[:, 0] @ white[:, 0])
        informations.append(white[:, 1:].T @ white[:, 1:])
        determinant += 2 * float(np.sum(np.log(memory.rest)))
        count += len(times)
    variance = squares / (count * left)
    for information in informations if own else [sum(informations)]:
        taken = information / variance + (0.0 if others is None else others)
        determinant += float(np.linalg.slogdet(taken)[1])
    return 0.5 * (count * np.log(variance) + determinant), variance
