"""The job `design`: which sensors, recordings and times of a scene tell most about its unknowns."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from simphys import optimize
from simphys.assess.before import refuse_start
from simphys.assess.design import Design, worst_error
from simphys.assess.design import design as rank_changes
from simphys.autograd.errors import InputError, StorageError
from simphys.experiment.scene import Scene
from simphys.plot.fit.design import design as draw
from simphys.plot.fit.design import name_option
from simphys.runs.run_files import make_output_folder

TABLE = "design.csv"
"""Name of the table of all changes, in the output folder."""


def design_scene(scene: Scene) -> Design:
    """Rank changes of a scene's experiment at the start values of its unknowns. Errors: those of `design`."""
    objective = scene.objective()
    try:
        return rank_changes(objective, objective.start)
    except optimize.FailedTrial as error:
        raise refuse_start(error) from error


def format_error(value: float) -> str:
    return "not determined" if np.isinf(value) else f"{value:.3g}"


def option_rows(found: Design) -> list[tuple[str, ...]]:
    """Format the changes: what it is, log det gained, factor of the errors, and the unknown that gains least."""
    rows: list[tuple[str, ...]] = []
    for each in found.options:
        label, factor = worst_error(each, found.now, found.labels)
        lost = np.isinf(each.gain)
        numbers = ("-", "not determined") if lost else (f"{each.gain:+.2f}", f"{each.factor:.3g}")
        rows.append((name_option(each), *numbers, f"{label}: {'-' if np.isinf(factor) else f'{factor:.3g}'}"))
    return rows


def require_no_design(scene: Scene) -> None:
    """Raise InputError if the output folder holds a ranking already."""
    table = Path(scene.config.output.folder) / TABLE
    if table.exists():
        remedy = "Choose another folder (output.folder=PATH), or pass --overwrite, in a script overwrite=True."
        raise InputError(str(table.parent), "must not hold a ranking of changes", f"{TABLE} there", remedy)


def write_design(scene: Scene, found: Design, *, overwrite: bool = False) -> tuple[Path, list[Path]]:
    """Write design.csv, with the errors by each change, and design.png into the output folder; return it and the files.

    `overwrite` replaces those that are there. Errors: InputError for a folder that cannot be made, or that holds a
    ranking; StorageError.
    """
    if not overwrite:
        require_no_design(scene)
    folder = make_output_folder(scene)
    table, picture = folder / TABLE, folder / "design.png"
    try:
        with table.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["change", "log det gained", *[f"error of {label}" for label in found.labels]])
            for each in (found.now, *found.options):
                name = "as it is" if each.kind == "now" else name_option(each)
                rows.writerow([name, each.gain, *each.errors])
    except OSError as error:
        raise StorageError(f"{table} cannot be written: {error.strerror or error}. Free some space.") from error
    draw(found, picture, title=scene.config.title, units=scene.units)
    return folder, [table, picture]
