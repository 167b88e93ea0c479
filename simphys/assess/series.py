"""Residuals of a measurement as series along time, of each experiment by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.experiment.observe_field import FieldObservations
from simphys.experiment.setup import Measurement, Setup

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Series:
    """Whitened residuals of S series at T times: a column for each channel, or for each number of a measured field."""

    name: str
    """Name of the experiment; empty for a single one."""
    seen: Measurement
    residuals: Array
    """Residuals [T, S]."""
    jacobian: Array
    """Derivatives by theta [T, S, p]."""
    there: Array
    """True where there is a sample that counts [T, S]."""

    @property
    def count(self) -> int:
        """Number of samples that count."""
        return int(np.count_nonzero(self.there))


@dataclass(frozen=True)
class SplitResiduals:
    """All residuals of a fit: the series of each experiment, and others."""

    series: tuple[Series, ...]
    extra_residuals: Array
    """Other residuals [m]: of terms about the end, and of regularization."""
    extra_jacobian: Array
    """Derivatives of the other residuals [m, p]."""


def along_time(seen: Measurement, rows: Array) -> Array:
    """Arrange the rows of a measurement, [values.size, ...], as [T, S, ...]."""
    axis = seen.axis if isinstance(seen, FieldObservations) else 0
    shaped = np.moveaxis(rows.reshape(*seen.values.shape, *rows.shape[1:]), axis, 0)
    return shaped.reshape(len(seen.times), -1, *rows.shape[1:])


def split_residuals(setup: Setup, residuals: Array, jacobian: Array) -> SplitResiduals:
    """Split all residuals [m] and their Jacobian [m, p] into those of measurements, which come first, and others."""
    made, begin = [], 0
    for part in setup.parts:
        if (seen := part.observations) is None:
            continue
        rows = slice(begin, begin + seen.values.size)
        begin = rows.stop
        there = along_time(seen, seen.weights.reshape(-1)) > 0
        made.append(Series(part.name, seen, along_time(seen, residuals[rows]), along_time(seen, jacobian[rows]), there))
    return SplitResiduals(tuple(made), residuals[begin:], jacobian[begin:])


def list_columns(seen: Measurement) -> list[tuple[str, slice]]:
    """List label and columns of the series of each channel; a measured field is one channel."""
    if isinstance(seen, FieldObservations):
        return [(seen.field, slice(None))]
    return [(channel.label, slice(i, i + 1)) for i, channel in enumerate(seen.channels)]


def list_channels(series: Sequence[Series]) -> Iterator[tuple[str, Series, slice]]:
    """Iterate over label, series and columns of the channels of all experiments that have a sample."""
    for each in series:
        if each.there.any():
            for label, columns in list_columns(each.seen):
                yield f"{each.name}: {label}" if each.name else label, each, columns
