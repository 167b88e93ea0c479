"""The command `simphys`.

Exit status: 0 success; 1 a failed proof, a fit that did not converge or that failed a criterion, a gradient that is not
finite, a full disk, too little memory; 2 invalid input; 3 a fit that is doubtful; 130 Ctrl-C.
"""

from __future__ import annotations

from typing import Annotated

import typer

from simphys._version import __version__
from simphys.app.command import app, main, show_tracebacks

from .commands import begin, fits, runs, scenes  # which register their commands

__all__ = ["app", "begin", "fits", "main", "runs", "scenes"]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"simphys {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Simulate scenes, identify their parameters from recordings, and prove their gradients."""
    show_tracebacks(debug)
