"""Animation of a field on a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.fields.grids import Frames, Plane, field_frames
from simphys.plot.fields.images import (
    Scale,
    draw_colorbar,
    draw_obstacle,
    draw_plane,
    label_axes,
    make_scale,
    proportion,
)
from simphys.plot.film import FRAMES, film, write_film
from simphys.record import Recording

WIDTH = 5.4  # inch, of all panels
TALLEST = 6.0  # inch
Draw = Callable[[list[np.ndarray]], Sequence[Artist]]
"""Function that draws the pictures of a moment, and returns the artists."""


def field_animation(recording: Recording, path: str | Path, *, field: str | None = None) -> list[Path]:
    """Animate a field of the state on its grid, by default the first one; return the paths of the files.

    The files are a GIF of up to 2 MB at `path`, and an MP4 beside it if ffmpeg is installed. Quantity, planes and
    colour scale are those of `snapshots`. Errors: NotRecorded if there is no such field.
    """
    return write_film(draw_field(recording, field), Path(path))


def draw_field(recording: Recording, field: str | None = None) -> Iterator[np.ndarray]:
    """Draw the frames of the film of a field, [height, width, 3] each. Errors: NotRecorded without such a field."""
    return _pictures(recording, field_frames(recording, field, FRAMES, "animation"))


def _pictures(recording: Recording, frames: Frames) -> Iterator[np.ndarray]:
    scale = make_scale([picture for pictures in frames.pictures for picture in pictures])
    label = frames.quantity.label
    with style.style():
        figure = style.new_figure(recording, 3.2, frames.ended)
        figure.set_figwidth(WIDTH + 1.0)
        if len(frames.planes[0].axes) == 1:
            panels, draw = _line(figure, frames.planes[0], scale, label)
        else:
            panels, draw = _planes(figure, frames, scale, label)
        moments = zip(frames.time, frames.pictures, strict=True)
        yield from film(figure, panels[0], [(moment, partial(draw, pictures)) for moment, pictures in moments])


def _line(figure: Figure, plane: Plane, scale: Scale, label: str) -> tuple[list[Axes], Draw]:
    axes = figure.subplots()
    low, high = scale.limits
    axes.set(xlim=plane.limits(plane.axes[0]), ylim=(low - 0.05 * (high - low), high + 0.05 * (high - low)))
    axes.set(xlabel=plane.labels[0], ylabel=label)
    places = plane.places(plane.axes[0])
    return [axes], lambda pictures: axes.plot(places, pictures[0], color=style.COLORS[0])


def _planes(figure: Figure, frames: Frames, scale: Scale, label: str) -> tuple[list[Axes], Draw]:
    planes = frames.planes
    width = WIDTH / len(planes)
    figure.set_layout_engine("compressed")
    figure.set_figheight(min(width * max(map(proportion, planes)), TALLEST) + 1.0)
    panels = list(figure.subplots(1, len(planes), squeeze=False)[0])
    for axes, plane in zip(panels, planes, strict=True):
        label_axes(axes, plane, width)
        draw_plane(axes, plane, np.full([2, 2], np.nan), scale)
    draw_colorbar(figure, panels, scale, label, fraction=0.05)

    def draw(pictures: list[np.ndarray]) -> list[Artist]:
        made: list[Artist] = []
        for place, (axes, plane, picture) in enumerate(zip(panels, planes, pictures, strict=True)):
            made.append(draw_plane(axes, plane, picture, scale))
            made += draw_obstacle(axes, plane, frames.obstacle[place]) if frames.obstacle else []
        return made

    return panels, draw
