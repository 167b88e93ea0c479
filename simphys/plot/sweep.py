"""Pictures of a sweep: what comes out over what was varied, over two keys at once, and of each member across all.

Of fits also the ends of all searches, and their values against known ones (sweep_fits.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .style import COLORS, WIDTH, Picture, style
from .sweep_fits import TRUTH, draw_truths, draw_waterfall

Array = np.ndarray[Any, Any]

MOST = 4
"""Largest number of keys, and of results, in a picture."""
NAMES = ("response", "map", "parallel", "waterfall", "truth")


def draw_sweep(columns: Mapping[str, Array], keys: Sequence[str], results: Sequence[str], folder: Path) -> list[Path]:
    """Draw the pictures of a sweep to a folder; those of an earlier one that it has no data for are removed.

    `columns` are numbers by name, one a member; NaN where a member has none.
    """
    figures, paths = sweep_figures(columns, keys, results), []
    for name in NAMES:
        path = folder / f"{name}.png"
        if name in figures:
            figures[name].savefig(path)
            paths.append(path)
        else:
            path.unlink(missing_ok=True)
    return paths


def sweep_figures(columns: Mapping[str, Array], keys: Sequence[str], results: Sequence[str]) -> dict[str, Figure]:
    """Draw each result over each key; over the first two keys, as a map; and all members as lines across all columns.

    Responses, maps and lines are drawn where numbers vary. Of fits, which have numbers of "iterations", their ends and
    truths are drawn, too.
    """
    keys, results = list(keys)[:MOST], list(results)[:MOST]
    figures = {}
    if "iterations" in columns and np.isfinite(columns["loss"]).sum() > 1:
        figures["waterfall"] = draw_waterfall(columns["loss"])
    if known := [name for name in columns if name + TRUTH in columns]:
        figures["truth"] = draw_truths(columns, known[:MOST])
    if not keys or not results:
        return figures
    figures["response"] = _draw_responses(columns, keys, results)
    results = [name for name in results if not _is_alike(columns[name])]
    if len(keys) > 1 and results:
        figures["map"] = _draw_map(columns, keys[0], keys[1], results)
    if len(keys) + len(results) > 2 and results:
        figures["parallel"] = _draw_parallel(columns, [*keys, *results], results[0])
    return figures


def _draw_responses(columns: Mapping[str, Array], keys: list[str], results: list[str]) -> Figure:
    with style():
        figure = Picture(figsize=(WIDTH, 0.6 + 2.1 * len(results)), layout="constrained")
        panels = figure.subplots(len(results), len(keys), sharex="col", sharey="row", squeeze=False)
        for row, result in zip(panels, results, strict=True):
            for axes, key in zip(row, keys, strict=True):
                _draw_response(axes, columns[key], columns[result], columns.get(f"{result} +-"))
            row[0].set_ylabel(_shortened(result))
            _set_scale(row[0], columns[result], "y")
            _show_alike(row[0], columns[result])
        for axes, key in zip(panels[-1], keys, strict=True):
            axes.set_xlabel(_shortened(key))
            _set_scale(axes, columns[key], "x")
    return figure


def _draw_map(columns: Mapping[str, Array], x: str, y: str, results: list[str]) -> Figure:
    """Draw results as colours over two keys: cells where the members are a whole grid, else points."""
    across = min(2, len(results))
    down = -(-len(results) // across)
    with style():
        figure = Picture(figsize=(WIDTH, 0.4 + 3.2 * down), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False)
        for axes, result in zip(panels.flat, results, strict=False):
            values, grid = columns[result], _as_grid(columns[x], columns[y], columns[result])
            norm = LogNorm() if _is_wide(values) else None
            if grid is None:
                drawn = axes.scatter(columns[x], columns[y], c=values, s=22, norm=norm, cmap="viridis")
            else:
                drawn = axes.pcolormesh(*grid, shading="nearest", norm=norm, cmap="viridis")
                axes.grid(False)
            figure.colorbar(drawn, ax=axes).ax.set_title(_shortened(result), fontsize=8.5, loc="left")
            axes.set_xlabel(_shortened(x))
            axes.set_ylabel(_shortened(y))
            for name, axis in ((x, "x"), (y, "y")):
                _set_scale(axes, columns[name], axis)
        for axes in panels.flat[len(results) :]:
            axes.set_visible(False)
    return figure


def _as_grid(x: Array, y: Array, values: Array) -> tuple[Array, Array, Array] | None:
    """Arrange values as a grid [y, x]; None unless there is one member at each pair of places."""
    across, up = np.unique(x), np.unique(y)
    if len(across) * len(up) != len(values) or len({*zip(x, y, strict=True)}) != len(values):
        return None
    grid = np.full((len(up), len(across)), np.nan)
    grid[np.searchsorted(up, y), np.searchsorted(across, x)] = values
    return across, up, np.ma.masked_invalid(grid)


def _draw_parallel(columns: Mapping[str, Array], names: list[str], colour: str) -> Figure:
    """Draw a line for each member across an axis for each column, in the colour of one of them."""
    with style():
        figure = Picture(figsize=(WIDTH, 3.6), layout="constrained")
        axes = figure.subplots()
        heights = np.stack([_height(columns[name]) for name in names], axis=1)
        shade = _height(columns[colour])
        map_ = matplotlib.colormaps["viridis"]
        for line, place in zip(heights, shade, strict=True):
            axes.plot(
                range(len(names)), line, color=map_(place) if np.isfinite(place) else "#BBBBBB", lw=0.9, alpha=0.7
            )
        axes.set_xticks(range(len(names)), [_folded(name) for name in names], fontsize=8)
        axes.set_yticks([])
        axes.grid(False)
        axes.set_xlim(-0.3, len(names) - 0.7)
        axes.spines["left"].set_visible(False)
        for at, name in enumerate(names):
            axes.axvline(at, color="#888888", lw=0.8, zorder=0)
            known = columns[name][np.isfinite(columns[name])]
            for value, height, side in ((known.min(), 0.0, "top"), (known.max(), 1.0, "bottom")):
                axes.text(at, height + (0.02 if height else -0.02), f"{value:.4g}", ha="center", va=side, fontsize=8)
        axes.set_ylim(-0.1, 1.1)
        axes.set_title(f"a line for each of {len(shade)} members, in the colour of its {_shortened(colour)}")
    return figure


def _height(values: Array) -> Array:
    """Places of numbers between the least, 0, and the largest, 1; by factors where they span many."""
    scaled = np.log(values) if _is_wide(values) else values
    known = scaled[np.isfinite(scaled)]
    return (scaled - known.min()) / max(float(np.ptp(known)), 1e-300)


def _is_alike(values: Array) -> bool:
    """True for numbers that agree to six digits: they differ by rounding, or by where a search stopped."""
    known = values[np.isfinite(values)]
    return bool(np.ptp(known) <= 1e-6 * abs(np.mean(known)))


def _is_wide(values: Array) -> bool:
    """True for positive numbers over more than a factor of 30."""
    known = values[np.isfinite(values)]
    return bool(known.min() > 0 and known.max() / known.min() > 30)


def _draw_response(axes: Axes, x: Array, y: Array, error: Array | None) -> None:
    """Draw points, with their standard errors if any; a line through them where each place has one member."""
    order = np.argsort(x, kind="stable")
    alone = len(np.unique(x)) == len(x)
    mark = "o-" if alone and len(x) <= 64 else "o"
    axes.errorbar(
        x[order],
        y[order],
        None if error is None else error[order],
        fmt=mark,
        color=COLORS[0],
        markersize=3.5,
        elinewidth=1,
    )
    axes.xaxis.set_major_locator(MaxNLocator(4))


def _show_alike(axes: Axes, values: Array) -> None:
    """Draw members that agree to six digits as agreeing, not the rounding by which they differ."""
    center = float(np.mean(values[np.isfinite(values)]))
    if _is_alike(values) and axes.get_yscale() == "linear":
        low, high = axes.get_ylim()
        half = max(0.05 * abs(center), (high - low) / 2)
        axes.set_ylim(center - half, center + half)
    if axes.get_yscale() == "linear":
        axes.ticklabel_format(axis="y", useOffset=False)


def _set_scale(axes: Axes, values: Array, axis: str) -> None:
    """Take a logarithmic scale for positive numbers over more than a factor of 30."""
    if _is_wide(values):
        (axes.set_xscale if axis == "x" else axes.set_yscale)("log")


def _folded(name: str) -> str:
    """A long name in lines, broken at its dots."""
    lines = [""]
    for part in _shortened(name).replace(".", ".\0").split("\0"):
        if lines[-1] and len(lines[-1] + part) > 14:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _shortened(name: str) -> str:
    return name if len(name) <= 36 else "…" + name[-35:]
