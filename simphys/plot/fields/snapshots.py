"""Snapshots of a field on a grid, in a common colour scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.fields.grids import Frames, field_frames
from simphys.plot.fields.images import (
    UNSIGNED,
    draw_colorbar,
    draw_obstacle,
    draw_plane,
    label_axes,
    make_scale,
    proportion,
)
from simphys.record import Recording

SNAPSHOTS = 6
LINES = 240
"""Number of times in the picture of a line along time."""
WIDTH = 7.0  # inch, of all panels in a row


def snapshots(recording: Recording, path: str | Path | None = None, *, field: str | None = None) -> Figure:
    """Draw a field of the state on its grid, by default the first one, at six times in a common colour scale.

    For vectors, the picture shows vorticity in a plane and length in space; for a space, the three middle planes. On a
    line, the values are curves, with colours along time beneath them. A few outlying cells do not count for the scale,
    whose ends are then pointed. Saved at `path` if given. Errors: NotRecorded if there is no such field.
    """
    frames = field_frames(recording, field, SNAPSHOTS, "snapshots")
    if all(
        np.array_equal(picture, first)
        for each in frames.pictures
        for picture, first in zip(each, frames.pictures[0], strict=True)
    ):
        remark = ", ".join([part for part in (frames.ended, "the same at all times") if part])
        frames = replace(frames, rows=frames.rows[:1], time=frames.time[:1], pictures=frames.pictures[:1], ended=remark)
    with style.style():
        figure = style.new_figure(recording, 5.6, frames.ended)
        if len(frames.planes[0].axes) == 1:
            _draw_line(figure, frames, field_frames(recording, field, LINES, "snapshots"))
        elif len(frames.planes) == 1:
            _draw_plane(figure, frames)
        else:
            _draw_space(figure, frames)
        style.save(figure, path)
    return figure


def _draw_line(figure: Figure, frames: Frames, along: Frames) -> None:
    (plane,) = frames.planes
    above, beneath = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.2))
    places, label = plane.places(plane.axes[0]), frames.quantity.label
    colors = matplotlib.colormaps[UNSIGNED](np.linspace(0, 0.9, len(frames.time)))
    for moment, (values,), color in zip(frames.time, frames.pictures, colors, strict=True):
        above.plot(places, values, color=color, label=style.moment(above, moment))
    above.set_ylabel(label)
    style.legend_above(above)
    values = np.array([picture for (picture,) in along.pictures])
    scale = make_scale(values)
    beneath.pcolormesh(
        places, along.time, values, shading="nearest", norm=scale.norm, cmap=scale.color_map, rasterized=True
    )
    beneath.grid(visible=False)
    beneath.set_xlabel(plane.labels[0])
    style.label_time(beneath, upward=True)
    draw_colorbar(figure, [beneath], scale, label)
    figure.align_ylabels([above, beneath])


def _draw_plane(figure: Figure, frames: Frames) -> None:
    (plane,) = frames.planes
    count = len(frames.time)
    columns = min(count, SNAPSHOTS if proportion(plane) > 1.6 else SNAPSHOTS // 2)
    rows = -(-count // columns)
    width = WIDTH / columns
    figure.set_layout_engine("compressed")
    figure.set_figheight(rows * (width * proportion(plane) + 0.3) + 0.9)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    scale = make_scale([picture for (picture,) in frames.pictures])
    for axes, moment, (picture,) in zip(panels.flat, frames.time, frames.pictures, strict=False):
        draw_plane(axes, plane, picture, scale)
        for solid in frames.obstacle:
            draw_obstacle(axes, plane, solid)
        label_axes(axes, plane, width)
        axes.set_title(f"t = {style.moment(axes, moment)}")
        axes.label_outer()
    for axes in panels.flat[count:]:
        axes.remove()
    used = list(panels.flat[:count])
    draw_colorbar(figure, used, scale, frames.quantity.label, fraction=0.05)


def _draw_space(figure: Figure, frames: Frames) -> None:
    columns, width = len(frames.time), WIDTH / len(frames.time)
    heights = [proportion(plane) for plane in frames.planes]
    figure.set_layout_engine("compressed")
    figure.set_figheight(sum([width * height + 0.45 for height in heights]) + 0.8)
    panels = figure.subplots(
        len(frames.planes), columns, sharex="row", sharey="row", squeeze=False, height_ratios=heights
    )
    scale = make_scale([picture for pictures in frames.pictures for picture in pictures])
    for column, (moment, pictures) in enumerate(zip(frames.time, frames.pictures, strict=True)):
        panels[0, column].set_title(f"t = {style.moment(panels[0, column], moment)}")
        for place, (axes, plane, picture) in enumerate(zip(panels[:, column], frames.planes, pictures, strict=True)):
            draw_plane(axes, plane, picture, scale)
            if frames.obstacle:
                draw_obstacle(axes, plane, frames.obstacle[place])
            label_axes(axes, plane, width, first=column == 0)
    draw_colorbar(figure, list(panels.flat), scale, frames.quantity.label, fraction=0.05)
