"""Animation of a motion of thousands of particles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from simphys.plot import style
from simphys.plot.film import FRAMES, film, write_film
from simphys.plot.motion.particles import View, draw_colorbar, draw_particles, draw_walls, read_view
from simphys.record import Recording

WIDTH = 5.4  # inch


def animation(recording: Recording, path: str | Path) -> list[Path]:
    """Write the motion as a GIF of up to 2 MB at `path`, and as MP4 beside it if ffmpeg is installed.

    Return the paths. Errors: NotRecorded if there is no motion of many bodies.
    """
    return write_film(_frames(recording, read_view(recording)), Path(path))


def _frames(recording: Recording, view: View) -> Iterator[np.ndarray]:
    """Draw pictures at equal intervals of time."""
    shown = np.unique(np.linspace(0, len(view.motion.time) - 1, FRAMES).round().astype(int))
    across, up = np.ptp(view.limits, axis=1)
    with style.style():
        figure = style.new_figure(recording, float(np.clip(WIDTH * up / across, 1.5, 6.0)) + 0.6, view.motion.ended)
        figure.set_figwidth(WIDTH + 1.0)
        axes = figure.subplots()
        draw_walls(axes, view)
        draw_colorbar(figure, [axes], view)
        draw = partial(_draw, axes, view)
        yield from film(figure, axes, [(view.motion.time[frame], partial(draw, int(frame))) for frame in shown])


def _draw(axes: Axes, view: View, frame: int) -> list[Artist]:
    return draw_particles(axes, view, frame, axes.bbox.width / float(np.ptp(view.limits[0])))
