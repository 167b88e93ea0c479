"""Pictures of a run, drawn from its recording alone, so that `simphys plot RUN` can draw them again at any time.

Every function returns a matplotlib Figure, and saves it at `path` if given; none touches pyplot or its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from simphys.autograd.errors import InputError, StorageError
from simphys.plot.fields.field_animation import draw_field, field_animation
from simphys.plot.fields.grids import list_shown_fields, list_state_fields, read_grid
from simphys.plot.fields.snapshots import snapshots
from simphys.plot.fields.state import fields
from simphys.plot.fit.adjoint import adjoint
from simphys.plot.fit.adjoint_fields import adjoint_fields
from simphys.plot.fit.assessment import assessment, recovery
from simphys.plot.fit.convergence import convergence
from simphys.plot.fit.gather import gather
from simphys.plot.fit.measurement import fit
from simphys.plot.fit.medium import medium
from simphys.plot.fit.posterior import posterior
from simphys.plot.fit.unknown_field import list_unknown_fields
from simphys.plot.fit.variance import variance
from simphys.plot.fit.waterfall import waterfall
from simphys.plot.motion.animation import animation, draw_motion
from simphys.plot.motion.control import control
from simphys.plot.motion.particles import particles
from simphys.plot.motion.trajectory import trajectory
from simphys.plot.style import NotRecorded
from simphys.record import Recording, damage_as_errors, list_parts

__all__ = [
    "NotRecorded",
    "adjoint",
    "adjoint_fields",
    "all_figures",
    "animation",
    "assessment",
    "control",
    "convergence",
    "draw_figures",
    "draw_film",
    "field_animation",
    "fields",
    "fit",
    "gather",
    "medium",
    "particles",
    "posterior",
    "recovery",
    "snapshots",
    "trajectory",
    "variance",
    "waterfall",
]

_PICTURES = {
    "fit": fit,
    "gather": gather,
    "convergence": convergence,
    "assessment": assessment,
    "recovery": recovery,
    "waterfall": waterfall,
    "posterior": posterior,
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
    be written. If the run is damaged, what can be drawn is drawn, and then one of these is raised.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "Name another one."
        raise InputError(
            f"folder of pictures {folder}", "must be a folder that can be created", str(error), remedy
        ) from error
    paths: list[Path] = []
    problems: list[Exception] = []

    def attempt(what: str, draw: Callable[[], list[Path]], *earlier: Path) -> None:
        """Draw, or remove pictures of an earlier run in this folder."""
        try:
            with damage_as_errors(recording.name, what):
                paths.extend(draw())
        except (InputError, StorageError) as error:
            if not isinstance(error, NotRecorded):
                problems.append(error)
            for path in earlier:
                path.unlink(missing_ok=True)

    for name, draw in _PICTURES.items():
        path = folder / f"{name}.png"
        if name in _OF_FEW and folder / "particles.png" in paths:
            path.unlink(missing_ok=True)
        else:
            attempt(f"picture {name!r}", partial(_draw_at, path, draw, recording), path)
    for path in (folder / "animation.gif", folder / "animation.mp4"):
        path.unlink(missing_ok=True)
    if folder / "particles.png" in paths:
        attempt("the animation", partial(animation, recording, folder / "animation.gif"))
    attempt("pictures of fields", partial(_figures_of_fields, recording, folder))
    for part, own in list_parts(recording).items():
        for name, draw in _PICTURES.items():
            path = folder / f"{name}_{part.replace(' ', '_')}.png"
            attempt(f"picture {name!r} of {part}", partial(_draw_at, path, draw, own), path)
    if problems:
        raise _cannot_be_drawn(problems, paths)
    if not paths:
        raise _nothing_to_draw(recording)
    return paths


def _draw_at(path: Path, draw: Callable[..., Figure], recording: Recording) -> list[Path]:
    draw(recording, path)
    return [path]


def _draw_part(draw: Callable[..., Figure], part: Recording, _whole: Recording) -> Figure:
    """Draw one of several experiments in place of the whole run."""
    return draw(part)


def _cannot_be_drawn(problems: list[Exception], paths: list[Path]) -> Exception:
    """The first error, which says that other pictures were drawn."""
    first = problems[0]
    drawn = f"Drawn all the same: {', '.join(path.name for path in paths) or 'nothing'}."
    if isinstance(first, InputError):
        made: Exception = InputError(first.source, first.constraint, first.found, f"{first.remedy} {drawn}")
    else:
        made = StorageError(f"{first} {drawn}")
    made.__cause__ = first
    return made


def draw_figures(
    recording: Recording,
    problems: list[Exception] | None = None,
    on_try: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[str, Figure]]:
    """Draw every still picture that the run has data for, one by one, with the names that `all_figures` gives them.

    Errors of pictures that cannot be drawn from a damaged run are added to `problems`, or raised if that is None.
    `on_try(done, whole)` is called before each one that the run might have data for.
    """
    drawn = set()
    listed = list(_list_figures(recording))
    for done, (name, draw) in enumerate(listed):
        if on_try is not None:
            on_try(done, len(listed))
        if name in _OF_FEW and "particles" in drawn:
            continue
        try:
            with damage_as_errors(recording.name, f"picture {name!r}"):
                figure = draw(recording)
        except NotRecorded:
            continue
        except (InputError, StorageError) as error:
            if problems is None:
                raise
            problems.append(error)
            continue
        drawn.add(name)
        yield name, figure


def _list_figures(recording: Recording) -> Iterator[tuple[str, Callable[..., Figure]]]:
    """List all still pictures that there may be, by name."""
    yield from _PICTURES.items()
    for part, own in list_parts(recording).items():
        for name, draw in _PICTURES.items():
            yield f"{name}_{part}", partial(_draw_part, draw, own)
    for label in list_unknown_fields(recording):
        yield f"medium_{label}", partial(medium, unknown=label)
    adjoints = list_state_fields(recording, "adjoint")
    for name in list_shown_fields(recording):
        yield f"snapshots_{name}", partial(snapshots, field=name)
        if name in adjoints:
            yield f"adjoint_{name}", partial(adjoint_fields, field=name)


def draw_film(recording: Recording, field: str | None = None) -> list[np.ndarray]:
    """Draw the frames [height, width, 3] of the film of a run, 25 a second: of its bodies, or of a field on its grid.

    Errors: NotRecorded without a motion of bodies or of such a field.
    """
    if field is None:
        try:
            return list(draw_motion(recording))
        except NotRecorded:
            if "grid" not in recording:
                raise
    return list(draw_field(recording, field))


def _figures_of_fields(recording: Recording, folder: Path) -> list[Path]:
    """Draw the pictures of each field on a grid and of each unknown field; remove those of the run's other fields."""
    if "grid" not in recording:
        return []
    paths = []
    fields_along_time, adjoints = list_shown_fields(recording), list_state_fields(recording, "adjoint")
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
            with suppress(NotRecorded):  # the loss does not depend on it
                adjoint_fields(recording, folder / f"adjoint_{name}.png", field=name)
                paths.append(folder / f"adjoint_{name}.png")
        paths += field_animation(recording, _films(folder, name)[0], field=name)
    return paths


def _films(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"animation_{name}.gif", folder / f"animation_{name}.mp4"


def _nothing_to_draw(recording: Recording) -> NotRecorded:
    """The error for a run that was killed before the data of its first picture."""
    groups = [name for name in recording.keys() if name not in ("h5md", "scene")]  # noqa: SIM118 a method
    why = "its states were not recorded (output.fields), or are lost" if "motion" in recording else ""
    found = f"{', '.join(groups) or 'its scene alone'}: {why or 'it ended before there was more'}"
    remedy = "Run its scene again, with --overwrite."
    if recording.kind == "optimize":
        remedy = "`simphys optimize SCENE --resume` continues it."
    return NotRecorded(f"run {recording.name}", "must hold data for a picture", found, remedy)
