"""Measurements: which columns of a file see which component of the state, checked for all that would spoil a fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from simphys.autograd.errors import InputError
from simphys.files.columns import Table, open_table
from simphys.files.selection import ALL, Part, SomeRows, require_near_start, rows_of_trial
from simphys.scenefile.body_names import NODES, BodyNames
from simphys.simulator import Markers

from .channels import Channel, ChannelSection, make_channel

UNKNOWN = "unknown"
"""The sigma of a channel whose noise fits estimate."""


@dataclass(frozen=True)
class Observations:
    """A checked measurement: N samples of C channels.

    times [N] s, from 0 on and strictly increasing; values [N, C] in the channels' units, 0 where missing;
    weights [N, C] in 1/unit², 1/sigma² times the column of weights, 0 where missing.
    """

    times: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    channels: tuple[Channel, ...]
    file: Path
    noise: tuple[float | None, ...] = ()
    """Noise of each channel whose sigma is unknown, as `weights` take it; None for others. () if none is unknown."""
    is_estimated: bool = False
    """True if this noise was estimated from residuals; before, it is the scatter of the values."""
    validation: np.ndarray | None = None
    """Weights [N, C] of the samples that are held out of the fit, where `weights` are 0; None: all are fitted."""

    def until(self, end: float) -> Observations:
        """The samples up to a time [s]."""
        keep = self.times <= end
        unseen = None if self.validation is None else self.validation[keep]
        return replace(
            self, times=self.times[keep], values=self.values[keep], weights=self.weights[keep], validation=unseen
        )

    def rows_first(self) -> Observations:
        """Themselves: time is the first axis."""
        return self


def read(
    file: str | Path,
    *,
    time: int | str,
    channels: Sequence[ChannelSection],
    shapes: Mapping[str, tuple[int, ...]],
    markers: Markers | None = None,
    names: BodyNames = NODES,
    missing: Literal["error", "skip"] = "error",
    part: Part = ALL,
    trial: tuple[int | str, float] | None = None,
    dt: float | None = None,
) -> Observations:
    """Read a measurement, or raise an InputError that says file, line, column, what is wrong there and the remedy.

    `shapes` are those of the state's fields, `markers` places on bodies, `names` those of bodies. `part` says which
    samples count and from when on time does; `trial` takes those with a number in a column. With the time step `dt`
    [s], times of a clock, which are far from the start, are refused.
    Columns go by number from 0 in text (divided by commas, semicolons, tabs or spaces; lines that start with % or # are
    comments), by name where the first line of text holds no number, and by path for the datasets of an HDF5 file. An
    empty cell, NaN or NA is a missing sample: an error, or with missing="skip" one of weight 0. Stamps need not be
    uniform.
    """
    path = Path(file)
    table = open_table(path)
    if trial is not None:
        table = rows_of_trial(table, *trial)
    if part != ALL:
        table = SomeRows(table, part.find(part.times(table.column(time)), f"{path}, {table.name(time)}"))
    times = _read_times(table, time, part)
    if dt is not None:
        require_near_start(times, dt, f"{path}, {table.name(time)}")
    columns = [_read_channel(table, channel, missing) for channel in channels]
    noise = [
        sigma if channel.sigma == UNKNOWN else None for channel, (*_, sigma) in zip(channels, columns, strict=True)
    ]
    return Observations(
        times=times,
        values=np.stack([values for values, *_ in columns], axis=1),
        weights=np.stack([weights for _, weights, _ in columns], axis=1),
        noise=tuple(noise) if any(noise) else (),
        channels=tuple([make_channel(each, table.label(each.column), shapes, markers, names) for each in channels]),
        file=path,
    )


def _read_times(table: Table, column: int | str, part: Part) -> np.ndarray:
    times = part.times(table.column(column))
    name = table.name(column)
    for row in np.flatnonzero(np.isnan(times))[:1]:
        who = f"{table.place(row)}, {name}"
        raise InputError(who, "every sample must have a time", "none", "Remove this sample or fill in its time.")
    if times[0] < 0:
        remedy = "Times count from the state at the start, at 0: set observations.window = [FIRST, LAST]."
        raise InputError(f"{table.place(0)}, {name}", "times must not be negative", f"{times[0]:g}", remedy)
    for row in np.flatnonzero(np.diff(times) <= 0)[:1]:
        found = f"{times[row + 1]!s} after {times[row]!s}"
        remedy = (
            "Sort the samples by time and keep one of each time, name another column in observations.time, or the "
            "column that numbers trials in observations.trials."
        )
        raise InputError(f"{table.place(row + 1)}, {name}", "times must increase", found, remedy)
    return times


def _read_channel(table: Table, channel: ChannelSection, missing: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Values and weights [N] of one channel, and its sigma."""
    values = table.column(channel.column)
    sigma = _scatter(values) if channel.sigma == UNKNOWN else float(channel.sigma or 1.0)
    if not 0 < sigma**2 < math.inf:
        remedy = "Give the standard deviation of the noise in other units."
        raise InputError(f"observations, {channel.field}, sigma", "1 / sigma^2 must be a number", f"{sigma:g}", remedy)
    weights = 1.0 / (sigma**2 + (channel.relative * np.nan_to_num(values)) ** 2)
    gaps = np.isnan(values)
    gap_column = np.where(gaps, table.name(channel.column), "")
    if channel.weights is not None:
        factors = table.column(channel.weights)
        name = table.name(channel.weights)
        for row in np.flatnonzero(factors < 0)[:1]:
            who, found = f"{table.place(row)}, {name}", f"{factors[row]:g}"
            raise InputError(who, "weights must not be negative", found, "Give a sample to be left out the weight 0.")
        gap_column = np.where(~gaps & np.isnan(factors), name, gap_column)
        gaps |= np.isnan(factors)
        weights *= factors
    if missing == "error":
        for row in np.flatnonzero(gaps)[:1]:
            who = f"{table.place(row)}, {gap_column[row]}"
            remedy = 'Set observations.missing="skip" to give missing samples no weight.'
            raise InputError(who, "samples must not be missing", "no value or NaN", remedy)
    values[gaps] = weights[gaps] = 0.0
    if not weights.any():
        found = f"{np.count_nonzero(gaps)} of {len(values)} missing, the others of weight 0"
        remedy = "Remove the channel or give it another column."
        raise InputError(f"{table.path}, {table.name(channel.column)}", "needs a sample with a weight", found, remedy)
    return values, weights, sigma


def _scatter(values: np.ndarray) -> float:
    """Standard deviation of values, 1 if all are the same: the first guess of an unknown noise."""
    return float(np.nanstd(values)) or 1.0
