"""Fits from many starts: a waterfall of their ends, and how far the optima lie apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.record import Recording

GROUP = "many_starts"
MOST = 6
"""Largest number of optima with a colour of their own."""
LINEAR = 3.0
"""Distances up to this many standard errors are drawn on a linear scale, larger ones on a logarithmic one."""


def waterfall(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw chi^2 at the ends, the best first, and the distances of all ends from the best one.

    Saved at `path` if given. Errors: NotRecorded for a fit from one start.
    """
    remedy = "Only `simphys multistart` records many starts."
    style.require(recording, "waterfall", (f"{GROUP}/loss",), remedy)
    with style.style():
        figure = style.new_figure(recording, 4.0)
        left, right = figure.subplots(1, 2)
        loss, cluster = recording[f"{GROUP}/loss"], recording[f"{GROUP}/cluster"].astype(int)
        _draw_losses(left, loss, cluster)
        _draw_values(right, recording, loss, cluster)
        style.save(figure, path)
    return figure


def _colour(number: int) -> str:
    return str(style.COLORS[number % len(style.COLORS)]) if number < MOST else "#888888"


def _draw_losses(axes: Axes, loss: np.ndarray, cluster: np.ndarray) -> None:
    order = np.argsort(loss)
    place = np.arange(1, len(loss) + 1)
    for number in range(min(int(cluster.max(initial=-1)) + 1, MOST + 1)):
        some = cluster[order] == number if number < MOST else cluster[order] >= MOST
        label = f"optimum {number + 1}: {np.sum(some)}" if number < MOST else f"others: {np.sum(some)}"
        axes.plot(place[some], 2 * loss[order][some], "o", color=_colour(number), markersize=4, label=label)
    finite = 2 * loss[np.isfinite(loss)]
    axes.set_yscale("log")
    axes.set_ylim(finite.min() / 1.5, finite.max() * 3)  # differences within rounding look like none
    failed = int(np.sum(cluster < 0))
    axes.set_title(f"ends of {len(loss)} starts" + (f", {failed} not finite" if failed else ""))
    axes.set_xlabel("start, best first")
    axes.set_ylabel("chi^2 at the end")
    axes.legend(loc="upper left", fontsize=8)


def _draw_values(axes: Axes, recording: Recording, loss: np.ndarray, cluster: np.ndarray) -> None:
    about: dict[str, Any] = recording.attrs(GROUP)
    labels = [str(label) for label in about["labels"]]
    theta, error = recording[f"{GROUP}/theta"], recording[f"{GROUP}/error"]
    known = np.isfinite(error) & (error > 0)
    away = (theta - theta[int(np.argmin(loss))]) / np.where(known, error, 1.0)
    for member in np.argsort(-loss):
        if cluster[member] >= 0:
            axes.plot(range(len(labels)), away[member], ".-", color=_colour(int(cluster[member])), linewidth=0.8)
    axes.set_yscale("symlog", linthresh=LINEAR)
    largest = max(LINEAR, 2 * float(np.abs(away[cluster >= 0]).max(initial=0)))
    axes.set_ylim(-largest, largest)
    axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right", fontsize=8)
    axes.set_title("distance from the best")
    axes.set_ylabel("standard errors")
