"""Gradient of the loss with respect to a field on a grid: the field at some times, and beneath it the gradient."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.fields.grids import (
    Frames,
    choose_adjoint_quantity,
    choose_default_field,
    choose_quantity,
    list_state_fields,
    read_frames,
    read_grid,
)
from simphys.plot.fields.images import (
    UNSIGNED,
    draw_colorbar,
    draw_obstacle,
    draw_plane,
    label_axes,
    make_scale,
    proportion,
)
from simphys.plot.fit.adjoint import REMEDY
from simphys.record import Recording

MOMENTS = 4
WIDTH = 6.2  # inch, of all panels in a row


def adjoint_fields(recording: Recording, path: str | Path | None = None, *, field: str | None = None) -> Figure:
    """Draw a field of the state on its grid, by default the first one, and the loss's gradient at four times.

    Each has a common colour scale for all times. A perturbation of the field at that moment and place, by one unit in a
    cell, changes the loss by this much (to first order). For vectors, the length of the gradient is drawn; for a space,
    its middle plane. Saved at `path` if given. Errors: NotRecorded without such a field, or its gradient along time, or
    if that is 0 throughout.
    """
    picture = "adjoint of fields"
    grid = read_grid(recording, picture)
    field = choose_default_field(list_state_fields(recording, "adjoint"), picture) if field is None else field
    style.require(recording, picture, (f"adjoint/{field}", "adjoint/time"), REMEDY)
    shown = choose_quantity(recording, grid, field, picture)
    time = recording["adjoint/time"][: recording.shape(shown.path)[0]]
    gradient = choose_adjoint_quantity(recording, grid, field)
    rows = [read_frames(recording, grid, each, time, MOMENTS) for each in (shown, gradient)]
    if not any(np.any(picture) for pictures in rows[1].pictures for picture in pictures):
        constraint, remedy = "needs a gradient that is not 0 throughout", "The loss does not depend on this field."
        raise style.NotRecorded(f"picture {picture!r}", constraint, f"0 for {field}", remedy)
    with style.style():
        figure = style.new_figure(recording, 4.6)
        if len(grid.cells) == 1:
            _draw_lines(figure, rows)
        else:
            _draw_planes(figure, rows)
        style.save(figure, path)
    return figure


def _draw_lines(figure: Figure, rows: list[Frames]) -> None:
    panels = figure.subplots(len(rows), 1, sharex=True)
    for axes, frames in zip(panels, rows, strict=True):
        (plane,) = frames.planes
        places = plane.places(plane.axes[0])
        colors = matplotlib.colormaps[UNSIGNED](np.linspace(0, 0.9, len(frames.time)))
        for moment, (values,), color in zip(frames.time, frames.pictures, colors, strict=True):
            axes.plot(places, values, color=color, label=style.moment(axes, moment))
        axes.set_ylabel(f"{frames.quantity.name}\n[{frames.quantity.unit or 1}]")
    style.legend_above(panels[0])
    panels[-1].set_xlabel(plane.labels[0])
    figure.align_ylabels(panels)


def _draw_planes(figure: Figure, rows: list[Frames]) -> None:
    plane, width = rows[0].planes[0], WIDTH / MOMENTS
    figure.set_layout_engine("compressed")
    figure.set_figheight(len(rows) * (width * proportion(plane) + 0.25) + 0.6)
    panels = figure.subplots(len(rows), MOMENTS, sharex=True, sharey=True, squeeze=False)
    for place, (line, frames) in enumerate(zip(panels, rows, strict=True)):
        scale = make_scale([pictures[0] for pictures in frames.pictures])
        for axes, moment, pictures in zip(line, frames.time, frames.pictures, strict=False):
            draw_plane(axes, plane, pictures[0], scale)
            if frames.obstacle:
                draw_obstacle(axes, plane, frames.obstacle[0])
            label_axes(axes, plane, width)
            axes.set_title(f"t = {style.moment(axes, moment)}" if place == 0 else "")
            axes.label_outer()
        for axes in line[len(frames.time) :]:
            axes.remove()
        label = f"{frames.quantity.name}\n[{frames.quantity.unit}]" if frames.quantity.unit else frames.quantity.name
        draw_colorbar(figure, list(line[: len(frames.time)]), scale, label, fraction=0.05)
