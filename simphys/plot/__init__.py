"""Pictures of a run, drawn from its recording alone, so that `simphys plot RUN` can draw them again at any time.

Every function returns a matplotlib Figure, and saves it at `path` if given; none touches pyplot or its state.
"""

from __future__ import annotations

from pathlib import Path

from simphys.autograd.errors import InputError
from simphys.plot.fields.field_animation import field_animation
from simphys.plot.fields.grids import list_state_fields, read_grid
from simphys.plot.fields.snapshots import snapshots
from simphys.plot.fields.state import fields
from simphys.plot.fit.adjoint import adjoint
from simphys.plot.fit.adjoint_fields import adjoint_fields
from simphys.plot.fit.convergence import convergence
from simphys.plot.fit.gather import gather
from simphys.plot.fit.measurement import fit
from simphys.plot.fit.medium import medium
from simphys.plot.fit.unknown_field import list_unknown_fields
from simphys.plot.fit.variance import variance
from simphys.plot.motion.animation import animation
from simphys.plot.motion.control import control
from simphys.plot.motion.particles import particles
from simphys.plot.motion.trajectory import trajectory
from simphys.plot.style import NotRecorded
from simphys.record import Recording

__all__ = [
    "NotRecorded",
    "adjoint",
    "adjoint_fields",
    "all_figures",
    "animation",
    "control",
    "convergence",
    "field_animation",
    "fields",
    "fit",
    "gather",
    "medium",
    "particles",
    "snapshots",
    "trajectory",
    "variance",
]

_PICTURES = {
    "fit": fit,
    "gather": gather,
    "convergence": convergence,
    "variance": variance,
    "adjoint": adjoint,
    "particles": particles,
    "trajectory": trajectory,
    "fields": fields,
    "control": control,
}
_OF_FEW = {"trajectory", "fields"}
"""Pictures of a few bodies; for thousands, the picture of particles replaces them."""
_OF_FIELDS = ("snapshots", "adjoint", "medium")


def all_figures(recording: Recording, folder: str | Path) -> list[Path]:
    """Write every picture that the run has data for as FOLDER/<name>.png; return the paths.

    Thousands of particles are also animated, in animation.gif and, if ffmpeg is installed, animation.mp4. Each field on
    a grid has pictures with its name: snapshots_<field>.png, animation_<field>.gif, and adjoint_<field>.png, its
    gradient along time. Each unknown field has medium_<unknown>.png.

    Pictures of an earlier run in the folder are removed if this run has no data for them.
    Errors: InputError if the run holds nothing to draw, or the folder cannot be made; StorageError if a picture cannot
    be written.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "Name another one."
        raise InputError(
            f"folder of pictures {folder}", "must be a folder that can be created", str(error), remedy
        ) from error
    paths = []
    for name, draw in _PICTURES.items():
        path = folder / f"{name}.png"
        try:
            if name in _OF_FEW and folder / "particles.png" in paths:
                raise NotRecorded(f"picture {name!r}", "shows few bodies", "many", "See the picture 'particles'.")
            draw(recording, path)
        except NotRecorded:
            path.unlink(missing_ok=True)  # may be from an earlier run in this folder
            continue
        paths.append(path)
    for path in (folder / "animation.gif", folder / "animation.mp4"):
        path.unlink(missing_ok=True)
    if folder / "particles.png" in paths:
        paths += animation(recording, folder / "animation.gif")
    paths += _figures_of_fields(recording, folder)
    if not paths:
        raise NotRecorded(f"run {recording.name}", "must hold data for a picture", "none", "Run it again.")
    return paths


def _figures_of_fields(recording: Recording, folder: Path) -> list[Path]:
    """Draw the pictures of each field on a grid and of each unknown field; remove those of the run's other fields."""
    if "grid" not in recording:
        return []
    paths = []
    fields_along_time, adjoints = list_state_fields(recording), list_state_fields(recording, "adjoint")
    unknowns = list_unknown_fields(recording)
    for name in {*read_grid(recording, "").fields, *unknowns}:
        for path in (*(folder / f"{kind}_{name}.png" for kind in _OF_FIELDS), *_films(folder, name)):
            path.unlink(missing_ok=True)  # may be from an earlier run in this folder
    for label in unknowns:
        paths.append(folder / f"medium_{label}.png")
        medium(recording, paths[-1], unknown=label)
    for name in fields_along_time:
        paths.append(folder / f"snapshots_{name}.png")
        snapshots(recording, paths[-1], field=name)
        if name in adjoints:
            paths.append(folder / f"adjoint_{name}.png")
            adjoint_fields(recording, paths[-1], field=name)
        paths += field_animation(recording, _films(folder, name)[0], field=name)
    return paths


def _films(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"animation_{name}.gif", folder / f"animation_{name}.mp4"
