"""Control of a simulator along time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from simphys.plot import style
from simphys.plot.components import FEW
from simphys.record import Recording
from simphys.scenefile.body_names import BodyNames

VALUE, TIME = "control/value", "control/time"
REMEDY = "Only scenes with a section [control] record one."
ROWS = 24
"""Largest number of channels whose rows have room for a name."""


def control(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the control along time: a curve per channel if there are few, else a row of colours per channel.

    Channels have the names of what they drive, such as motors.
    Saved at `path` if given. Errors: NotRecorded if the scene has no control.
    """
    style.require(recording, "control", (VALUE, TIME), REMEDY)
    time, value = style.frames(recording, TIME, VALUE)
    unit, names = style.unit_of(recording, VALUE), style.channel_names(recording)
    channels = value.shape[1]
    few = channels <= FEW
    with style.style():
        figure = style.new_figure(recording, 3.2 if few else 2.2 + min(0.12 * channels, 4.0))
        axes = figure.subplots()
        if few:
            for channel in range(channels):
                axes.plot(time, value[:, channel], label=names.of(channel))
            axes.set_ylabel(style.with_unit("control", unit))
            style.legend_beside(axes)
        else:
            image = _draw_rows(axes, time, value, names)
            figure.colorbar(image, ax=axes, label=style.with_unit("control", unit))
        low, high = style.bounds(value)
        axes.set_title(f"control, {channels} {names.word if channels == 1 else names.several}: from {low} to {high}")
        style.label_time(axes)
        style.save(figure, path)
    return figure


def _draw_rows(axes: Axes, time: np.ndarray, value: np.ndarray, names: BodyNames) -> AxesImage:
    """Draw values [T, A] as a row of colours for each channel, which has its name where there is room."""
    channels, largest = value.shape[1], float(np.abs(value).max()) or 1.0
    end = time[-1] + (time[1] - time[0] if len(time) > 1 else 1.0)
    image = axes.imshow(
        value.T,
        aspect="auto",
        origin="lower",
        extent=(0.0, end, -0.5, channels - 0.5),
        cmap="RdBu_r",
        vmin=-largest,
        vmax=largest,
        interpolation="nearest",
    )
    axes.grid(visible=False)
    if channels <= ROWS and any([names.gives(channel) for channel in range(channels)]):
        axes.set_yticks(range(channels), [names.of(channel) for channel in range(channels)])
    else:
        axes.set_ylabel(names.word)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return image
