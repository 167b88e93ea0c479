"""Gradient of the loss with respect to each field of the state along time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.components import (
    component_name,
    draw_components,
    draw_elements,
    element_name,
    name_components,
    name_elements,
)
from simphys.plot.fields.grids import is_bulk
from simphys.record import Recording

NEEDS = ("adjoint/time",)
REMEDY = "Only `simphys optimize` records the gradient along time, when it ends."


def adjoint(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the gradient of the loss with respect to each component of the state along time; only of free bodies.

    A perturbation of the state at that moment by one unit changes the loss by this much (to first order). The picture
    has a curve per component if there are few, else the median and the middle 90 %, for bodies per axis.
    Saved at `path` if given. Errors: NotRecorded if there is no adjoint.
    """
    style.require(recording, "adjoint", NEEDS, REMEDY)
    held = [name for name in recording.keys("adjoint") if name not in ("step", "time")]
    names = [name for name in held if not is_bulk(recording, f"adjoint/{name}")]
    if not names:
        raise style.NotRecorded("picture 'adjoint'", "draws small fields", "only large ones", "See their snapshots.")
    time, *gradients = style.sound_frames(
        *style.frames(recording, "adjoint/time", *(f"adjoint/{name}" for name in names))
    )
    kept = [place for place, gradient in enumerate(gradients) if np.any(gradient)]  # what is 0 tells nothing
    if not kept and len(names) < len(held):
        raise style.NotRecorded("picture 'adjoint'", "draws small fields", "only large ones", "See their snapshots.")
    kept = kept or [0]
    names, gradients = [names[place] for place in kept], [gradients[place] for place in kept]
    with style.style():
        figure = style.new_figure(recording, 0.6 + 2.5 * len(names))
        panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for axes, gradient, name in zip(panels, gradients, names, strict=True):
            unit = style.unit_of_field(recording, name)
            _draw(axes, recording, name, time, gradient)
            axes.axhline(0, color=style.INK, linewidth=0.6)
            axes.set_ylabel(f"∂loss/∂{style.words(name)}\n[{style.per_unit(unit)}]")
        style.label_time(panels[-1])
        figure.align_ylabels(panels)
        style.save(figure, path)
    return figure


def _draw(axes: Axes, recording: Recording, name: str, time: np.ndarray, gradient: np.ndarray) -> None:
    if style.is_of_bodies(recording, name):
        free, names = style.free_nodes(recording, gradient.shape[1]), style.body_names(recording)
        draw_components(axes, time, gradient, free, names)
        if name == "position":  # one legend for both
            name_components(axes, free, gradient.shape[2], names)
        if free.size:
            size = np.abs(gradient[:, free])
            frame, node, axis = map(int, np.unravel_index(size.argmax(), size.shape))
            where = component_name(int(free[node]), axis, gradient.shape[2], names)
            _say_largest(axes, name, size.max(), where, time[frame])
    else:
        bodies = style.names_of_field(recording, name)
        draw_elements(axes, time, gradient, bodies)
        name_elements(axes, gradient.shape[1:])
        size = np.abs(gradient)
        frame, *index = map(int, np.unravel_index(size.argmax(), size.shape))
        _say_largest(axes, name, size.max(), element_name(tuple(index), gradient.shape[1:], bodies), time[frame])


def _say_largest(axes: Axes, name: str, size: float, where: str, when: float) -> None:
    at = f"{where} at {style.moment(axes, when)}".lstrip()
    axes.set_title(f"by {style.words(name)}: largest {style.number(size)}, {at}")
