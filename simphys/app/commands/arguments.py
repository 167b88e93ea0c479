"""Arguments and options that several commands take, and what they say alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SceneFile = Annotated[Path, typer.Argument(metavar="SCENE", help="A scene file (TOML).")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Overrides, such as material.stiffness=5e3.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in the output folder.")]
Report = Annotated[bool, typer.Option("--report", help="Write report.html, too: one file to open in a browser.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a run.h5 that was moved.")]
Workers = Annotated[
    int | None, typer.Option("--workers", help="Number of processes that share the work.", min=1, show_default="1")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the interrupted run in the output folder.")]


STATUS = {"passed": 0, "failed": 1, "doubtful": 3}
"""Exit status by the verdict about a fit."""
KEEP_SEGMENTS = "Its data lie in segments/ beside run.h5: copy or move the whole folder."
