"""Runs, fits and scenes in a notebook: tables, small pictures, and a replay that plays in its cell."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from simphys import plot
from simphys.autograd.errors import InputError, StorageError
from simphys.autograd.look.html import html_picture, html_table
from simphys.plot.film import encode_gif, write_mp4
from simphys.record import Recording
from simphys.report.build import read_status
from simphys.report.tables import Table, cost_rows, result_tables
from simphys.runs.used_values import in_words, read_departures

HEIGHT = 720  # pixels of a page in a cell


class Page:
    """A page that shows itself in a notebook, and that `save` writes for a browser."""

    def __init__(self, text: str, title: str, *, height: int = HEIGHT) -> None:
        self._text, self._title, self._height = text, title, height

    def __repr__(self) -> str:
        return f"<{self._title}: {len(self._text) / 1e6:.2g} MB of HTML; a notebook shows it, .save(FILE) writes it>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{escape(self._title)}" srcdoc="{escape(self._text)}" '
            f'style="width:100%;height:{self._height}px;border:0"></iframe>'
        )

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, and return its path. Errors: StorageError."""
        target = Path(path)
        try:
            target.write_text(self._text, encoding="utf-8")
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(
                f"page {target} cannot be written: {reason}. Name another file, or free space."
            ) from error
        return target


class Film:
    """Film of a motion that plays in a notebook, and that `save` writes as GIF or MP4."""

    def __init__(self, frames: Sequence[np.ndarray], title: str) -> None:
        self.frames = tuple(frames)
        """Pictures [height, width, 3], 25 a second."""
        self._title = title

    def __repr__(self) -> str:
        return f"<{self._title}: {len(self.frames)} pictures; a notebook plays it, .save(FILE) writes it>"

    def _repr_html_(self) -> str:
        data = base64.b64encode(encode_gif(self.frames)).decode()
        return f'<img alt="{escape(self._title)}" src="data:image/gif;base64,{data}">'

    def save(self, path: str | Path) -> Path:
        """Write the film to FILE.gif, or to FILE.mp4 by ffmpeg; return its path. Errors: InputError, StorageError."""
        target = Path(path)
        if target.suffix == ".mp4":
            if not write_mp4(self.frames, target):
                remedy = "Install ffmpeg, a program in PATH, or write FILE.gif."
                raise InputError(f"film {target}", "needs ffmpeg with a codec for MP4", "none", remedy)
            return target
        if target.suffix != ".gif":
            raise InputError(f"film {target}", "is a GIF or an MP4", target.suffix or "no suffix", "Write FILE.gif.")
        try:
            target.write_bytes(encode_gif(self.frames))
        except OSError as error:
            reason = error.strerror or error
            raise StorageError(
                f"film {target} cannot be written: {reason}. Name another file, or free space."
            ) from error
        return target


def recording_html(recording: Recording) -> str:
    """Show a run: how it ended, its results and cost, and its first picture."""
    parts = [html_table(describe_recording(recording).partition("\n")[0], ("", ""), cost_rows(recording))]
    parts += [_table(each) for each in result_tables(recording)]
    for name, figure in plot.draw_figures(recording):
        parts.append(html_picture(figure, f"picture {name} of the run"))
        break
    return "".join(parts)


def describe_recording(recording: Recording) -> str:
    """Describe a run in a few lines: title, how it ended, what it holds, where it lies."""
    title = recording.scene.get("title") or "a run"
    held = [name for name in recording.keys() if name not in ("h5md", "scene")]  # noqa: SIM118 a method
    job = {"optimize": "Fit", "run": "Simulation"}.get(recording.kind, recording.kind)
    others = read_departures(recording)
    return "\n".join(
        [
            f"{job} '{title}': {read_status(recording).word}",
            *([f"  values   {in_words(others)}"] if others else []),
            f"  in       {recording.name}",
            *([f"  damage   {recording.damage}"] if recording.damage else []),
            f"  holds    {', '.join(held) or 'the scene alone'}",
            "  see      .show() a replay, .plot(NAME) a picture, [PATH] an array",
        ]
    )


def _table(table: Table) -> str:
    return html_table(table.caption, table.heads, table.rows, numbers=table.numbers)
