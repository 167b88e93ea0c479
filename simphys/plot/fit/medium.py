"""Unknown field on a grid: its start, the result and the truth, and the gradient of the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from simphys.plot import style
from simphys.plot.fields.grids import Plane, Quantity, make_planes
from simphys.plot.fields.images import Scale, draw_colorbar, draw_plane, label_axes, make_scale, proportion
from simphys.plot.fit.unknown_field import UnknownField, list_unknown_fields, read_unknown_field
from simphys.record import Recording

PICTURE = "medium"
PANEL = 2.5  # inch
BAR = 0.11  # inch, of colours


def medium(recording: Recording, path: str | Path | None = None, *, unknown: str | None = None) -> Figure:
    """Draw an unknown that is a field on the grid, by default the first one: at the start and the end of the search.

    The truth, if the scene has one, is drawn in the same scale. Beneath are the gradient of the loss at the start
    and the end, each in its own scale and after smoothing for a smooth unknown, the error of the result, and its
    standard deviation if `simphys assess` has mapped it. For vectors, the picture shows vorticity (in space length) and
    the length of the gradient; for a space, its three middle planes.

    Saved at `path` if given. Errors: NotRecorded if there is no such unknown.
    """
    result = read_unknown_field(
        recording, next(iter(list_unknown_fields(recording)), "") if unknown is None else unknown, PICTURE
    )
    with style.style():
        figure = style.new_figure(recording, 5.0)
        if len(result.grid.cells) == 1:
            _draw_lines(figure, result)
        else:
            _draw_planes(figure, result)
        style.save(figure, path)
    return figure


def _values(result: UnknownField) -> dict[str, np.ndarray]:
    """Fields by title that are drawn in a common scale."""
    titles = ["start", "found"]
    if result.errors is not None:
        titles = [
            f"{name}: {style.number(100 * error)} % off" for name, error in zip(titles, result.errors, strict=True)
        ]
    drawn = dict(zip(titles, (result.start, result.value), strict=True))
    return drawn if result.truth is None else drawn | {"truth": result.truth}


def _others(result: UnknownField) -> list[tuple[str, Quantity, np.ndarray]]:
    """Titles, quantities and values of the pictures with a scale of their own."""
    gradient, quantity = result.gradient, result.quantity
    drawn = [
        (f"gradient {title}", gradient, gradient.compute(field, result.grid))
        for title, field in result.gradients.items()
    ]
    if result.truth is not None:
        away = quantity.compute(result.value, result.grid) - quantity.compute(result.truth, result.grid)
        drawn.append(("found \N{MINUS SIGN} truth", quantity, away))
    if result.deviation is not None and result.prior is not None:
        before = f"{style.number(result.prior)} {quantity.unit}".rstrip()
        drawn.append((f"standard deviation\n(prior: {before})", replace(quantity, kind="length"), result.deviation))
    return drawn


def _label(quantity: Quantity, power: int = 0) -> str:
    """Label of a colour bar, in two lines, as bars are narrow; `power` is the power of ten of its numbers."""
    unit = " ".join([part for part in (f"$10^{{{power}}}$" if power else "", quantity.unit) if part])
    return f"{quantity.name}\n[{unit}]" if unit else quantity.name


def _power(scale: Scale) -> int:
    """Power of ten for the numbers of a scale; 0 for numbers that are short anyway."""
    largest = np.abs(scale.limits).max()
    power = int(np.floor(np.log10(largest))) if largest > 0 else 0
    return 0 if -2 <= power < 4 else power


def _draw_lines(figure: Figure, result: UnknownField) -> None:
    (plane,) = make_planes(result.grid)
    places, others = plane.places(0), _others(result)
    figure.set_figheight(2.8 + 1.8 * len(others) + 0.4)
    panels = figure.subplots(1 + len(others), 1, sharex=True, squeeze=False, height_ratios=(2.8, *[1.8] * len(others)))
    above, *beneath = panels[:, 0]
    looks: tuple[dict[str, Any], ...] = (
        {"color": "#888888", "linestyle": "--"},
        {"color": style.COLORS[0]},
        {"color": style.INK, "linewidth": 0.8},
    )
    for (title, field), look in zip(_values(result).items(), looks, strict=False):
        above.plot(places, plane.cut(result.quantity.compute(field, result.grid)), label=title, **look)
    above.set_ylabel(result.quantity.label)
    style.legend_above(above)
    for axes, (title, quantity, numbers) in zip(beneath, others, strict=True):
        axes.plot(places, plane.cut(numbers), color=style.COLORS[1])
        axes.axhline(0, color=style.INK, linewidth=0.6)
        axes.set_title(title)
        axes.set_ylabel(_label(quantity))
    panels[-1, 0].set_xlabel(plane.labels[0])
    figure.align_ylabels(list(panels[:, 0]))


def _draw_planes(figure: Figure, result: UnknownField) -> None:
    shown, values, others = make_planes(result.grid), _values(result), _others(result)
    columns = max(len(values), len(others))
    heights = [proportion(plane) for plane in shown] * 2
    figure.set_layout_engine("compressed")
    inches = [(PANEL + 0.4) * height + 0.3 for height in heights]
    figure.set_size_inches(columns * (PANEL + 0.4) + 0.3, sum(inches) + 2.6)
    panels = figure.subplots(2 * len(shown), columns, squeeze=False, height_ratios=heights)
    bar: dict[str, Any] = {"location": "bottom", "fraction": BAR / (PANEL * sum(heights) / 2)}
    above, beneath = panels[: len(shown)], panels[len(shown) :]
    fields = [result.quantity.compute(field, result.grid) for field in values.values()]
    scale = make_scale([plane.cut(field) for plane in shown for field in fields])
    for place, (title, field) in enumerate(zip(values, fields, strict=True)):
        _draw_column(list(above[:, place]), shown, field, scale, title, first=place == 0)
    used = list(above[:, : len(fields)].flat)
    label = result.quantity.label
    draw_colorbar(figure, used, scale, label, aspect=0.9 * len(fields) * PANEL / BAR, **bar)
    for place, (title, quantity, numbers) in enumerate(others):
        its_own = make_scale([plane.cut(numbers) for plane in shown], signed=quantity.kind != "length")
        _draw_column(list(beneath[:, place]), shown, numbers, its_own, title, first=place == 0)
        label = _label(quantity, power := _power(its_own))
        key = draw_colorbar(figure, list(beneath[:, place]), its_own, label, aspect=0.9 * PANEL / BAR, **bar)
        key.locator = MaxNLocator(3)
        key.formatter = FuncFormatter(partial(_format_power, power=power))
    for axes in (*above[:, len(fields) :].flat, *beneath[:, len(others) :].flat):
        axes.remove()


def _format_power(value: float, _: int | None, *, power: int) -> str:
    """Format a number in units of a power of ten. (Matplotlib would write the power into the label.)"""
    return f"{value / 10.0**power:.6g}".replace("-", "\N{MINUS SIGN}")


def _draw_column(
    panels: Sequence[Axes], shown: Sequence[Plane], field: np.ndarray, scale: Scale, title: str, *, first: bool
) -> None:
    """Draw one field in all planes."""
    for axes, plane in zip(panels, shown, strict=True):
        picture = plane.cut(field)
        draw_plane(axes, plane, picture, scale)
        if np.ptp(picture) == 0:
            alike = f"{style.number(picture.flat[0])} everywhere"
            axes.text(0.5, 0.5, alike, transform=axes.transAxes, ha="center", va="center")
        label_axes(axes, plane, PANEL, first=first)
    panels[0].set_title(title)
