"""Correlation of residuals in time: their autocorrelation, a test of whiteness, and a covariance that allows for it.

The usual covariance of a fit takes residuals for independent. A model that is slightly wrong, or a sensor with memory,
makes neighbours alike, and then it is too small. The estimate here is robust to that (Newey and West 1987):

    C = (J^T J)^-1 S (J^T J)^-1,    S = sum_l w_l sum_t u_t u_{t-l}^T,    u_t = sum_c J_tc r_tc,   w_l = 1 - |l|/(L + 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LAGS = 10
"""Largest lag, in samples, of the test of whiteness."""
MANY_PRODUCTS = 10_000_000
"""Products of a value and a later one beyond which sums over all lags take another way: their number is a square."""
FEWEST = 10
"""Least number of samples of a series that is tested."""


@dataclass(frozen=True)
class Whiteness:
    """Test whether residuals are independent in time (Ljung and Box 1978)."""

    autocorrelation: np.ndarray
    """Autocorrelation at the lags 0, 1, ... [lags + 1]; empty for too few samples."""
    p_value: float
    """Probability of such correlations, or larger ones, if the residuals are independent; NaN if not tested."""

    @property
    def first(self) -> float:
        """Autocorrelation of neighbours; NaN if not tested."""
        return float(self.autocorrelation[1]) if self.autocorrelation.size > 1 else np.nan


def whiteness(residuals: np.ndarray, there: np.ndarray) -> Whiteness:
    """Test residuals [T, S] of S series that share their times, where `there` [T, S] is true; lags count samples.

    Series are pooled: one autocorrelation serves for all. The mean is not subtracted, as residuals should have none.
    """
    from scipy.special import chdtrc  # scipy.stats takes half a second more to import

    samples = len(residuals)
    lags = min(LAGS, samples // 5)
    square = float(np.sum(residuals**2, where=there))
    if samples < FEWEST or square == 0:
        return Whiteness(np.zeros(0), np.nan)
    found, pairs = autocorrelation(residuals, there, lags)
    statistic = float(np.sum(found[1:] ** 2 * pairs[1:])) * (samples + 2) / samples
    return Whiteness(found, float(chdtrc(lags, statistic)))


def autocorrelation(residuals: np.ndarray, there: np.ndarray, lags: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the pooled autocorrelation of residuals [T, S] at the lags 0 to `lags`, and the pairs at each lag."""
    masked = np.where(there, residuals, 0.0)
    if lags * masked.size > MANY_PRODUCTS:
        sums, pairs = _correlate(masked, lags), np.rint(_correlate(there.astype(float), lags))
        means = sums / np.maximum(pairs, 1)
        return means / means[0], pairs
    sums, pairs = np.empty(lags + 1), np.empty(lags + 1)
    for lag in range(lags + 1):
        end = len(masked) - lag
        sums[lag] = np.vdot(masked[:end], masked[lag:])
        pairs[lag] = np.count_nonzero(there[:end] & there[lag:])
    means = sums / np.maximum(pairs, 1)
    return means / means[0], pairs


def _correlate(values: np.ndarray, lags: int) -> np.ndarray:
    """Sum the products of values [T, S] and those later by each lag, from 0 to `lags`, by a Fourier transform."""
    length = 2 ** int(np.ceil(np.log2(len(values) + lags + 1)))  # zeros, so that no value meets one before it
    power = np.sum(np.abs(np.fft.rfft(values, length, axis=0)) ** 2, axis=1)
    return np.asarray(np.fft.irfft(power, length)[: lags + 1])


def find_bandwidth(residuals: np.ndarray, there: np.ndarray) -> int:
    """Choose L: twice the lag at which the residuals' autocorrelation is lost in noise; at most a quarter of T."""
    samples = len(residuals)
    longest = max(samples // 4, 1)
    if samples < FEWEST or not np.any(residuals[there]):
        return 0
    found, pairs = autocorrelation(residuals, there, longest)
    lost = np.flatnonzero(np.abs(found) < 2 / np.sqrt(np.maximum(pairs, 1)))
    return min(2 * int(lost[0]) if lost.size else longest, longest)


def correlated_covariance(
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], extra: np.ndarray, bread: np.ndarray
) -> np.ndarray:
    """Compute C [p, p] for recordings that are independent of each other, and bread = (J^T J)^-1 [p, p].

    parts: Jacobian [T, S, p], residuals [T, S] and the samples that count [T, S] of each recording. `extra` [m, p]:
    scores J r of further residuals, such as those of regularization, which count as independent.
    """
    unknowns = len(bread)
    middle, samples = extra.T @ extra, 0
    for jacobian, residuals, there in parts:
        middle = middle + _score_covariance(jacobian, residuals, there)
        samples += int(np.count_nonzero(there.any(axis=1)))
    freedom = samples / max(samples - unknowns, 1)
    return freedom * bread @ middle @ bread


def _score_covariance(jacobian: np.ndarray, residuals: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Compute S [p, p] of one recording."""
    scores = np.einsum("tsp,ts->tp", jacobian, residuals)
    bandwidth = find_bandwidth(residuals, there)
    if bandwidth * scores.size > MANY_PRODUCTS:
        return _smooth_scores(scores, bandwidth)
    middle: np.ndarray = scores.T @ scores
    for lag in range(1, bandwidth + 1):
        product = scores[lag:].T @ scores[:-lag]
        middle = middle + (1 - lag / (bandwidth + 1)) * (product + product.T)
    return middle


def _smooth_scores(scores: np.ndarray, bandwidth: int) -> np.ndarray:
    """Compute the same S of many lags: w_l is the overlap of two windows of L + 1 samples, and S the square of sums.

    With s_t the sum of the L + 1 scores up to u_t, S = sum_t s_t s_t^T / (L + 1).
    """
    window = bandwidth + 1
    sums = np.cumsum(np.concatenate([scores, np.zeros((window, scores.shape[1]))]), axis=0)
    sums[window:] = sums[window:] - sums[:-window]
    return np.asarray(sums.T @ sums / window)
