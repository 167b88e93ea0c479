"""A fit as text: the table of its unknowns and how it ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from simphys import optimize

from .digits import format_estimate, format_start
from .estimates import Estimate

FOLDED = 12
"""Number of entries of an unknown above which a table gives their range."""
HEADS = ("unknown", "unit", "start", "value", "standard error", "if correlated", "by half dt")
"""Heads of the columns; the last two are the error with residuals correlated in time, and the change by half dt."""


def estimate_rows(unknowns: Sequence[Estimate]) -> list[tuple[str, ...]]:
    """Format identified values, each to the digits that its larger error allows; many entries of one are folded.

    Without the last two numbers in any row, these columns are left out.
    """
    rows: list[tuple[str, ...]] = []
    for name, group in groupby(unknowns, key=lambda each: each.label.partition("[")[0]):
        entries = list(group)
        if len(entries) > FOLDED:
            starts, values = ([getattr(each, which) for each in entries] for which in ("start", "value"))
            label = f"{name}, {len(entries):,} values"
            rows.append((label, entries[0].unit, _range(starts), _range(values), entries[0].note or "-", "", ""))
            continue
        scale = max(abs(number) for each in entries for number in (each.start, each.value))
        for each in entries:
            value, _ = format_estimate(each.value, each.larger_error)
            _, error = format_estimate(each.value, each.standard_error)
            _, robust = format_estimate(each.value, each.robust_error)
            change = "" if math.isnan(each.half_step_change) else f"{each.half_step_change:+.1e}"
            start = format_start(each.start, scale)
            rows.append((each.label, each.unit, start, value, error or each.note or "-", robust, change))
    width = len(HEADS) if any(row[5] or row[6] for row in rows) else 5
    return [row[:width] for row in rows]


class Last(NamedTuple):
    """Loss of the last iterate, and the number of the best one, counted through all stages."""

    best: int
    loss: float


def last_if_worse(result: optimize.Result) -> Last | None:
    """Tell the last iterate from the best one, which is the result; None if they are the same."""
    if not result.history or not result.history[-1].loss > result.loss:
        return None
    stage = result.history[-1].stage
    for place, record in enumerate(result.history):
        if record.stage == stage and record.loss == result.loss:
            return Last(place - stage, result.history[-1].loss)  # each stage begins with a row for its start
    return None


def fit_text(
    title: str,
    unknowns: Sequence[Estimate],
    result: optimize.Result,
    found: Sequence[str],
    verdict: str,
) -> str:
    """Write a fit as text: its table, what it found besides, line by line, status, loss and verdict."""
    found_rows = estimate_rows(unknowns)
    rows = [HEADS[: len(found_rows[0])], *found_rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [cell.ljust(w) if at < 2 else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True))]
        )
        for row in rows
    ]
    end = "" if math.isnan(result.loss) else f", loss {result.loss:.6g} after {result.iterations} iterations"
    if (last := last_if_worse(result)) is not None:
        end += f" (of iteration {last.best}; the last had {last.loss:.6g})"
    return "\n".join(
        [
            f"Fit {title}".rstrip(),
            *[f"  {line.rstrip()}" for line in lines],
            *found,
            f"{result.status}{end}; verdict: {verdict}",
        ]
    )


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.4g} ... {max(values):.4g}"
