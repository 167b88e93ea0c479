"""The misfit of a fit: are residuals as large as the noise that the scene states?

Of N samples p degrees of freedom go to the unknowns, evenly from all channels, so that of a channel of n samples

    RMSE / sigma = sqrt(1 - p / N) chi / sqrt(f),    f = n (1 - p / N)

is expected, with chi^2 of f degrees of freedom. Few of them vary much: a misfit is doubted if chance does not explain
it.

A robust loss is chosen for residuals with outliers. There the noise is told by the median of |r|, which is 0.6745 sigma
of Gaussian noise, and outliers are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.experiment.misfits import robust_loss, sigma_is_stated
from simphys.experiment.setup import Setup

from .criteria import Criterion, Verdict, grade
from .series import along_time, list_channels
from .uncertainty import Uncertainty

Array = np.ndarray[Any, Any]

LARGE_MISFIT, FAILED_MISFIT, SMALL_MISFIT = 1.5, 5.0, 0.5
"""RMSE / sigma beyond which a fit is doubtful or fails, and below which the stated noise is doubtful."""
EXPLAINED, HARDLY_EXPLAINED = 0.9, 0.5
"""Part of a channel's variance that a model explains, where no noise is stated."""
LEAST_P = 1e-3
"""Probability below which a misfit is not taken for chance."""
FAR, MANY_FAR = 5.0, 0.1
"""Residual, in sigmas of the noise by the median, beyond which a sample is an outlier, and the part of too many."""
MEDIAN = 0.6745
"""Median of |r| of Gaussian noise of variance 1."""
CLEAR, MEDIAN_SCATTER = 3.1, 1.17
"""Distance in standard deviations that is no chance, and that of sigma by the median, times the root of the samples."""
GENERAL = (
    "Look at fit.png: a wrong column, unit or sigma, a sensor's gain or offset, a missing force, bounds, or another "
    'optimum (optimizer.horizon = "growing", simphys multistart).'
)


@dataclass(frozen=True)
class ChannelMisfit:
    """Residuals of a channel, of an experiment."""

    label: str
    rmse: float
    """RMSE / sigma."""
    median: float
    """Sigma of the noise by the median of |r|, in stated ones."""
    freedom: float
    """Degrees of freedom f."""
    samples: int
    far: int
    """Number of outliers."""
    when: tuple[float, float]
    """Times of the first and the last outlier [s]; NaN without one."""

    @property
    def expected(self) -> float:
        """RMSE / sigma that right noise leads one to expect."""
        return float(np.sqrt(self.freedom / self.samples))

    def by_chance(self, *, small: bool = False) -> bool:
        """Return True if right noise makes as large a misfit, or as small a one, now and then."""
        from scipy.special import chdtr, chdtrc

        probability = chdtr if small else chdtrc
        return self.freedom <= 0 or probability(self.freedom, self.rmse**2 * self.samples) > LEAST_P

    @property
    def has_outliers(self) -> bool:
        """True if few samples make most of the misfit."""
        return self.far > 0 and self.median < 0.5 * self.rmse and self.far <= MANY_FAR * self.samples


def misfit_in_sigmas(uncertainty: Uncertainty) -> dict[str, float]:
    """Compute the RMSE / sigma of each channel, of each experiment."""
    found = {}
    for label, series, columns in list_channels(uncertainty.series):
        there = series.there[:, columns]
        found[label] = float(np.sqrt(np.mean(series.residuals[:, columns] ** 2, where=there)))
    return found


def chi_square_per_freedom(uncertainty: Uncertainty) -> float:
    """Compute chi^2 per degree of freedom: near 1 if the stated noise is right and the model, too."""
    return uncertainty.standard.sigma**2


def list_misfits(scene: Setup, uncertainty: Uncertainty) -> Iterator[ChannelMisfit]:
    """Measure the residuals of each channel, of each experiment; those of a robust loss as they are without it."""
    loss = robust_loss(scene.config.loss)
    freedom, sought = (
        uncertainty.standard.freedom,
        int(np.count_nonzero(~(uncertainty.at_lower | uncertainty.at_upper))),
    )
    left = max(freedom, 0) / max(freedom + sought, 1)
    for label, series, columns in list_channels(uncertainty.series):
        there = series.there[:, columns]
        residuals = np.abs(series.residuals[:, columns])
        residuals = residuals if loss is None else loss.inverse(residuals)
        some = residuals[there]
        median = float(np.median(some)) / MEDIAN
        far = (residuals > FAR * max(median, 1.0)) & there
        times = series.seen.times[far.any(axis=1)]
        when = (float(times[0]), float(times[-1])) if len(times) else (np.nan, np.nan)
        rmse = float(np.sqrt(np.mean(some**2)))
        yield ChannelMisfit(label, rmse, median, some.size * left, some.size, int(far.sum()), when)


def judge_misfit(scene: Setup, uncertainty: Uncertainty, *, white: bool) -> Criterion:
    """Judge the misfit; `white`: residuals are independent, as noise is."""
    if not sigma_is_stated(scene):
        return _judge_explained(uncertainty)
    channels = list(list_misfits(scene, uncertainty))
    if robust_loss(scene.config.loss) is not None:
        return _judge_robust(channels)
    worst = max(channels, key=lambda each: (np.isnan(each.rmse), each.rmse))
    chi = chi_square_per_freedom(uncertainty)
    found = f"RMSE / sigma {worst.rmse:.3g} ({worst.label}), chi^2 per degree of freedom {chi:.3g}"
    verdict = grade(worst.rmse / (worst.expected or 1.0), doubtful=LARGE_MISFIT, failed=FAILED_MISFIT)
    if verdict != "passed" and not worst.by_chance():
        return Criterion("misfit", worst.rmse, verdict, found, _advise(worst, scene.units.time, white=white))
    least = min(channels, key=lambda each: each.rmse)
    if least.rmse < SMALL_MISFIT * least.expected and not least.by_chance(small=True):
        found = f"RMSE / sigma {least.rmse:.3g} ({least.label}): less than the stated noise"
        remedy = "Lower observations.channels.sigma to the noise of the sensor, or use fewer unknowns."
        return Criterion("misfit", least.rmse, "doubtful", found, remedy)
    return Criterion("misfit", worst.rmse, "passed", found)


def is_too_small(scene: Setup, misfit: Criterion) -> bool:
    """Return True if residuals are smaller than the stated noise."""
    return sigma_is_stated(scene) and misfit.value < SMALL_MISFIT


def _advise(worst: ChannelMisfit, time: str, *, white: bool) -> str:
    """Advise what to do about a misfit that is too large; `time`: the unit of times."""
    if worst.has_outliers:
        first, last = worst.when
        at = f"at {first:.4g} {time}" if worst.far == 1 else f"from {first:.4g} to {last:.4g} {time}"
        return (
            f"{worst.far} of {worst.samples} samples make it, {at}; the others have {worst.median:.2g} sigma of noise. "
            'For outliers of the sensor set loss.kind = "huber"; at one moment, the model may miss an event. '
            "Look at fit.png."
        )
    if white:
        return f"Residuals are independent, as noise is: is sigma {worst.rmse:.3g} times the stated one? {GENERAL}"
    return GENERAL


def _judge_robust(channels: list[ChannelMisfit]) -> Criterion:
    """Judge the misfit of a robust loss, which outliers do not rule."""
    worst = max(channels, key=lambda each: (np.isnan(each.median), each.median))
    most = max(channels, key=lambda each: each.far / each.samples)
    found = f"noise of {worst.median:.3g} sigma by the median ({worst.label})"
    if most.far:
        found += f", {most.far} of {most.samples} samples beyond {FAR:g} of it ({most.label})"
    verdict = grade(worst.median, doubtful=LARGE_MISFIT, failed=FAILED_MISFIT)
    if verdict != "passed":
        remedy = (
            f'{GENERAL} From a far start a robust loss sees outliers alone: begin where loss.kind = "squares" ends.'
        )
        return Criterion("misfit", worst.median, verdict, found, remedy)
    if most.far > MANY_FAR * most.samples:
        remedy = f"So many are hardly outliers: the model may not describe them. {GENERAL}"
        return Criterion("misfit", most.far / most.samples, "doubtful", found, remedy)
    if worst.median < SMALL_MISFIT and not worst.by_chance(small=True):
        remedy = (
            "Lower observations.channels.sigma to the noise of the sensor: the loss takes no sample for an outlier."
        )
        return Criterion("misfit", worst.median, "doubtful", found, remedy)
    return Criterion("misfit", worst.median, "passed", found)


def _judge_explained(uncertainty: Uncertainty) -> Criterion:
    """Judge the misfit without a stated noise, by the part of the variance that the model explains."""
    parts = {}
    for label, series, columns in list_channels(uncertainty.series):
        seen = series.seen
        values = along_time(seen, seen.values.reshape(-1)) * np.sqrt(along_time(seen, seen.weights.reshape(-1)))
        there = series.there[:, columns]
        about_mean = values[:, columns][there] - values[:, columns][there].mean()
        whole = float(about_mean @ about_mean)
        parts[label] = 1 - float(np.sum(series.residuals[:, columns] ** 2)) / whole if whole else 0.0
    label, least = min(parts.items(), key=lambda item: item[1])
    verdict: Verdict = "passed" if least >= EXPLAINED else "doubtful" if least >= HARDLY_EXPLAINED else "failed"
    found = f"no sigma is stated; the model explains {100 * least:.4g} % of the variance of {label}"
    remedy = "Look at fit.png, and state observations.channels.sigma: the noise decides what a good fit is."
    return Criterion("misfit", least, verdict, found, "" if verdict == "passed" else remedy)


def exceeds_noise(scene: Setup, uncertainty: Uncertainty, memory: float) -> bool:
    """Return True if residuals are larger than the stated noise, and chance does not explain it.

    `memory`, the correlation of neighbours, makes chance larger: of an autoregressive process of first order chi^2 has
    f (1 - memory^2) / (1 + memory^2) degrees of freedom.
    """
    from scipy.special import chdtrc

    if not sigma_is_stated(scene):
        return False
    square = min(memory**2, 0.99)
    freedom = uncertainty.standard.freedom * (1 - square) / (1 + square)
    if robust_loss(scene.config.loss) is not None:
        median = max([each.median for each in list_misfits(scene, uncertainty)])
        return (median - 1) * np.sqrt(max(freedom, 0)) > CLEAR * MEDIAN_SCATTER
    return freedom > 0 and bool(chdtrc(freedom, freedom * chi_square_per_freedom(uncertainty)) < LEAST_P)


def judge_freedom(uncertainty: Uncertainty) -> Iterator[Criterion]:
    """Doubt errors that rest on so few samples that intervals are far wider than twice the errors; else nothing."""
    from scipy.stats import norm, t

    freedom = uncertainty.standard.freedom
    if freedom < 1:
        return
    times = float(t.ppf(0.975, freedom))
    if times > LARGE_MISFIT * norm.ppf(0.975):
        found = f"{freedom} more than unknowns: intervals of 95 % are {times:.3g} standard errors to either side"
        remedy = "Record more, or seek fewer unknowns: the errors are hardly known themselves."
        yield Criterion("samples", freedom, "doubtful", found, remedy)
