"""Output of the command line: progress, the table of identified values, proofs, files."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from simphys.experiment.observe import Observations
from simphys.optimize.stages import Stage

if TYPE_CHECKING:
    from simphys.diagnose.check import Certificate
    from simphys.optimize import IterationRecord
    from simphys.runs.estimates import Estimate

    from .workflow import Identification


LOG_SECONDS = 5.0
"""Least time between two lines of progress in a log."""
MANY = 50
"""Largest number of entries of an unknown that the table lists one by one; beyond it, their range."""


class Progress:
    """Progress of a job as one line on stderr: renewed and then erased on a terminal, repeated in a log."""

    def __init__(self, *, patience: float = 0.0) -> None:
        """`patience`: time before the first line in a log [s]."""
        self._began = time.monotonic()
        self._console = Console(stderr=True)
        self._live = Live(Text("starting"), console=self._console, refresh_per_second=10, transient=True)
        self._line = self._logged = ""
        self._log_from = self._log_at = self._began + patience

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.__exit__(kind, error, trace)
        elif self._line != self._logged and time.monotonic() >= self._log_from:
            self._log()

    def seconds_left(self, done: float, whole: float) -> float:
        """Estimate the time left from the time that `done` of the `whole` took."""
        return (whole - done) * (time.monotonic() - self._began) / max(done, 1)

    def show(self, line: str) -> None:
        """Show the present state."""
        self._line = line
        if self._console.is_terminal:
            self._live.update(Text(line))
        elif time.monotonic() >= self._log_at:
            self._log()

    def _log(self) -> None:
        print(self._line, file=sys.stderr, flush=True)
        self._logged, self._log_at = self._line, time.monotonic() + LOG_SECONDS


class FitProgress(Progress):
    """Progress of a fit."""

    def __init__(self, iterations: int) -> None:
        super().__init__()
        self._iterations = iterations

    def update(self, record: IterationRecord) -> None:
        """Show an iteration."""
        done = record.stage * self._iterations + record.index
        left = format_duration(self.seconds_left(done, record.stages * self._iterations))
        part = Stage(record.horizon, record.lowpass).describe()
        stage = f"stage {record.stage + 1}/{record.stages} ({part})  "
        self.show(
            f"{stage if record.stages > 1 else ''}iteration {record.index}/{self._iterations}  "
            f"loss {record.loss:.6g}  |gradient| {record.gradient_norm:.2e}  step {record.step_length:.1e}"
            f"{'' if record.mixture is None else f'  alpha {record.mixture.alpha:.2f}'}"
            f"{f'  at most {left} left' if done else ''}"  # kernels may compile before the first
        )


class RunProgress(Progress):
    """Progress of a simulation; a short one prints nothing in a log."""

    def __init__(self, dt: float) -> None:
        super().__init__(patience=LOG_SECONDS)
        self._dt = dt

    def update(self, step: int, steps: int) -> None:
        """Show a step."""
        left = format_duration(self.seconds_left(step, steps))
        self.show(f"step {step}/{steps}  t = {step * self._dt:.4g} s  {step / steps:.0%}  {left} left")


def format_duration(seconds: float) -> str:
    """Format a time as '45 s', '12 min' or '3.5 h'."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def make_console() -> Console:
    """Return a console for results: as wide as the terminal, or wide enough for whole lines of our tables in a file."""
    width = None if sys.stdout.isatty() else 140
    return Console(width=width, markup=False, emoji=False, highlight=False)  # labels and units may hold brackets


def print_identification(fit: Identification) -> None:
    """Print the table of identified values and the end of the fit."""
    table = Table(title=fit.scene.config.title or "Identified parameters", title_justify="left")
    table.add_column("parameter")
    table.add_column("unit")
    for name in ("start", "value", "standard error"):
        table.add_column(name, justify="right")
    for rows in _group_entries(fit.unknowns):
        table.add_row(*(_format_estimate(rows[0]) if len(rows) == 1 else _format_range(rows)))
    console = make_console()
    console.print(table)
    result = fit.result
    seen = fit.scene.observations
    units = {}
    if isinstance(seen, Observations):
        units = {channel.label: channel.unit for channel in seen.channels}
    elif seen is not None:
        units = {seen.field: seen.unit}
    lines = [
        f"{label}: RMSE {rmse:.4g} {units.get(label) or next(iter(units.values()))}".rstrip()
        for label, rmse in fit.rmse.items()
    ]
    for each in fit.truth_errors:
        start, value = format_percent(each.start), format_percent(each.value)
        lines.append(f"{each.label}: relative error against the truth {start} -> {value}")
    lines.append(result.status if result.message == result.status else f"{result.status}: {result.message}")
    if result.status == "iteration limit":
        config = fit.scene.config
        in_stages = config.optimizer.horizon != "full" or config.loss.lowpass
        again = "" if in_stages else "; with --resume it goes on from here"
        lines.append(f"Raise optimizer.iterations{again}.")
    if not math.isnan(result.loss):
        part = "" if result.horizon == 1 else f" on the first {result.horizon:.3g} of the horizon"
        if result.lowpass is not None:
            part = f", {Stage(lowpass=result.lowpass).describe()},"
        effort = f"{result.iterations} iterations, {result.evaluations} evaluations"
        if fit.scene.config.optimizer.smoothing is not None:
            effort += f" of {fit.scene.config.optimizer.smoothing.samples + 1} losses each"
        lines.append(f"loss {result.loss:.8g}{part} after {effort}")
    lines += _describe_smoothing(fit)
    for line in lines:
        console.print(line, soft_wrap=True)


def _describe_smoothing(fit: Identification) -> Iterator[str]:
    """Describe the loss that was minimized instead of the plain one, and the quality of its gradient."""
    chosen, best = fit.scene.config.optimizer.smoothing, fit.result.mixture
    if chosen is None or best is None:
        return
    yield (
        f"smoothed by {chosen.samples} samples of radius {chosen.radius:g}; without smoothing the loss is "
        f"{best.plain_loss:.8g}"
    )
    along = [record.mixture for record in fit.result.history if record.mixture is not None]
    alpha, first, zeroth = (
        median(getattr(each, name) for each in along) for name in ("alpha", "variance_first", "variance_zeroth")
    )
    yield (
        f"gradient: first-order share alpha {alpha:.2f}; variance first order {first:.2e}, zeroth order {zeroth:.2e} "
        "(medians over iterates)"
    )
    if limited := sum(each.limited for each in along):
        yield (
            f"in {limited} of {len(along)} iterates alpha was limited: gradients did not explain the changes of the "
            "loss within the radius"
        )


def format_percent(part: float) -> str:
    """Format a part of one as a percentage of two digits, such as '12 %'."""
    return f"{100 * part:.{0 if part >= 0.0995 else 1 if part >= 0.00995 else 2}f} %"


def _group_entries(rows: Sequence[Estimate]) -> Iterator[Sequence[Estimate]]:
    """Iterate over the rows of the table one by one, but over all rows of an unknown of many entries at once."""
    for _, group in groupby(rows, key=lambda row: row.label.partition("[")[0]):
        together = list(group)
        yield from [together] if len(together) > MANY else [[row] for row in together]


def _format_estimate(row: Estimate) -> tuple[str, ...]:
    error = row.note or "-" if math.isnan(row.standard_error) else f"{row.standard_error:.2g}"
    return row.label, row.unit, f"{row.start:.6g}", f"{row.value:.8g}", error


def _format_range(rows: Sequence[Estimate]) -> tuple[str, ...]:
    """Format the range of the entries of an unknown."""
    name = f"{rows[0].label.partition('[')[0]}, {len(rows)} values"
    start, value = ([getattr(row, which) for row in rows] for which in ("start", "value"))
    ranges = [f"{min(each):.4g} ... {max(each):.4g}" for each in (start, value)]
    return name, rows[0].unit, *ranges, rows[0].note or "-"


def prove(path: Path, overrides: Sequence[str], check_file: Callable[..., Certificate]) -> Certificate:
    """Make a certificate, which can take half a minute, and show its progress on a terminal."""
    with Console(stderr=True).status("the gradient in all modes") as status:
        return check_file(path, overrides, on_statement=lambda one: status.update(f"{one.title}: {one.error:.1e}"))


def print_files(folder: Path, pictures: Sequence[Path]) -> None:
    """Print the paths of the results."""
    print(f"{folder}/")
    for picture in pictures:
        print(f"  {Path(picture).name}")
