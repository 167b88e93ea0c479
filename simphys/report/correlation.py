"""Correlation of the errors of the unknowns, as a table with coloured cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.record import Recording

MOST = 30
"""Largest number of unknowns in the table."""


@dataclass(frozen=True)
class Cell:
    """Cell of the table, with its colours."""

    text: str
    back: str
    ink: str


@dataclass(frozen=True)
class Correlation:
    """Table of correlations."""

    caption: str
    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    remark: str


def read_correlation(recording: Recording) -> Correlation | None:
    """Read the correlations that a fit recorded; None where it has none, or too many unknowns for a table."""
    if "covariance/correlation" not in recording:
        return None
    labels: Any = recording.attrs("covariance")["labels"]
    names, values = tuple(str(label) for label in labels), recording["covariance/correlation"]
    if not 2 <= len(names) <= MOST or values.shape != (len(names),) * 2:
        return None
    off = np.nan_to_num(np.abs(values - np.eye(len(names))))
    first, second = np.unravel_index(off.argmax(), off.shape)
    largest = f"{names[first]} and {names[second]} are correlated most, by {_signed(values[first, second])}."
    caption = "Correlation of the errors of two unknowns: near 1 or \N{MINUS SIGN}1 the data hardly tell them apart."
    return Correlation(caption, names, tuple(tuple(_cell(value) for value in row) for row in values), largest)


def _cell(value: float) -> Cell:
    """Colour a cell: blue for -1, orange for 1, and no colour for 0, which suits light and dark paper."""
    if not np.isfinite(value):
        return Cell("\N{EN DASH}", "transparent", "inherit")
    strength = round(100 * min(abs(value), 1.0) ** 1.2)
    colour = "#d55e00" if value > 0 else "#0072b2"
    return Cell(
        _signed(value), f"color-mix(in srgb, {colour} {strength}%, transparent)", "#fff" if strength > 60 else "inherit"
    )


def _signed(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text.replace("-", "\N{MINUS SIGN}")
