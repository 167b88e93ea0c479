"""A sweep on the command line: its progress, its table, its pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path

import typer
from rich.table import Table

from simphys.app.report import Progress, format_duration, make_console, print_files
from simphys.plot.sweep import draw_sweep
from simphys.rollout.budget import format_size

from .estimate import Estimate, estimate
from .member import read_row
from .run import list_jobs, run_sweep
from .spec import SweepFile, load_sweep
from .table import SweepTable, numbers_of

SHOWN = 20
"""Largest number of members whose rows are printed; the table on disk has all."""
COLUMNS = 8
"""Largest number of columns that are printed."""


def print_sweep(file: Path, *, workers: int | None, collect: bool, dry_run: bool, stop: Callable[[], None]) -> bool:
    """Do a sweep and print its table; False if a member has no result. `stop` is called now and then, and may raise."""
    spec = load_sweep(file)
    if workers is not None:
        spec = spec.model_copy(update={"engine": spec.engine.model_copy(update={"workers": workers})})
    if dry_run:
        print_plan(spec)
        return True
    with SweepProgress() as progress:

        def on_progress(done: int, running: int, bad: int, members: int) -> None:
            progress.update(done, running, bad, members)
            stop()

        table = run_sweep(spec, collect=collect, on_progress=on_progress)
    _print_table(spec, table)
    pictures = draw_sweep(*numbers_of(table), Path(spec.folder))
    print_files(Path(spec.folder), [*table.write(spec.folder), *pictures])
    return table.count("done") == len(table)


class SweepProgress(Progress):
    """Progress of a sweep."""

    def update(self, done: int, running: int, bad: int, members: int) -> None:
        """Show how many members are done."""
        self._first = getattr(self, "_first", done)
        left = format_duration(self.seconds_left(done - self._first, members - self._first))
        later = f"  {left} left" if done > self._first else ""
        self.show(f"{done}/{members} members  {running} running{f'  {bad} failed' if bad else ''}{later}")


def print_plan(spec: SweepFile) -> None:
    """Print what a sweep would do."""
    members = list(spec.members())
    jobs = list_jobs(spec, members)
    rows = [read_row(job.folder) for job in jobs]
    left = rows.count(None)
    typer.echo(
        f"{len(members)} members of {spec.scene}, {len(rows) - left} of them done: {spec.do}, on {spec.engine.kind}"
    )
    for key in spec.keys:
        values = list(dict.fromkeys([str(member[key]) for member in members]))
        shown = ", ".join(values[:6]) + (f", ... {values[-1]}" if len(values) > 6 else "")
        typer.echo(f"  {key}: {len(values)} values, {shown}")
    workers = 1 if spec.engine.kind == "serial" else spec.engine.workers
    if left:
        _print_estimate(estimate(jobs, rows), left, workers)
    if spec.engine.kind == "processes" and (cores := os.cpu_count() or 1) < workers:
        typer.echo(f"  {workers} workers share {cores} cores.")


def _print_estimate(found: Estimate, left: int, workers: int) -> None:
    if found.memory is not None:
        typer.echo(f"  memory: {format_size(found.memory)} of states and adjoints for a member")
    if found.seconds is not None:
        whole = format_duration(found.seconds * left / min(workers, left))
        typer.echo(f"  time: {whole} for {left} members, {found.seconds:.2g} s each, {found.basis}")


def _print_table(spec: SweepFile, table: SweepTable) -> None:
    names = [name for name in table.names if name not in ("reason", "folder")]
    printed = Table(title=f"{spec.do} {Path(spec.scene).name}", title_justify="left")
    for name in names[:COLUMNS]:
        printed.add_column(name, justify="left" if name == "status" else "right")
    columns = [table.column(name) for name in names[:COLUMNS]]
    for number in range(min(len(table), SHOWN)):
        printed.add_row(*[_cell(column[number]) for column in columns])
    console = make_console()
    console.print(printed)
    if len(table) > SHOWN or len(names) > COLUMNS:
        typer.echo(f"The table on disk has all {len(table)} rows and {len(names)} columns.")
    for row, folder in zip(table.rows, table.folders, strict=True):
        if row is not None and row.status != "done":
            typer.echo(f"{row.status}: {folder}: {row.reason.splitlines()[0] if row.reason else ''}", err=True)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)
