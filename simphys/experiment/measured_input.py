"""Measured inputs of a scene: columns of a file along time that drive the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from simphys.autograd.errors import InputError
from simphys.files.columns import Table, open_table
from simphys.files.selection import rows_of_trial
from simphys.scenefile import ObservationsSection, RecordedSection
from simphys.simulator import Array


def read_input(section: RecordedSection, seen: ObservationsSection | None, *, horizon: float) -> tuple[Array, Array]:
    """Read times [N], in s from the start of the motion, and values [N, A] of a measured input up to a horizon [s].

    Errors: InputError with file, line, column, what is wrong there and the remedy.
    """
    path, shared = section.file, None
    if path is None:
        if seen is None:
            remedy = "Name the file of the input, or add [observations], whose file it then shares."
            raise InputError("control", "needs a file", "neither control.file nor observations.file", remedy)
        path, shared = seen.file, seen
    table: Table = open_table(Path(path), "control.file" if shared is None else "observations.file")
    trials, trial = section.trials, section.trial
    if trials is None and shared is not None:
        trials, trial = shared.trials, shared.trial
    if trials is not None and trial is not None:
        table = rows_of_trial(table, trials, trial, "control")
    time = section.time if section.time is not None else None if shared is None else shared.time
    begin = section.begin
    if begin is None:
        begin = 0.0 if seen is None else seen.part().start
    unit = section.time_unit or (1.0 if shared is None else shared.time_unit)
    times = _read_whole(table, 0 if time is None else time) * unit - begin
    samples = np.stack([_read_whole(table, column) for column in section.columns], axis=1)
    _require_order(times, table, 0 if time is None else time)
    _require_reach(times, horizon, table)
    return times, samples


def _read_whole(table: Table, column: int | str) -> Array:
    """Read a column without gaps."""
    values = table.column(column)
    for row in np.flatnonzero(np.isnan(values))[:1]:
        who = f"{table.place(row)}, {table.name(column)}"
        remedy = "Remove this sample, or fill it in: between samples the input is interpolated."
        raise InputError(who, "an input must not be missing", "no value or NaN", remedy)
    return values


def _require_order(times: Array, table: Table, column: int | str) -> None:
    if len(times) < 2:
        remedy = "Name a file with more, or a control of one knot."
        raise InputError(str(table.path), "an input needs two samples", str(len(times)), remedy)
    for row in np.flatnonzero(np.diff(times) <= 0)[:1]:
        found = f"{times[row + 1]!s} after {times[row]!s}"
        remedy = "Sort the samples by time, name another column in control.time, or the column of trials."
        raise InputError(
            f"{table.place(row + 1)}, {table.name(column)}", "times of an input must increase", found, remedy
        )


def _require_reach(times: Array, horizon: float, table: Table) -> None:
    """Raise InputError unless the input is known over the motion, but for one sample at each end."""
    first, last = times[0] - (times[1] - times[0]), times[-1] + (times[-1] - times[-2])
    if first > 0 or last < horizon * (1 - 1e-9):
        found = f"from {times[0]:g} to {times[-1]:g} after its start"
        remedy = "Set control.begin to the time in the file at which the motion starts, or shorten time.duration."
        constraint = f"the input must be known over the motion, from 0 to {horizon:g}"
        raise InputError(str(table.path), constraint, found, remedy)
