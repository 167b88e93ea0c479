"""Pictures of a run, drawn solely from its recording, so that `simphys plot RUN` can draw them again at any time.

Every function returns a matplotlib Figure and saves it where `path` says; none touches pyplot or its state.
"""

from __future__ import annotations

from pathlib import Path

from simphys.autograd.errors import InputError
from simphys.plot.adjoint import adjoint
from simphys.plot.animation import animation
from simphys.plot.control import control
from simphys.plot.convergence import convergence
from simphys.plot.fields import fields
from simphys.plot.fit import fit
from simphys.plot.particles import particles
from simphys.plot.style import NotRecorded
from simphys.plot.trajectory import trajectory
from simphys.record import Recording

__all__ = [
    "NotRecorded",
    "adjoint",
    "all_figures",
    "animation",
    "control",
    "convergence",
    "fields",
    "fit",
    "particles",
    "trajectory",
]

_PICTURES = {
    "fit": fit,
    "convergence": convergence,
    "adjoint": adjoint,
    "particles": particles,
    "trajectory": trajectory,
    "fields": fields,
    "control": control,
}
_OF_FEW = {"trajectory", "fields"}
"""What the picture of particles shows in a way that thousands of them can be seen."""


def all_figures(recording: Recording, folder: str | Path) -> list[Path]:
    """Write every picture that the run holds the data of as FOLDER/<name>.png; returns the paths.

    Thousands of particles also move, in animation.gif and, where ffmpeg is installed, animation.mp4.

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
            if name in _OF_FEW and folder / "particles.png" in paths:
                raise NotRecorded(f"picture {name!r}", "shows few bodies", "many", "See the picture 'particles'.")
            draw(recording, path)
        except NotRecorded:
            path.unlink(missing_ok=True)  # of an earlier run in this folder
            continue
        paths.append(path)
    for path in (folder / "animation.gif", folder / "animation.mp4"):
        path.unlink(missing_ok=True)
    if folder / "particles.png" in paths:
        paths += animation(recording, folder / "animation.gif")
    if not paths:
        raise NotRecorded(f"run {recording.folder}", "must hold what a picture shows", "nothing of it", "Run it again.")
    return paths
