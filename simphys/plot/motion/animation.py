"""Animation of a motion: bodies in every form in which they are drawn, or values along time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from simphys.plot import style
from simphys.plot.film import LONGEST, choose_rows, film, write_film
from simphys.plot.motion import stages
from simphys.plot.motion.discs import RADIUS
from simphys.plot.motion.particles import MANY, ParticleView, draw_colorbar, draw_particles, draw_walls, read_view
from simphys.plot.motion.pendulum import is_pendulum
from simphys.plot.motion.recorded import Motion, read_motion
from simphys.plot.motion.rigid import are_rigid
from simphys.record import Recording

WIDTH = 5.4  # inch


def animation(recording: Recording, path: str | Path) -> list[Path]:
    """Write the motion of bodies as a GIF of up to 2 MB at `path`, and as MP4 beside it if ffmpeg is installed.

    Particles, nodes and springs, rigid bodies, discs and pendulums are drawn as in their pictures, 25 times a second,
    in a film of 4 s, or up to 8 s if the motion takes longer. Return the paths. Errors: NotRecorded without a motion.
    """
    return write_film(draw_motion(recording), Path(path))


def draw_motion(recording: Recording) -> Iterator[np.ndarray]:
    """Draw the frames of a film, [height, width, 3] each. Errors: NotRecorded if there is no motion of bodies."""
    if is_pendulum(recording):
        return _frames_of_stage(recording, stages.pendulum_stage(recording))
    motion = read_motion(recording)
    if RADIUS in recording and motion.dim == 2:
        return _frames_of_stage(recording, stages.disc_stage(motion, recording))
    if are_rigid(recording):
        return _frames_of_stage(recording, stages.rigid_stage(motion, recording))
    if is_of_particles(motion):
        return _frames_of_particles(recording, read_view(recording))
    make = stages.line_stage if motion.dim == 1 else stages.network_stage
    return _frames_of_stage(recording, make(motion, recording))


def is_of_particles(motion: Motion) -> bool:
    """True for the motion of many bodies without springs, which are drawn as one image."""
    return motion.position.shape[1] >= MANY and not len(motion.springs) and motion.dim > 1


def _frames_of_stage(recording: Recording, stage: stages.FilmStage) -> Iterator[np.ndarray]:
    across, up = stage.size
    shown = choose_rows(stage.time, longest=LONGEST)
    with style.style():
        figure = style.new_figure(recording, float(np.clip(WIDTH * up / across, 1.2, 5.4)) + 1.0, stage.ended)
        figure.set_figwidth(WIDTH + 1.0)
        figure.set_layout_engine("compressed")  # axes to scale leave room for their labels
        axes = figure.subplots()
        stage.prepare(axes)
        moments = [(stage.time[row], partial(_added, axes, partial(stage.draw, axes, int(row)))) for row in shown]
        yield from film(figure, axes, moments)


def _added(axes: Axes, draw: Callable[[], None]) -> list[Artist]:
    """Draw, and return the artists that this added to the axes, the lowest first."""
    before = set(axes.get_children())
    draw()
    return sorted([each for each in axes.get_children() if each not in before], key=lambda each: each.get_zorder())


def _frames_of_particles(recording: Recording, view: ParticleView) -> Iterator[np.ndarray]:
    shown = choose_rows(view.motion.time)
    across, up = np.ptp(view.limits, axis=1)
    with style.style():
        figure = style.new_figure(recording, float(np.clip(WIDTH * up / across, 1.5, 6.0)) + 0.6, view.motion.ended)
        figure.set_figwidth(WIDTH + 1.0)
        axes = figure.subplots()
        draw_walls(axes, view)
        draw_colorbar(figure, [axes], view)
        draw = partial(_draw, axes, view)
        yield from film(figure, axes, [(view.motion.time[frame], partial(draw, int(frame))) for frame in shown])


def _draw(axes: Axes, view: ParticleView, frame: int) -> list[Artist]:
    return draw_particles(axes, view, frame, axes.bbox.width / float(np.ptp(view.limits[0])))
