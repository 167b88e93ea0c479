"""Series of residuals made independent: the noise of a channel may have a memory, which its residuals tell.

The correlation time (memory.py) is that of what is left of a channel once the unknowns are fitted to each of its series
alone: what differs between recordings, and stays in the residuals of a fit to all of them, is no noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from simphys.experiment.memory_noise import make_memories, whiten

from .memory import Residuals, find_memory
from .series import Series, list_columns

Array = np.ndarray[Any, Any]

MOST_SERIES = 30
"""Series of a channel, spread over all recordings, of which its correlation time is found."""
TOLD = 1e-6
"""Derivative, relative to the largest, below which a series does not tell a combination of unknowns."""
FLAT = 5.0
"""Largest standard error of the logarithm of a correlation time: a hundredth or a hundredfold of it is no news."""


class Memory(NamedTuple):
    """Noise of a channel that has a memory."""

    tau: float
    """Correlation time [s]."""
    doubt: float
    """Standard error of the logarithm of variances of what varies slowly."""


def whiten_series(series: Sequence[Series]) -> tuple[tuple[Series, ...], float]:
    """Make the residuals of series, and their derivatives, independent in time.

    Also returns how uncertain the correlation times make variances of what varies slowly, as the largest standard error
    of their logarithm; 0 where no noise has a memory.
    """
    found = _find_memories(series)
    if not found:
        return tuple(series), 0.0
    made = tuple([_whiten_one(each, found) for each in series])
    return made, max([memory.doubt for memory in found.values()])


def _find_memories(series: Sequence[Series]) -> dict[str, Memory]:
    """Find the memory of each channel whose noise has one, by its label."""
    columns: dict[str, list[tuple[Series, int]]] = {}
    for each in series:
        for label, where in list_columns(each.seen):
            columns.setdefault(label, []).extend([(each, c) for c in range(each.there.shape[1])[where]])
    found = {}
    for label, all_of_it in columns.items():
        some = all_of_it[:: -(-len(all_of_it) // MOST_SERIES)]
        fitted = [fit for one, column in some if (fit := _fit_alone(one, column)) is not None]
        count = sum([len(fit.times) for fit in fitted])
        taken = sum([fit.jacobian.shape[1] for fit in fitted])
        if not any(fit.values.any() for fit in fitted):
            continue
        memory = find_memory(fitted, left=1 - taken / count, own=True)
        if memory.tau is not None:
            interval = float(np.median(np.concatenate([np.diff(fit.times) for fit in fitted])))
            found[label] = Memory(memory.tau, _doubt(interval / memory.tau, memory.error))
    return found


def _doubt(x: float, error: float) -> float:
    """Compute the standard error of log (1 + rho) / (1 - rho), rho = exp(-x), by that of log x.

    The sum of all covariances of a sample is that ratio. A flat likelihood tells log x within a factor e^FLAT.
    """
    return min(error, FLAT) * x / float(np.sinh(min(x, 700.0)))


def _fit_alone(each: Series, column: int) -> Residuals | None:
    """Fit the unknowns to one series; None where they take all of its samples."""
    there = each.there[:, column]
    values, jacobian = each.residuals[there, column], each.jacobian[there, column]
    basis, sizes, _ = np.linalg.svd(jacobian, full_matrices=False)
    basis = basis[:, sizes > TOLD * sizes.max(initial=0.0)]
    if values.size < basis.shape[1] + 2:
        return None
    return Residuals(np.asarray(each.seen.times)[there], values - basis @ (basis.T @ values), basis)


def _whiten_one(each: Series, found: dict[str, Memory]) -> Series:
    """Make the residuals of the series of one experiment, and their derivatives, independent."""
    times: list[float | None] = [None] * each.there.shape[1]
    for label, where in list_columns(each.seen):
        if label in found:
            times[where] = [found[label].tau] * len(times[where])
    memories = make_memories(np.asarray(each.seen.times), each.there, times)
    jacobian = each.jacobian.copy()
    for column, memory in enumerate(memories):
        if memory is not None:
            jacobian[:, column] = whiten([memory] * jacobian.shape[2], jacobian[:, column])
    return replace(each, residuals=whiten(memories, each.residuals), jacobian=jacobian)
