"""Fits from many starts, sorted into clusters of one optimum each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .criteria import Criterion
from .starts import SAME_LOSS, SAME_VALUE

Array = np.ndarray[Any, Any]
NEAR = 1e-3
"""Distance of two ends [theta] that are one where there is no standard error."""


@dataclass(frozen=True)
class ManyStarts:
    """Fits from many starts; those that fail have a loss of infinity and belong to no cluster, -1."""

    start: Array
    """Starts [B, p]."""
    theta: Array
    """Ends [B, p]."""
    loss: Array
    """Losses at the ends [B]."""
    cluster: Array
    """Number of the cluster of each end [B], by ascending loss."""
    unit: float = 1.0
    """Divisor of differences of losses, see chi_square.py."""

    @property
    def clusters(self) -> list[Array]:
        """The members of each cluster, the best first."""
        return [np.flatnonzero(self.cluster == number) for number in range(int(self.cluster.max(initial=-1)) + 1)]


def sort_ends(start: Array, theta: Array, loss: Array, errors: Array, unit: float = 1.0) -> ManyStarts:
    """Sort ends into clusters: alike in loss to half a unit, and in each value to a standard error.

    errors [p]: standard errors of theta; NaN where there is none. unit: that of chi^2, see chi_square.py.
    """
    within = np.where(np.isfinite(errors) & (errors > 0), np.maximum(SAME_VALUE * errors, NEAR), NEAR)
    cluster = np.full(len(loss), -1)
    centres: list[int] = []
    for place in np.argsort(loss):
        if not np.isfinite(loss[place]):
            continue
        alike = [
            number
            for number, centre in enumerate(centres)
            if loss[place] - loss[centre] < SAME_LOSS * unit and (np.abs(theta[place] - theta[centre]) <= within).all()
        ]
        if not alike:
            centres.append(int(place))
        cluster[place] = alike[0] if alike else len(centres) - 1
    return ManyStarts(start, theta, loss, cluster, unit)


def judge_clusters(found: ManyStarts) -> Criterion:
    """Judge whether the best optimum is the only one that fits, and how often it was found."""
    clusters, count = found.clusters, len(found.loss)
    best = float(found.loss.min())
    if not clusters:
        remedy = "Choose closer bounds: every start blows up."
        return Criterion("many starts", 0, "failed", f"none of {count} starts can be fitted", remedy)
    share = len(clusters[0]) / count
    place = f"the best of {len(clusters)} optima" if len(clusters) > 1 else "the same optimum"
    words = f"{len(clusters[0])} of {count} starts end at {place}"
    others = [own for own in clusters[1:] if found.loss[own[0]] - best < SAME_LOSS * found.unit]
    if others:
        remedy = "Other values fit as well: observe more, or fix an unknown."
        return Criterion("many starts", share, "doubtful", f"{words}; {len(others)} more fit as well", remedy)
    if len(clusters[0]) < 2:
        remedy = "Try more starts, closer bounds, or differential evolution: a better one may be missed."
        return Criterion("many starts", share, "doubtful", f"{words}, found only once", remedy)
    return Criterion("many starts", share, "passed", words)
