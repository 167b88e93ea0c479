"""Seismic gather: values at the receivers over time, measured, predicted by the model, and their difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.fields.images import MISSING, Scale, draw_colorbar, make_scale
from simphys.record import Recording

SEEN = "field_observations"
NEEDS = tuple(f"{SEEN}/{name}" for name in ("time", "value", "weight"))
PREDICTED = "field_fit/predicted"
REMEDY = "Only scenes whose [observations] name a field with one axis, such as the signals of receivers, record one."


def gather(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw a measured field with one axis over its index and time, downwards: measured, predicted, difference.

    The first two share a colour scale. For a batch of experiments, the first, middle and last one have a row each.
    Without a prediction, as after an interrupted run, the measured field is drawn alone. Missing samples are grey.
    Saved at `path` if given. Errors: NotRecorded if there is no such measurement.
    """
    style.require(recording, "gather", NEEDS, REMEDY)
    many = "members" in recording.attrs("grid") if "grid" in recording else False
    shape = recording.shape(NEEDS[1])
    if len(shape) != 2 + many:
        found = f"a field of the shape {list(shape[1 + many :])}"
        raise style.NotRecorded("picture 'gather'", "draws fields with one axis", found, REMEDY)
    paths = (*NEEDS, PREDICTED) if PREDICTED in recording else NEEDS
    time, value, weight, *predicted = style.frames(recording, *paths)
    measured = np.where(weight > 0, value, np.nan)
    shots = np.unique([0, shape[1] // 2, shape[1] - 1]) if many else np.array([0])
    pictures = [measured, *predicted, *[measured - each for each in predicted]]
    pictures = [picture if many else picture[:, None] for picture in pictures]
    with style.style():
        figure = style.new_figure(recording, 0.6 + 2.9 * len(shots))
        _draw(figure, recording, time, [picture[:, shots] for picture in pictures], shots if many else None)
        style.save(figure, path)
    return figure


def _draw(
    figure: Figure, recording: Recording, time: np.ndarray, pictures: list[np.ndarray], shots: np.ndarray | None
) -> None:
    about = recording.attrs(SEEN)
    rows = pictures[0].shape[1]
    panels = figure.subplots(rows, len(pictures), sharex=True, sharey=True, squeeze=False)
    scales = [make_scale(pictures[:2]), *[make_scale([away], signed=True) for away in pictures[2:]]]
    for place, (picture, title) in enumerate(zip(pictures, ("measured", "predicted", "difference"), strict=False)):
        for axes, row in zip(panels[:, place], range(rows), strict=True):
            _draw_one(axes, picture[:, row], time, scales[place // 2])
            name = title
            if place == 2:
                size = np.sqrt(np.nanmean(picture[:, row] ** 2) / (np.nanmean(pictures[0][:, row] ** 2) or np.nan))
                name += f": {style.number(100 * size)} % (RMS)"
            axes.set_title(name if shots is None else f"{name}, experiment {shots[row]}" if place == 0 else name)
            axes.label_outer()
    label = style.with_unit(style.words(str(about["field"])), str(about["unit"]))
    draw_colorbar(figure, list(panels[:, :2].flat), scales[0], label, location="bottom", fraction=0.05, aspect=40)
    for axes, scale in zip([list(panels[:, 2])] if len(pictures) > 2 else [], scales[1:], strict=True):
        draw_colorbar(figure, axes, scale, f"difference of {label}", location="bottom", fraction=0.05)


def _draw_one(axes: Axes, picture: np.ndarray, time: np.ndarray, scale: Scale) -> None:
    axes.set_facecolor(MISSING)
    axes.grid(visible=False)
    numbers = np.arange(picture.shape[1])
    axes.pcolormesh(numbers, time, picture, shading="nearest", norm=scale.norm, cmap=scale.color_map, rasterized=True)
    axes.set_xlabel("receiver")
    style.label_time(axes, upward=True)
    axes.set_ylim(time[-1], time[0])
