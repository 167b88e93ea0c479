"""Commands that show what was recorded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from simphys.app import late
from simphys.app.command import command

from .arguments import Run


def is_sweep(folder: Path) -> bool:
    """True for the folder of a sweep."""
    return os.path.isdir(folder / "members") and not os.path.isfile(folder / "run.h5")


@command
def plot(run: Run) -> None:
    """Draw the pictures of a recorded run again."""
    recording = late.record.Recording(run)
    folder = recording.folder or run
    late.report.print_files(folder, late.plot.all_figures(recording, folder))


@command
def film(
    run: Run,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="FILE.gif or FILE.mp4; film.gif in the folder.")
    ] = None,
) -> None:
    """Draw the motion of a run as a film: a GIF of 25 frames a second, or with ffmpeg an MP4.

    Of several experiments, each has its own, such as film_up.gif of the one that is named up.
    """
    recording = late.record.Recording(run)
    path = out or (recording.folder or Path()) / "film.gif"
    parts = late.record.list_parts(recording)
    for name, part in parts.items():
        typer.echo(str(part.animate().save(path.with_stem(f"{path.stem}_{name.replace(' ', '_')}"))))
    if not parts:
        typer.echo(str(recording.animate().save(path)))


@command
def view(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN [RUN ...]", help="Folders of runs, also of unfinished ones.")
    ],
    port: Annotated[int, typer.Option("--port", help="The first port that is tried.")] = 8080,
) -> None:
    """Show runs in the browser, side by side, also while they are being written; Ctrl-C ends it."""
    with late.view.Viewer(runs, port=port) as viewer:
        typer.echo(f"Open {viewer.address} in a browser; Ctrl-C ends it.")
        viewer.wait()


@command
def report(
    run: Run,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file; report.html in the run's folder.")
    ] = None,
) -> None:
    """Write a run, or a sweep, as one HTML file that opens in any browser: tables, pictures, of a run a replay."""
    if is_sweep(run):
        typer.echo(str(late.sweep_page.write_sweep_page(run, out)))
        return
    recording = late.record.Recording(run)
    with late.report.PartsProgress() as progress:
        path = late.page.write_report(
            recording, out, on_picture=lambda done, whole: progress.update("pictures", done, whole)
        )
    typer.echo(str(path))


@command
def compare(first: Run, second: Run) -> None:
    """Compare two runs: how they ended, what their scenes differ in, and their values in units of their errors."""
    for table in late.compare_runs.compare_runs(late.record.Recording(first), late.record.Recording(second)):
        late.report.print_table(table.caption, table.heads, table.rows, table.numbers)


@command
def export(
    run: Run,
    to: Annotated[str, typer.Option("--to", help="vtkhdf (for ParaView), csv, npz or xarray.")] = "vtkhdf",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Where; export/ in the run's folder.")
    ] = None,
) -> None:
    """Write a run's data to files that other programs read."""
    recording = late.record.Recording(run)
    for path in late.export.export_run(recording, out or (recording.folder or Path()) / "export", to):
        typer.echo(str(path))
