"""Convergence of the search: loss and gradient norm at each iteration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from simphys.plot import style
from simphys.record import Recording

NEEDS = ("iterations/stage", "iterations/horizon", "iterations/loss", "iterations/gradient_norm")
REMEDY = "Only `simphys optimize` records iterations."


def convergence(recording: Recording, path: str | Path | None = None) -> Figure:
    """Draw loss and gradient norm over iterations, on logarithmic axes.

    Each stage is a separate curve, named by its fraction of the horizon or by its highest frequency, as losses of
    different stages cannot be compared. With smoothing, the loss without smoothing is drawn, too. Saved at `path` if
    given. Errors: NotRecorded if there are no iterations.
    """
    style.require(recording, "convergence", NEEDS, REMEDY)
    stage, horizon, loss, gradient_norm = (recording[name] for name in NEEDS)
    starts = np.flatnonzero(np.diff(stage, prepend=stage[0] - 1))
    stages = [slice(start, end) for start, end in zip(starts, [*starts[1:], stage.size], strict=True)]
    what, names = "their part of the horizon", [style.fraction(horizon[piece.start]) for piece in stages]
    summary = _summary(loss, f"{names[-1]} horizon", stages)
    if "iterations/lowpass" in recording:
        cutoffs = recording["iterations/lowpass"][starts]
        unit = recording.units.frequency
        what, names = "their highest frequency", ["all" if np.isinf(f) else f"{f:g} {unit}" for f in cutoffs]
        summary = _summary(loss, "all frequencies" if names[-1] == "all" else f"up to {names[-1]}", stages)
    with style.style():
        figure = style.new_figure(recording, 5.2)
        above, beneath = figure.subplots(2, 1, sharex=True)
        for axes, values, name in (
            (above, loss, "loss"),
            (beneath, gradient_norm, "gradient norm\n[loss / scaled unknown]"),
        ):
            _draw(axes, values, stages)
            axes.set_ylabel(name)
        if "iterations/plain_loss" in recording:
            plain = recording["iterations/plain_loss"]
            above.plot(np.arange(plain.size), plain, color=style.COLORS[1], linewidth=1, label="without smoothing")
            style.legend_above(above)
        best = _find_best(loss, stages)
        if loss[-1] > loss[best]:
            look: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": style.COLORS[1], "markersize": 9}
            above.plot([best], loss[best], "o", label="best, the result", **look)
            style.legend_above(above)
        above.set_title(summary, pad=20 if len(stages) > 1 else None)
        if len(stages) > 1:
            for piece, name in zip(stages, names, strict=True):
                _name_stage(above, piece, name)
        beneath.set_xlabel(f"iteration, in stages named by {what}" if len(stages) > 1 else "iteration")
        figure.align_ylabels([above, beneath])
        style.save(figure, path)
    return figure


def _find_best(loss: np.ndarray, stages: list[slice]) -> int:
    """Find the iterate of lowest loss in the last stage, which is the result."""
    last = np.where(np.isfinite(loss[stages[-1]]), loss[stages[-1]], np.inf)
    return stages[-1].start + int(last.argmin())


def _summary(loss: np.ndarray, last_stage: str, stages: list[slice]) -> str:
    iterations, best = loss.size - len(stages), _find_best(loss, stages)  # a stage's first row is its start
    first, lowest = style.number(loss[0]), style.number(loss[best])
    worse = f", of iteration {best - len(stages) + 1}, and {style.number(loss[-1])} at the end"
    remark = worse if loss[-1] > loss[best] else ""
    if len(stages) == 1:
        return f"loss from {first} to {lowest}{remark} in {iterations} iterations"
    return f"{last_stage}: loss {lowest}{remark}, after {iterations} iterations in {len(stages)} stages"


def _draw(axes: Axes, values: np.ndarray, stages: list[slice]) -> None:
    if (values > 0).any():  # False if the start is a perfect fit
        axes.set_yscale("log", nonpositive="mask")
    marker_size = 5 if len(values) <= 100 else 2
    for number, piece in enumerate(stages):
        if number % 2 == 0 and len(stages) > 1:
            axes.axvspan(piece.start - 0.5, piece.stop - 0.5, color=style.SHADE, linewidth=0, zorder=0)
        axes.plot(
            np.arange(piece.start, piece.stop), values[piece], ".-", color=style.COLORS[0], markersize=marker_size
        )
    axes.set_xlim(-0.5, stages[-1].stop - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _name_stage(axes: Axes, piece: slice, name: str) -> None:
    if piece.stop - piece.start < 0.035 * axes.get_xlim()[1]:
        return  # there is no room between its neighbours' names
    middle = (piece.start + piece.stop - 1) / 2
    axes.annotate(
        name,
        (middle, 1),
        (0, 3),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        ha="center",
        fontsize=9,
    )
