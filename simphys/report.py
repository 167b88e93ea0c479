"""What the command line prints: progress, the table of identified parameters, proofs, files."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from .check import Line
    from .optimize import IterationRecord
    from .workflow import Identification


class FitProgress:
    """One line of progress, renewed at each iteration, with loss, gradient norm, step length and time left."""

    def __init__(self, iterations: int) -> None:
        self._iterations = iterations
        self._began = time.monotonic()
        self._live = Live(Text("starting"), console=Console(stderr=True), refresh_per_second=10)

    def __enter__(self) -> FitProgress:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def update(self, record: IterationRecord) -> None:
        """Show an iteration."""
        done = record.stage * self._iterations + record.index
        left = (record.stages * self._iterations - done) * (time.monotonic() - self._began) / max(done, 1)
        self._live.update(
            Text(
                f"stage {record.stage + 1}/{record.stages} ({record.horizon:.3g} of the horizon)  "
                f"iteration {record.index}/{self._iterations}  loss {record.loss:.6g}  "
                f"|gradient| {record.gradient_norm:.2e}  step {record.step_length:.1e}  at most {left:.0f} s left"
            )
        )


def print_identification(fit: Identification) -> None:
    """The table of identified parameters and how the fit ended."""
    table = Table(title=fit.scene.config.title or "Identified parameters", title_justify="left")
    table.add_column("parameter")
    table.add_column("unit")
    for name in ("start", "value", "standard error"):
        table.add_column(name, justify="right")
    for row in fit.unknowns:
        error = row.note or "-" if math.isnan(row.standard_error) else f"{row.standard_error:.2g}"
        table.add_row(row.label, row.unit, f"{row.start:.6g}", f"{row.value:.8g}", error)
    console = Console()
    console.print(table)
    result = fit.result
    seen = fit.scene.observations
    units = {channel.label: channel.unit for channel in seen.channels} if seen else {}
    for label, rmse in fit.rmse.items():
        console.print(f"{label}: RMSE {rmse:.4g} {units.get(label) or next(iter(units.values()))}", highlight=False)
    console.print(f"{result.status}: {result.message}", highlight=False)
    console.print(
        f"loss {result.loss:.8g} after {result.iterations} iterations, {result.evaluations} evaluations",
        highlight=False,
    )


def print_proof(lines: Sequence[Line]) -> bool:
    """The statements of a proof; returns whether all hold."""
    table = Table(title="Gradient, over the full horizon in f64", title_justify="left")
    for name in ("", "statement", "relative error", "tolerance", "note"):
        table.add_column(name, justify="right" if name in ("relative error", "tolerance") else "left")
    for line in lines:
        table.add_row(
            "ok" if line.passed else "FAILED", line.what, f"{line.error:.1e}", f"{line.tolerance:.0e}", line.note
        )
    console = Console()
    console.print(table)
    failed = sum(not line.passed for line in lines)
    console.print("proven" if not failed else f"{failed} of {len(lines)} statements failed")
    return not failed


def print_files(folder: Path, pictures: Sequence[Path]) -> None:
    """Where the results lie."""
    print(f"{folder}/")
    for picture in pictures:
        print(f"  {Path(picture).name}")
