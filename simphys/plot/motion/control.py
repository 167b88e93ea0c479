"""Control of a simulator along time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from simphys.plot import style
from simphys.plot.components import FEW
from simphys.record import Recording

VALUE, TIME = "control/value", "control/time"
REMEDY = "Only scenes with a section [control] record one."


def control(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw the control along time: a curve per channel if there are few, else a row of colours per channel.

    Saved at `path` if given. Errors: NotRecorded if the scene has no control.
    """
    style.require(recording, "control", (VALUE, TIME), REMEDY)
    time, value = style.frames(recording, TIME, VALUE)
    unit = style.unit_of(recording, VALUE)
    channels = value.shape[1]
    few = channels <= FEW
    with style.style():
        figure = style.new_figure(recording, 3.2 if few else 2.2 + min(0.12 * channels, 4.0))
        axes = figure.subplots()
        if few:
            for channel in range(channels):
                axes.plot(time, value[:, channel], label=f"channel {channel}")
            axes.set_ylabel(style.with_unit("control", unit))
            style.legend_beside(axes)
        else:
            end = time[-1] + (time[1] - time[0] if len(time) > 1 else 1.0)
            largest = float(np.abs(value).max()) or 1.0
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
            axes.set_ylabel("channel")
            axes.yaxis.set_major_locator(MaxNLocator(integer=True))
            figure.colorbar(image, ax=axes, label=style.with_unit("control", unit))
        low, high = style.number(value.min()), style.number(value.max())
        axes.set_title(f"control, {channels} {'channel' if channels == 1 else 'channels'}: from {low} to {high}")
        style.label_time(axes)
        style.save(figure, path)
    return figure
