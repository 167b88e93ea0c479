"""Some rows of a table: those of one trial, and of those the part of a recording that counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simphys.autograd.errors import InputError

from .columns import Table

LONG_BEFORE, MANY_STEPS = 100, 1e7
"""Lengths of a recording, and time steps, between the start of the motion and the first sample that are a mistake.

The motion is simulated from its start on. Beyond both, a hundredth of it at most would be compared with anything, and a
single loss would take hours: that is the time of a clock, not a wait for the sensor.
"""
SHOWN = 8
"""Largest number of trials that an error lists."""


@dataclass(frozen=True)
class SomeRows:
    """A table of some of the rows of another one."""

    table: Table
    rows: np.ndarray
    """Row numbers, ascending."""

    @property
    def path(self) -> Path:
        return self.table.path

    def column(self, key: int | str) -> np.ndarray:
        return self.table.column(key)[self.rows]

    def label(self, key: int | str) -> str | None:
        return self.table.label(key)

    def name(self, key: int | str) -> str:
        return self.table.name(key)

    def place(self, row: int) -> str:
        return self.table.place(int(self.rows[row]))


def rows_of_trial(table: Table, column: int | str, trial: float, section: str = "observations") -> SomeRows:
    """Select the rows of a trial by the column of their numbers. Errors: InputError with the numbers that there are."""
    numbers = table.column(column)
    rows = np.flatnonzero(numbers == trial)
    if not rows.size:
        there = np.unique(numbers[np.isfinite(numbers)])
        known = ", ".join(f"{number:g}" for number in there[:SHOWN]) + (", ..." if there.size > SHOWN else "")
        who = f"{table.path}, {table.name(column)}"
        remedy = (
            f"Set {section}.trial to one of its numbers: {known or 'none'}; or name another column in {section}.trials."
        )
        raise InputError(who, "must hold the trial", f"no row of trial {trial:g}", remedy)
    return SomeRows(table, rows)


@dataclass(frozen=True)
class Part:
    """The samples of a recording that count, and the time from which on the motion does. All samples by default."""

    window: tuple[float, float] = (-np.inf, np.inf)
    """Times [s] of the file between which samples count."""
    begin: float | None = None
    """Time [s] of the file at which the motion starts; None: that at which a window begins, or 0."""
    every: int = 1
    """Each n-th of these samples counts, from the first one on."""
    time_unit: float = 1.0
    """Unit [s] of the file's times."""

    @property
    def start(self) -> float:
        """Time [s] of the file at which the motion starts."""
        if self.begin is not None:
            return self.begin
        return self.window[0] if np.isfinite(self.window[0]) else 0.0

    def times(self, column: np.ndarray) -> np.ndarray:
        """Times [s] since the start of the motion from those of the file."""
        return column * self.time_unit - self.start

    def find(self, times: np.ndarray, who: str) -> np.ndarray:
        """Find the samples [N] that count by their times since the start. Errors: InputError if there are none.

        A sample without a time counts as one, so that it is told. What lies before a stated start does not count.
        """
        first, last = [end - self.start for end in self.window]
        if self.begin is not None:
            first = max(first, 0.0)
        rows = np.flatnonzero(~((times < first) | (times > last)))
        if not rows.size:
            shown = f" in the window from {self.window[0]:g} to {self.window[1]:g}" * bool(
                np.isfinite(self.window).any()
            )
            since = f" since the start of the motion at {self.begin:g}" if self.begin is not None else ""
            low, high = [float(end) + self.start for end in (np.nanmin(times), np.nanmax(times))]
            constraint = f"must have samples{shown}{since}"
            remedy = "Correct observations.window, observations.begin, or observations.time."
            raise InputError(who, constraint, f"times from {low:g} to {high:g}", remedy)
        return rows[:: self.every]


ALL = Part()
"""All samples of a recording."""


def require_near_start(times: np.ndarray, dt: float, who: str) -> None:
    """Raise InputError if ascending times [s] count from another start than that of the motion, such as Unix time."""
    first, last = float(times[0]), float(times[-1])
    if len(times) < 2 or first <= LONG_BEFORE * (last - first) or first <= MANY_STEPS * dt:
        return
    constraint = "times must count from the start of the motion, at 0"
    before = f"{first / dt:.2g} time steps before a motion of {last - first:.4g}"
    found = f"the first at {first!r}, the last at {last!r}: {before}"
    remedy = (
        f"Set observations.window = [{first!r}, {last!r}], from whose first time on time then counts, or subtract the "
        "first time from the column."
    )
    raise InputError(who, constraint, found, remedy)
