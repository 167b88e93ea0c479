"""Pictures of a sweep of fits: the losses at their ends, and identified values against known ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import COLORS, WIDTH, Picture, style

Array = np.ndarray[Any, Any]

TRUTH = " truth"
"""End of the name of a column with the known values of another."""


def draw_waterfall(losses: Array) -> Figure:
    """Draw the losses at the ends of searches in ascending order: each step is an optimum."""
    known = np.sort(losses[np.isfinite(losses)])
    failed = losses.size - known.size
    with style():
        figure = Picture(figsize=(WIDTH, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.plot(np.arange(1, known.size + 1), known, "o-", color=COLORS[0], markersize=3.5, linewidth=0.8)
        if known[0] > 0 and known[-1] > 30 * known[0]:
            axes.set_yscale("log")
        elif np.ptp(known) <= 1e-6 * abs(known[0]):  # equal but for rounding, or for where searches stopped
            half = max(0.05 * abs(known[0]), 1e-300)
            axes.set_ylim(known[0] - half, known[0] + half)
        axes.set_title(f"{known.size} members" + (f", {failed} without a result" if failed else ""))
        axes.set_xlabel("member, least loss first")
        axes.set_ylabel("loss at the end")
    return figure


def draw_truths(columns: Mapping[str, Array], names: Sequence[str]) -> Figure:
    """Draw how identified values are distributed, with their known value; of one that varies, how their errors are."""
    across = min(2, len(names))
    down = -(-len(names) // across)
    with style():
        figure = Picture(figsize=(WIDTH, 0.4 + 2.6 * down), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False)
        for axes, name in zip(panels.flat, names, strict=False):
            _draw_truth(axes, name, columns[name], columns[name + TRUTH])
        for axes in panels.flat[len(names) :]:
            axes.set_visible(False)
    return figure


def _draw_truth(axes: Axes, name: str, values: Array, truths: Array) -> None:
    sound = np.isfinite(values) & np.isfinite(truths)
    values, truths = values[sound], truths[sound]
    if not values.size:
        axes.set_title(f"{name}: no result")
        return
    is_fixed = np.ptp(truths) == 0
    drawn, centre = (values, truths[0]) if is_fixed else (values - truths, 0.0)
    spread = np.ptp(np.append(drawn, centre)) or 0.1 * abs(centre) or 1.0
    middle = 0.5 * (min(drawn.min(), centre) + max(drawn.max(), centre))
    bins = int(np.clip(np.sqrt(drawn.size), 5, 40))
    axes.hist(drawn, bins, range=(middle - 0.55 * spread, middle + 0.55 * spread), color=COLORS[0], alpha=0.7)
    axes.axvline(centre, color=COLORS[1], linewidth=1.5, label="truth")
    axes.axvline(drawn.mean(), color="#222222", linewidth=1, linestyle="--", label="mean")
    axes.set_xlabel(name if is_fixed else f"{name}, less its truth")
    axes.set_ylabel("members")
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.legend(fontsize=8)
