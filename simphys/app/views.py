"""Views that scenes, runs and trajectories offer as methods (simulator/views.py finds this module by name)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from simphys import plot
from simphys.app.workflow import simulate
from simphys.autograd.errors import InputError, StorageError
from simphys.diagnose.health import Health
from simphys.experiment.scene import Scene
from simphys.plot import style
from simphys.plot.components import draw_elements, name_elements
from simphys.plot.fit.health import health
from simphys.record import Recording, list_parts
from simphys.report import make_page
from simphys.report.notebook import Film, Page, describe_recording, recording_html
from simphys.rollout import Trajectory
from simphys.runs.motion import record_trajectory
from simphys.runs.run_files import find_unit
from simphys.scenefile.body_names import BodyNames, name_bodies
from simphys.scenefile.channel_names import name_rows

__all__ = [
    "describe_recording",
    "film_recording",
    "film_trajectory",
    "plot_health",
    "plot_recording",
    "plot_trajectory",
    "recording_html",
    "show_recording",
    "show_scene",
]

MAIN = ("fit", "convergence", "particles", "trajectory", "fields")


def show_scene(scene: Scene) -> Page:
    """Simulate a scene in memory, and make the page of its motion. Errors: those of `simulate`."""
    return show_recording(simulate(scene))


def show_recording(recording: Recording) -> Page:
    """Make the page of a run, with its replay."""
    return Page(make_page(recording), f"report of {recording.scene.get('title') or 'a run'}")


def plot_recording(recording: Recording, name: str | None = None) -> Figure:
    """Draw a picture of a run by its name, by default the first that shows its result. Errors: InputError."""
    figures: dict[str, Figure] = {}
    for found, figure in plot.draw_figures(recording):
        if found == name or (name is None and found == MAIN[0]):
            return figure
        figures[found] = figure
    if name is None and figures:
        return next((figures[each] for each in MAIN if each in figures), next(iter(figures.values())))
    known = f"has the pictures {', '.join(figures) or 'none'}"
    raise InputError(f"picture of {recording.name}", known, repr(name), "Name one of these.")


def plot_trajectory(trajectory: Trajectory, field: str | None = None) -> Figure:
    """Draw a field of a trajectory over its steps: a curve for each number, or the median and the middle 90 %.

    Of a batch, the first member is drawn. Errors: InputError for an unknown field.
    """
    names = trajectory.states.names()
    chosen = names[0] if field is None else field
    if chosen not in names:
        raise InputError("Trajectory.plot", f"the fields are {', '.join(names)}", repr(field), "Name one of these.")
    values = np.asarray(getattr(trajectory.states, chosen).data)
    if values.shape[0] != len(trajectory.steps):  # a batch
        values = values[0]
    scene = trajectory.source
    across, unit = ("step", "") if scene is None else (f"time [{scene.units.time}]", find_unit(scene, chosen))
    with style.style():
        figure = style.Picture(figsize=(style.WIDTH, 3.2), layout="constrained")
        axes = figure.subplots()
        draw_elements(axes, trajectory.steps * (1 if scene is None else scene.dt), values, _names(scene, chosen))
        name_elements(axes, values.shape[1:])
        axes.set(xlabel=across, ylabel=style.with_unit(style.words(chosen), unit))
        low, high = style.bounds(values)
        axes.set_title(f"{style.words(chosen)}: from {low} to {high}")
    return figure


def _names(scene: Scene | None, field: str) -> BodyNames | None:
    """Name the rows of a field of the state; None if nothing is known of them."""
    if scene is None:
        return None
    moves = scene.bodies is not None and field in ("position", "velocity")
    return name_bodies(scene.config) if moves else name_rows(scene.config, field)


def film_recording(recording: Recording, field: str | None = None) -> Film:
    """Make the film of a run. Errors: InputError for several experiments; NotRecorded; StorageError for lost states."""
    if parts := list_parts(recording):
        remedy = "Take one of `simphys.record.list_parts(recording)`; `simphys film RUN` draws them all."
        raise InputError(f"film of {recording.name}", "needs one motion", f"experiments {', '.join(parts)}", remedy)
    try:
        frames = plot.draw_film(recording, field)
    except StorageError as error:
        raise StorageError(f"{error} `simphys plot RUN` draws the pictures that need no such states.") from error
    return Film(frames, f"film of {recording.scene.get('title') or 'a run'}")


def film_trajectory(trajectory: Trajectory, field: str | None = None) -> Film:
    """Make the film of a trajectory of a scene. Errors: InputError for one of a model alone, NotRecorded."""
    if trajectory.source is None:
        remedy = "Use Scene.rollout, which knows what is to be drawn."
        raise InputError("Trajectory.animate", "needs the scene of the motion", "a rollout of a model", remedy)
    return film_recording(record_trajectory(trajectory.source, trajectory), field)


def plot_health(found: Health) -> Figure:
    """Draw the health of a gradient."""
    units: dict[str, Any] = {}
    return health(found, units=units)
