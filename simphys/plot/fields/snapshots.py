"""Snapshots of a field on a grid, in a common colour scale."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.fields.grids import Frames, field_frames
from simphys.plot.fields.images import UNSIGNED, draw_key, draw_plane, name_axes, proportion, scale_of
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
    seen = field_frames(recording, field, SNAPSHOTS, "snapshots")
    with style.style():
        figure = style.new_figure(recording, 5.6, seen.ended)
        if len(seen.planes[0].axes) == 1:
            _draw_line(figure, seen, field_frames(recording, field, LINES, "snapshots"))
        elif len(seen.planes) == 1:
            _draw_plane(figure, seen)
        else:
            _draw_space(figure, seen)
        style.save(figure, path)
    return figure


def _draw_line(figure: Figure, seen: Frames, along: Frames) -> None:
    (plane,) = seen.planes
    above, beneath = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.2))
    places, label = plane.places(plane.axes[0]), seen.quantity.label
    colors = matplotlib.colormaps[UNSIGNED](np.linspace(0, 0.9, len(seen.time)))
    for moment, (values,), color in zip(seen.time, seen.pictures, colors, strict=True):
        above.plot(places, values, color=color, label=f"{style.number(moment)} s")
    above.set_ylabel(label)
    style.legend_above(above)
    values = np.array([picture for (picture,) in along.pictures])
    scale = scale_of(values)
    beneath.pcolormesh(
        places, along.time, values, shading="nearest", norm=scale.norm, cmap=scale.color_map, rasterized=True
    )
    beneath.grid(visible=False)
    beneath.set(xlabel=plane.labels[0], ylabel="time [s]")
    draw_key(figure, [beneath], scale, label)
    figure.align_ylabels([above, beneath])


def _draw_plane(figure: Figure, seen: Frames) -> None:
    (plane,) = seen.planes
    count = len(seen.time)
    columns = min(count, SNAPSHOTS if proportion(plane) > 1.6 else SNAPSHOTS // 2)
    rows = -(-count // columns)
    width = WIDTH / columns
    figure.set_layout_engine("compressed")
    figure.set_figheight(rows * (width * proportion(plane) + 0.3) + 0.9)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    scale = scale_of([picture for (picture,) in seen.pictures])
    for axes, moment, (picture,) in zip(panels.flat, seen.time, seen.pictures, strict=False):
        draw_plane(axes, plane, picture, scale)
        name_axes(axes, plane, width)
        axes.set_title(f"t = {style.number(moment)} s")
        axes.label_outer()
    for axes in panels.flat[count:]:
        axes.remove()
    used = list(panels.flat[:count])
    draw_key(figure, used, scale, seen.quantity.label, fraction=0.05)


def _draw_space(figure: Figure, seen: Frames) -> None:
    columns, width = len(seen.time), WIDTH / len(seen.time)
    heights = [proportion(plane) for plane in seen.planes]
    figure.set_layout_engine("compressed")
    figure.set_figheight(sum([width * height + 0.45 for height in heights]) + 0.8)
    panels = figure.subplots(
        len(seen.planes), columns, sharex="row", sharey="row", squeeze=False, height_ratios=heights
    )
    scale = scale_of([picture for pictures in seen.pictures for picture in pictures])
    for column, (moment, pictures) in enumerate(zip(seen.time, seen.pictures, strict=True)):
        panels[0, column].set_title(f"t = {style.number(moment)} s")
        for axes, plane, picture in zip(panels[:, column], seen.planes, pictures, strict=True):
            draw_plane(axes, plane, picture, scale)
            name_axes(axes, plane, width, first=column == 0)
    draw_key(figure, list(panels.flat), scale, seen.quantity.label, fraction=0.05)
