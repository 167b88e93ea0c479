"""The page of a sweep: one HTML file of its table and pictures, made from its folder alone."""

from __future__ import annotations

import math
from pathlib import Path

from simphys.plot.sweep import sweep_figures
from simphys.report.build import NAME, Status, render_page, save_page
from simphys.report.pictures import Group, Picture, make_picture
from simphys.report.tables import Table

from .table import SweepTable, numbers_of

MOST_ROWS = 200
"""Largest number of members in the table of the page; table.csv has all."""
MOST_NOTES = 20
"""Largest number of members without a result whose reasons are on the page."""
CAPTIONS = {
    "response": "What comes out over what was varied.",
    "map": "What comes out over the first two keys.",
    "parallel": "Each member as a line across what was varied and what came out.",
    "waterfall": "The losses at the ends of all searches, the least first: steps are optima.",
    "truth": "How identified values are distributed about the known ones.",
}


def write_sweep_page(folder: Path, path: Path | None = None) -> Path:
    """Write the page of the sweep in a folder, report.html there unless another path is given; return its path.

    Errors: InputError for a folder without the table of a sweep; StorageError if the page cannot be written.
    """
    return save_page(make_sweep_page(SweepTable.read(folder), folder.resolve().name), path or folder / NAME)


def make_sweep_page(table: SweepTable, name: str) -> str:
    """Make the text of the page of a sweep."""
    statuses = [str(status) for status in table.column("status")]
    counts = {status: statuses.count(status) for status in dict.fromkeys(statuses)}
    whole = counts.get("done", 0) == len(table)
    pictures = tuple(_draw(table))
    groups = (Group("responses", "Responses", pictures),) if pictures else ()
    names = {"results": "Members", **{group.id: group.title for group in groups}}
    return render_page(
        title=f"Sweep {name}",
        lead=f"{len(table)} members, over {', '.join(table.keys)}",
        status=Status("complete" if whole else "incomplete", "good" if whole else "warn", ""),
        tiles=[{"name": f"members {status}", "value": str(count)} for status, count in counts.items()],
        notes=_notes(table),
        results=[_tabulate(table)],
        pictures=groups,
        contents=[{"id": key, "title": title} for key, title in names.items()],
        source=f"the folder {name}",
    )


def _notes(table: SweepTable) -> list[str]:
    found = [
        f"{row.status}: {folder}: {row.reason}"
        for row, folder in zip(table.rows, table.folders, strict=True)
        if row is not None and row.status != "done"
    ]
    more = len(found) - MOST_NOTES
    return found[:MOST_NOTES] + ([f"{more} more: table.csv has all reasons."] if more > 0 else [])


def _tabulate(table: SweepTable) -> Table:
    names = [name for name in table.names if name not in ("reason", "folder")]
    columns = [[_cell(cell) for cell in table.column(name)[:MOST_ROWS]] for name in names]
    left = len(table) - MOST_ROWS
    caption = "Members" if left <= 0 else f"The first {MOST_ROWS} members; table.csv has {left} more"
    numbers = tuple([at for at, name in enumerate(names) if table.column(name).dtype.kind in "iuf"])
    return Table(caption, tuple(names), tuple(zip(*columns, strict=True)), numbers)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)


def _draw(table: SweepTable) -> list[Picture]:
    figures = sweep_figures(*numbers_of(table))
    return [make_picture(name, figure, CAPTIONS[name]) for name, figure in figures.items()]
