"""A drawing of a graph as a matplotlib figure. Text keeps its size; the figure grows with the graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .drawing import COLORS, Drawing, lines_of
from .page_columns import Column, cut_into_columns
from .placement import Placement, Wire, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TEXT, _SMALL = 8.5, 6.5  # [pt]
_LINE_HEIGHT = 1.25  # of the text size
_PADDING = (0.09, 0.06)  # [inch] between a box and its text
_HIGHEST = 20.0  # [inch] of a single column
_SHAPE = 1.2  # height to width of several
_MARGIN = 0.1  # [inch]
_ROUND = "round,pad=0,rounding_size=0.06"
_PILE = 0.05  # [inch] from the upper to the lower sheet of a fold
_HEAD = (0.035, 0.09)  # [inch] half the width and the length of an arrowhead

Measure = Callable[[str, float], float]


def picture(drawing: Drawing) -> Figure:
    """Draw the figure: one column up to 20 inches high, else as many as fill a page."""
    from matplotlib.figure import Figure

    figure = Figure()
    measure = _measure(figure)
    columns = cut_into_columns(drawing, 1)
    layouts = [_lay_out(column, measure) for column in columns]
    width, height = layouts[0].size
    if height > _HIGHEST and height > _SHAPE * width:
        columns = cut_into_columns(drawing, math.ceil(math.sqrt(height / (_SHAPE * width))))
        layouts = [_lay_out(column, measure) for column in columns]
    width = sum(layout.size[0] for layout in layouts) + 2 * _MARGIN
    height = max(layout.size[1] for layout in layouts) + 2 * _MARGIN
    figure.set_size_inches(width, height)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, width), ylim=(height, 0.0))  # a unit is an inch
    axes.axis("off")
    left = _MARGIN
    for column, layout in zip(columns, layouts, strict=True):
        if left > _MARGIN:
            axes.plot([left, left], [_MARGIN, height - _MARGIN], color="0.85", linewidth=0.8)
        _draw(axes, column, layout, np.array([left, _MARGIN]))
        left += layout.size[0]
    return figure


def _measure(figure: Figure) -> Measure:
    """A function that gives the width [inch] of a line of text of some size [pt]."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.font_manager import FontProperties

    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()

    @cache
    def width(text: str, size: float) -> float:
        pixels, _, _ = renderer.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
        return pixels / figure.dpi

    return width


def _lay_out(column: Column, measure: Measure) -> Placement:
    sizes = []
    for box in column.boxes:
        lines = lines_of(box)
        width = max([measure(line, _SMALL if i else _TEXT) for i, line in enumerate(lines)])
        height = (_TEXT + _SMALL * (len(lines) - 1)) * _LINE_HEIGHT / 72
        sizes.append((width + 2 * _PADDING[0], height + 2 * _PADDING[1]))
    wires = [Wire(arrow.start, arrow.end, measure(arrow.label, _SMALL)) for arrow in column.arrows]
    return place(sizes, column.rows, wires, _SMALL * _LINE_HEIGHT / 72)


def _draw(axes: Axes, column: Column, layout: Placement, corner: np.ndarray) -> None:
    """Draw a column by collections, which are ten times faster than a patch for each box and arrow."""
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.path import Path

    curves = [curve + corner for curve in layout.curves]
    lines = [Path(curve, [Path.MOVETO] + [Path.CURVE4] * (len(curve) - 1)) for curve in curves]
    axes.add_collection(
        PathCollection(lines, facecolor="none", edgecolor="0.5", linewidth=0.9, zorder=1), autolim=False
    )
    side, back = _HEAD
    heads = [curve[-1] + np.array([(0, 0), (-side, -back), (side, -back)]) for curve in curves]
    axes.add_collection(PolyCollection(heads, facecolor="0.4", zorder=1), autolim=False)
    labels = layout.labels + corner
    half = _SMALL * _LINE_HEIGHT / 72 / 2
    gaps = [[(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)] for x, y in labels]
    axes.add_collection(
        PolyCollection(gaps, facecolor="white", zorder=2), autolim=False
    )  # the line stops for the label
    for arrow, (x, y) in zip(column.arrows, labels, strict=True):
        _write(axes, x, y, arrow.label, _SMALL, "0.2")

    frames, colors, styles = [], [], []
    for box, (x, y, width, height) in zip(column.boxes, layout.boxes, strict=True):
        left, top = x + corner[0] - width / 2, y + corner[1] - height / 2
        for shift in (_PILE, 0.0) if box.kind == "fold" else (0.0,):
            frame = FancyBboxPatch((left + shift, top + shift), width, height, boxstyle=_ROUND)
            frames.append(frame.get_path())
            colors.append(COLORS[box.kind])
            styles.append("dashed" if box.kind == "reference" else "solid")
        baseline = top + _PADDING[1]
        for number, line in enumerate(lines_of(box)):
            size = _SMALL if number else _TEXT
            step = size * _LINE_HEIGHT / 72
            _write(axes, left + width / 2, baseline + step / 2, line, size, "0.3" if number else "0.0")
            baseline += step
    boxes = PathCollection(frames, facecolor=colors, edgecolor="0.35", linestyle=styles, linewidth=0.9, zorder=2)
    axes.add_collection(boxes, autolim=False)


def _write(axes: Axes, x: float, y: float, text: str, size: float, color: str) -> None:
    axes.text(x, y, text, ha="center", va="center", size=size, color=color, parse_math=False)
