"""Measurements: which columns of a file see which component of the state, checked for all that would spoil a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

from simphys.autograd.errors import InputError
from simphys.files.columns import Table, open_table
from simphys.scenefile.fit_sections import component_index

AXIS_NAMES = "xyz"


class ChannelSection(Protocol):
    """The data of a channel that `read` needs, as the scene file's section has them."""

    @property
    def column(self) -> int | str: ...
    @property
    def field(self) -> str: ...
    @property
    def node(self) -> int | list[int]: ...
    @property
    def axis(self) -> int: ...
    @property
    def unit(self) -> str: ...
    @property
    def sigma(self) -> float: ...
    @property
    def weights(self) -> int | str | None: ...


@dataclass(frozen=True)
class Channel:
    """A column of measured values: a component of `field`, by its index, in `unit`."""

    label: str
    field: str
    component: tuple[int, ...]
    unit: str


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

    def until(self, end: float) -> Observations:
        """The samples up to a time [s]."""
        keep = self.times <= end
        return replace(self, times=self.times[keep], values=self.values[keep], weights=self.weights[keep])

    def rows_first(self) -> Observations:
        """Themselves: time is the first axis."""
        return self


def read(
    file: str | Path,
    *,
    time: int | str,
    channels: Sequence[ChannelSection],
    shapes: Mapping[str, tuple[int, ...]],
    missing: Literal["error", "skip"] = "error",
) -> Observations:
    """Read a measurement, or raise an InputError that says file, line, column, what is wrong there and the remedy.

    `shapes` are those of the state's fields.
    Columns go by number from 0 in text (by commas or by spaces; lines that start with % or # are comments), by name
    where the first line of text holds no number, and by path for the datasets of an HDF5 file. An empty cell, NaN
    or NA is a missing sample: an error, or with missing="skip" one of weight 0. Stamps need not be uniform.
    """
    path = Path(file)
    table = open_table(path)
    times = _read_times(table, time)
    columns = [_read_channel(table, channel, missing) for channel in channels]
    return Observations(
        times=times,
        values=np.stack([values for values, _ in columns], axis=1),
        weights=np.stack([weights for _, weights in columns], axis=1),
        channels=tuple(_channel(table, channel, shapes[channel.field]) for channel in channels),
        file=path,
    )


def _channel(table: Table, channel: ChannelSection, shape: tuple[int, ...]) -> Channel:
    index = component_index(channel.node, channel.axis, shape)
    label = table.label(channel.column) or component_name(channel.field, index, shape)
    return Channel(label, channel.field, index, channel.unit)


def component_name(field: str, index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """Name a component of a field of this shape, for measurements without names.

    Axes have letters where there are two or three of them; an angle, or a place along a line, is a number.
    """
    if len(shape) == 2 and shape[1] == 1:
        index = index[:1]
    elif len(shape) == 2 and shape[1] <= len(AXIS_NAMES):
        return f"{field} {AXIS_NAMES[index[1]]} of node {index[0]}"
    at = ", ".join(map(str, index))
    return f"{field} of node {at}" if len(index) == 1 else f"{field} at {at}" if index else field


def _read_times(table: Table, column: int | str) -> np.ndarray:
    times = table.column(column)
    name = table.name(column)
    for row in np.flatnonzero(np.isnan(times))[:1]:
        who = f"{table.place(row)}, {name}"
        raise InputError(who, "every sample must have a time", "none", "Remove this sample or fill in its time.")
    if times[0] < 0:
        remedy = "Times count in seconds from the state at the start, at 0: subtract the first one from all."
        raise InputError(f"{table.place(0)}, {name}", "times must not be negative", f"{times[0]:g}", remedy)
    for row in np.flatnonzero(np.diff(times) <= 0)[:1]:
        found = f"{times[row + 1]!s} after {times[row]!s}"
        remedy = "Sort the samples by time and keep one of each time, or name another column in observations.time."
        raise InputError(f"{table.place(row + 1)}, {name}", "times must increase", found, remedy)
    return times


def _read_channel(table: Table, channel: ChannelSection, missing: str) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights [N] of one channel."""
    values = table.column(channel.column)
    weights = np.full(len(values), 1.0 / channel.sigma**2)
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
    return values, weights
