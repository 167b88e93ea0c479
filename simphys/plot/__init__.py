"""Pictures of a run, drawn solely from its recording, so that `simphys plot RUN` can draw them again at any time.

Every function returns a matplotlib Figure and saves it where `path` says; none touches pyplot or its state.
"""

from __future__ import annotations

from pathlib import Path

from simphys.autograd.errors import InputError
from simphys.plot.adjoint import adjoint
from simphys.plot.control import control
from simphys.plot.convergence import convergence
from simphys.plot.fields import fields
from simphys.plot.fit import fit
from simphys.plot.style import NotRecorded
from simphys.plot.trajectory import trajectory
from simphys.record import Recording

__all__ = ["NotRecorded", "adjoint", "all_figures", "control", "convergence", "fields", "fit", "trajectory"]

_PICTURES = {
    "fit": fit,
    "convergence": convergence,
    "adjoint": adjoint,
    "trajectory": trajectory,
    "fields": fields,
    "control": control,
}


def all_figures(recording: Recording, folder: str | Path) -> list[Path]:
    """Write every picture that the run holds the data of as FOLDER/<name>.png; returns the paths.

    Pictures of an earlier run there that this one does not hold the data of are removed.
    InputError: the run holds nothing to draw, or the folder cannot be made. StorageError: a picture cannot be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "Name another one."
        raise InputError(f"folder of pictures {folder}", "must be one that can be made", str(error), remedy) from error
    paths = []
    for name, draw in _PICTURES.items():
        path = folder / f"{name}.png"
        try:
            draw(recording, path)
        except NotRecorded:
            path.unlink(missing_ok=True)  # of an earlier run in this folder
            continue
        paths.append(path)
    if not paths:
        raise NotRecorded(f"run {recording.folder}", "must hold what a picture shows", "nothing of it", "Run it again.")
    return paths
