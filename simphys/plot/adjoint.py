"""What the loss feels of the state at each moment: the gradient by position and velocity along time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.components import component_name, draw_components, name_components
from simphys.record import Recording

NEEDS = ("adjoint/time", "adjoint/position", "adjoint/velocity")
REMEDY = "Only `simphys optimize` records the gradient along time, when it ends."


def adjoint(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the gradient of the loss by each component of the state along time, of the free nodes.

    A push on the state at that moment, by one unit, changes the loss by so much (to first order). A curve a component
    for a few; for many nodes the median and the middle 90 % by axis. Saved at `path` if given. NotRecorded: no adjoint.
    """
    style.require(recording, "adjoint", NEEDS, REMEDY)
    time, *gradients = style.sound_frames(*(recording[name] for name in NEEDS))
    free = style.free_nodes(recording, gradients[0].shape[1])
    with style.style():
        figure = style.new_figure(recording, 5.6)
        panels = figure.subplots(2, 1, sharex=True)
        for axes, gradient, name, group in zip(
            panels, gradients, ("position", "velocity"), (style.POSITION, style.VELOCITY), strict=True
        ):
            unit = style.unit_of(recording, f"{group}/value") if group in recording else ""
            draw_components(axes, time, gradient, free)
            axes.axhline(0, color=style.INK, linewidth=0.6)
            axes.set_ylabel(f"∂loss/∂{name}\n[loss / {f'({unit})' if '/' in unit else unit or 'unit'}]")
            _say_largest(axes, name, time, gradient, free)
        name_components(panels[0], free, gradients[0].shape[2])
        panels[-1].set_xlabel("time [s]")
        figure.align_ylabels(panels)
        style.save(figure, path)
    return figure


def _say_largest(axes: Axes, name: str, time: np.ndarray, gradient: np.ndarray, free: np.ndarray) -> None:
    if not free.size:
        return
    size = np.abs(gradient[:, free])
    frame, node, axis = map(int, np.unravel_index(size.argmax(), size.shape))
    where = f"{component_name(free[node], axis)} at {style.number(time[frame])} s"
    axes.set_title(f"by {name}: largest {style.number(size.max())}, {where}")
