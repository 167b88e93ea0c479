"""Two runs side by side: what their scenes differ in, and what they found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from simphys.record import Recording, damage_as_errors
from simphys.report.build import read_status
from simphys.report.tables import Table, cost_rows, count_iterations, read_estimates
from simphys.runs.digits import format_estimate
from simphys.runs.estimates import Estimate

MOST = 40
"""Largest number of unknowns in the table: those that differ most, in their errors."""
NONE = "-"


def compare_runs(first: Recording, second: Recording) -> Iterator[Table]:
    """Make tables of two runs: how they ended, the keys in which their scenes differ, and their values.

    Errors: InputError, StorageError for runs that are damaged.
    """
    with damage_as_errors(f"{first.name} and {second.name}", "comparison"):
        yield from _tables(first, second)


def _tables(first: Recording, second: Recording) -> Iterator[Table]:
    rows = [("run", first.name, second.name)]
    one, other = (dict(_summary(each)) for each in (first, second))
    rows += [(name, one.get(name, NONE), other.get(name, NONE)) for name in dict.fromkeys([*one, *other])]
    yield Table("Runs", ("", "first", "second"), tuple(rows))
    left, right = _flatten(first.scene), _flatten(second.scene)
    keys = [key for key in dict.fromkeys([*left, *right]) if left.get(key) != right.get(key)]
    shown = [(key, *[_shorten(each.get(key, NONE)) for each in (left, right)]) for key in keys]
    if changed := [row for row in shown if not row[0].startswith("output.")]:
        yield Table("Scenes differ in", ("key", "first", "second"), tuple(changed))
    if values := tuple(_value_rows(first, second)):
        heads = ("unknown", "unit", "first", "second", "difference", "in errors", "errors")
        yield Table("Identified values", heads, values, (2, 3, 4, 5))


def _summary(recording: Recording) -> Iterator[tuple[str, str]]:
    yield "title", str(recording.scene.get("title", ""))
    yield "ended", read_status(recording).word
    if "unknowns" in recording:
        loss: Any = recording.attrs("unknowns")["loss"]
        yield "loss", f"{loss:.8g}"
    if (count := count_iterations(recording)) is not None:
        yield "iterations", str(count)
    yield from cost_rows(recording)
    for name in ("simphys", "compiler", "arch", "precision"):
        yield name, str(recording.provenance.get(name, "unknown"))


def _flatten(table: Any, path: str = "") -> dict[str, str]:
    """List the values of a scene by their keys; tables in a list have their number in it."""
    if isinstance(table, list) and table and all(isinstance(each, Mapping) for each in table):
        table = dict(enumerate(table))
    if isinstance(table, Mapping):
        parts = [_flatten(value, f"{path}.{name}".lstrip(".")) for name, value in table.items()]
        return {name: value for part in parts for name, value in part.items()}
    return {path: str(table)}


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _value_rows(first: Recording, second: Recording) -> Iterator[tuple[str, ...]]:
    """Compare the unknowns that both have, by the larger errors of each; both runs are taken as independent."""
    one, other = ({row.label: row for row in read_estimates(each)} for each in (first, second))
    rows = []
    for a, b in [(one[label], other[label]) for label in one if label in other]:
        change, error = b.value - a.value, math.hypot(a.larger_error, b.larger_error)
        ratio = change / error if error > 0 else math.nan
        shown = [format_estimate(each.value, each.larger_error)[0] for each in (a, b)]
        known = (NONE, NONE) if math.isnan(ratio) else (f"{ratio:+.2g}", _name_errors(a, b))
        size = abs(ratio) if math.isfinite(ratio) else abs(change)
        rows.append((size, (a.label, a.unit, *shown, f"{change:+.3g}", *known)))
    if len(rows) > MOST:
        rows = sorted(rows, key=lambda row: -row[0])[:MOST]
    yield from [row for _, row in rows]


def _name_errors(*rows: Estimate) -> str:
    """Name the errors that count, as the table of a fit does."""
    names = ["if correlated" if row.robust_error > row.standard_error else "standard error" for row in rows]
    return ", ".join(dict.fromkeys(names))
