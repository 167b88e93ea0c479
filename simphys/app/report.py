"""Output of the command line: progress, the table of identified values, proofs, files."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.live import Live
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from simphys import scenefile
from simphys.assess import Criterion, worst
from simphys.assess.before import judge_cheaply
from simphys.autograd.errors import StorageError
from simphys.autograd.kernels.compilation import compiled
from simphys.optimize.stages import Stage
from simphys.runs.digits import format_estimate, format_start
from simphys.runs.fit_text import HEADS, estimate_rows, last_if_worse
from simphys.runs.reading import describe_readings, explains_nothing
from simphys.runs.run_files import CERTIFICATE
from simphys.scenefile.simulators import known_names

if TYPE_CHECKING:
    from simphys.diagnose.check import Certificate
    from simphys.diagnose.check.certificate import Statement
    from simphys.experiment.scene import Scene
    from simphys.optimize import IterationRecord

    from .fit_check import Expectation
    from .identification import Identification
    from .intervals import Interval
    from .key_docs import KeyDoc


CLAIMS = 10
"""Number of claims of a certificate: each compares two ways to compute all gradients, and takes about as long."""
LOG_SECONDS = 5.0
"""Least time between two lines of progress in a log."""
LONG_COMPILATION = 1.0
"""Time to compile kernels [s] from which on it is told."""


class Progress:
    """Progress of a job as one line on stderr: renewed and then erased on a terminal, repeated in a log."""

    def __init__(self, *, patience: float = 0.0) -> None:
        """`patience`: time before the first line in a log [s]."""
        self._began = time.monotonic()
        self._console = Console(stderr=True)
        self._line = self._logged = ""
        self._until: float | None = None
        self._before = compiled()
        self._live = Live(get_renderable=self._render, console=self._console, refresh_per_second=10, transient=True)
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
        if kind is None and (made := compiled() - self._before).seconds >= LONG_COMPILATION:
            print(made, file=sys.stderr, flush=True)

    def seconds_left(self, done: float, whole: float) -> float:
        """Estimate the time left from the time that `done` of the `whole` took."""
        return (whole - done) * (time.monotonic() - self._began) / max(done, 1)

    def show(self, line: str, *, until: float | None = None) -> None:
        """Show the present state; `until`, a time of `time.monotonic()`: the time left until then, too."""
        self._line, self._until = line, until
        if not self._console.is_terminal and time.monotonic() >= self._log_at:
            self._log()

    def _render(self) -> Text:
        """The present state on a terminal; before there is any, what takes the time until then."""
        return Text(self._text() or f"starting: {compiled() - self._before}")

    def _text(self) -> str:
        left = None if self._until is None else max(self._until - time.monotonic(), 0.0)
        return self._line if left is None else f"{self._line}  about {format_duration(left)} left"

    def _log(self) -> None:
        print(self._text(), file=sys.stderr, flush=True)
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


class PartsProgress(Progress):
    """Progress of a job of parts that take about as long each; a short one prints nothing in a log."""

    def __init__(self) -> None:
        super().__init__(patience=LOG_SECONDS)

    def update(self, line: str, done: int, whole: int) -> None:
        """Show what is done."""
        until = time.monotonic() + self.seconds_left(done, whole) if done else None
        self.show(f"{line}  {done}/{whole}", until=until)


class RunProgress(Progress):
    """Progress of a simulation; a short one prints nothing in a log."""

    def __init__(self, dt: float, unit: str = "s") -> None:
        super().__init__(patience=LOG_SECONDS)
        self._dt, self._unit = dt, unit

    def update(self, step: int, steps: int) -> None:
        """Show a step."""
        left = format_duration(self.seconds_left(step, steps))
        self.show(f"step {step}/{steps}  t = {step * self._dt:.4g} {self._unit}  {step / steps:.0%}  {left} left")


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
    rows = estimate_rows(fit.unknowns)
    heads = HEADS[: len(rows[0])]
    print_table(fit.scene.config.title or "Identified parameters", heads, rows, range(2, len(heads)))
    console = make_console()
    result = fit.result
    lines = fit.describe_misfits()
    for each in fit.truth_errors:
        start, value = format_percent(each.start), format_percent(each.value)
        lines.append(f"{each.label}: relative error against the truth {start} -> {value}")
    lines.append(result.status if result.message == result.status else f"{result.status}: {result.message}")
    misfit = next((each for each in fit.criteria if each.name == "misfit"), None)
    failed = not result.success if misfit is None else misfit.verdict == "failed" or not result.success
    if fit.scene.measured and failed and result.status != "interrupted":
        lines += describe_readings(fit.scene)
    if result.status == "iteration limit" and not explains_nothing(fit.scene, fit.rmse):
        config = fit.scene.config
        in_stages = config.optimizer.horizon != "full" or config.loss.lowpass
        again = "" if in_stages else "; with --resume it goes on from here"
        lines.append(f"Raise optimizer.iterations{again}.")
    if not math.isnan(result.loss):
        part = "" if result.horizon == 1 else f" on the first {result.horizon:.3g} of the horizon"
        if result.lowpass is not None:
            part = f", {Stage(lowpass=result.lowpass).describe()},"
        plural = "" if result.iterations == 1 else "s"
        effort = f"{result.iterations} iteration{plural}, {result.evaluations} evaluations"
        if fit.scene.config.optimizer.smoothing is not None:
            effort += f" of {fit.scene.config.optimizer.smoothing.samples + 1} losses each"
        lines.append(f"loss {result.loss:.8g}{part} after {effort}")
    if (last := last_if_worse(result)) is not None:
        lines.append(f"the values are those of iteration {last.best}; the last one had the loss {last.loss:.8g}")
    lines += _describe_smoothing(fit)
    if len(fit.criteria) > 1:  # of a fit without a measurement, that of the search alone
        lines += format_criteria(fit.criteria)
    for line in lines:
        console.print(line, soft_wrap=True)


def print_doubts(scene: Scene) -> None:
    """Print to stderr what is doubtful about a fit before it is made, as far as that costs nothing."""
    if scene.measured and scene.config.unknowns:
        for each in judge_cheaply(scene.objective()):
            if each.verdict != "passed":
                print(each, file=sys.stderr)


def print_expectations(rows: Sequence[Expectation]) -> None:
    """Print the errors that a fit can be expected to have."""
    if rows:
        cells: list[tuple[str, ...]] = []
        for row in rows:
            name = row.label.partition("[")[0]
            scale = max(abs(each.start) for each in rows if each.label.partition("[")[0] == name)
            error = "-" if math.isnan(row.error) else f"{row.error:.2g}"
            cells.append((row.label, row.unit, format_start(row.start, scale), error))
        print_table("", ("unknown", "unit", "start", "error to expect"), cells, (2, 3))


def print_intervals(rows: Sequence[Interval]) -> None:
    """Print intervals beside the standard errors."""
    cells = [
        (
            *(r.label, r.unit, format_estimate(r.value, r.standard_error)[0]),
            *[_number(each) for each in (r.standard_error, r.below, r.above)],
            f"{_number(r.factor * r.below)} to {_number(r.factor * r.above)}",
        )
        for r in rows
    ]
    heads = ("unknown", "unit", "value", "standard error", "below", "above", "if correlated")
    print_table("intervals of one standard error, by the profile likelihood", heads, cells, (2, 3, 4, 5, 6))


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.3g}" if value < 0 else f"{value:.3g}"


def format_criteria(criteria: Sequence[Criterion]) -> Iterator[str]:
    """Format criteria one a line, with the advice on those that were not passed, and the verdict."""
    width = max(len(each.name) for each in criteria)
    for each in criteria:
        yield f"{each.verdict:8}  {each.name:{width}}  {each.found}"
        if each.remedy:
            yield f"{'':8}  {'':{width}}  -> {each.remedy}"
    yield f"verdict: {worst(criteria)}"


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


def prove(path: Path, overrides: Sequence[str], check_file: Callable[..., Certificate]) -> Certificate:
    """Make a certificate, which can take half a minute, and show its progress."""
    claims: set[str] = set()
    with PartsProgress() as progress:

        def on_statement(one: Statement) -> None:
            claims.add(one.claim)
            progress.update(f"{one.title}: {one.error:.1e}", min(len(claims), CLAIMS - 1), CLAIMS)

        progress.show("the gradient in all modes")
        return check_file(path, overrides, on_statement=on_statement)


def save_certificate(certificate: Certificate, path: Path, overrides: Sequence[str]) -> None:
    """Write the text of a certificate into the output folder of its scene. Errors: InputError, StorageError."""
    folder = Path(scenefile.load(path, overrides).output.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CERTIFICATE).write_text(f"{certificate}\n", encoding="utf-8")
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(
            f"{folder / CERTIFICATE} cannot be written: {reason}. Name another output.folder."
        ) from error
    print_files(folder, [folder / CERTIFICATE])


def print_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> None:
    """Print a table; `numbers` are the columns that are aligned to the right."""
    table = Table(title=title or None, title_justify="left")
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    make_console().print(table)


def print_keys(docs: Sequence[KeyDoc]) -> None:
    """Print a table of keys of scene files, and the descriptions of their sections, of three at most."""
    rows = [(doc.path, doc.unit, doc.kind, doc.default, doc.bounds) for doc in docs]
    print_table("", ("key", "unit", "value", "default", "bounds"), list(dict.fromkeys(rows)))
    console, sections = make_console(), dict.fromkeys((doc.path.rpartition(".")[0], doc.section) for doc in docs)
    for name, text in list(sections)[:3]:
        console.print(f"{name}: {text}" if name and len(sections) > 1 else text, soft_wrap=True, markup=False)
    if len(names := dict.fromkeys(name for doc in docs for name in doc.simulators)) < len(known_names()):
        console.print(f"simulators: {', '.join(names)}", soft_wrap=True)


def print_python(text: str) -> None:
    """Print the text of a program, in colours on a terminal."""
    console = Console()
    if console.is_terminal:
        console.print(Syntax(text.rstrip(), "python", theme="ansi_dark", background_color="default"), soft_wrap=True)
    else:
        print(text, end="")


def print_files(folder: Path, pictures: Sequence[Path]) -> None:
    """Print the paths of the results."""
    print(f"{folder}/")
    for picture in pictures:
        print(f"  {Path(picture).name}")
