"""Components of a quantity along time: a curve each for a few components, the spread over the nodes for many."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from simphys.plot.style import AXIS_NAMES, COLORS, INK, legend_beside
from simphys.scenefile.body_names import NODES, BodyNames

FEW = 6
"""Largest number of curves that can be told apart."""
NAMED = 8
"""Largest number of bodies with names of which each has its curves: a colour for a body, a dash for an axis."""
QUATERNION = "wxyz"
DASHES = ("-", "--", ":")
BODY_COLORS = (*COLORS, INK, "#999999")


def component_name(node: int, axis: int, dim: int, names: BodyNames = NODES) -> str:
    """Name a component: 'node 3 x', 'trunk x', or 'node 3' for a vector of one component."""
    return f"{names.of(node)} {AXIS_NAMES[axis]}" if dim > 1 else names.of(node)


def element_name(index: tuple[int, ...], shape: tuple[int, ...], names: BodyNames | None = None) -> str:
    """Name an element: '[3, 4]', '[3]' for vectors of one component, and '' for a single number.

    With `names`, the first axis is that of bodies or others: 'trunk', 'trunk y' of a vector, 'trunk w' of a quaternion.
    """
    shown = index[:1] if len(shape) == 2 and shape[1] == 1 else index
    if names is not None and len(shown) == 2:
        parts = QUATERNION if shape[1] == len(QUATERNION) else AXIS_NAMES
        return f"{names.of(shown[0])} {parts[shown[1]] if shape[1] <= len(parts) else list(shown[1:])}"
    if names is not None and len(shown) == 1:
        return names.of(shown[0])
    return f"[{', '.join(map(str, shown))}]" if shown else ""


def are_few(nodes: np.ndarray, dim: int) -> bool:
    return nodes.size * dim <= FEW


def are_named(nodes: np.ndarray, names: BodyNames) -> bool:
    """True for few bodies, all of which have names."""
    return 0 < nodes.size <= NAMED and all(names.gives(int(node)) for node in nodes)


def draw_components(
    axes: Axes, time: np.ndarray, values: np.ndarray, nodes: np.ndarray, names: BodyNames = NODES
) -> None:
    """Draw values [T, n, dim] of `nodes` over time [T]: curves, or for each axis the median and the middle 90 %.

    Few bodies with names have a curve each, all the same.
    """
    dim = values.shape[2]
    if are_few(nodes, dim):
        for node in nodes:
            for axis in range(dim):
                _draw_curve(axes, time, values[:, node, axis], component_name(node, axis, dim, names))
        return
    if are_named(nodes, names):
        _draw_named(axes, time, values, {int(node): names.of(int(node)) for node in nodes})
        return
    for axis, name in enumerate(AXIS_NAMES[:dim]):
        _draw_spread(axes, time, values[:, nodes, axis], name if dim > 1 else "all")


def draw_elements(axes: Axes, time: np.ndarray, values: np.ndarray, names: BodyNames | None = None) -> None:
    """Draw all of values [T, ...] over time [T]: a curve for each number, or the median and the middle 90 %."""
    if values[0].size <= FEW:
        for index in np.ndindex(values.shape[1:]):
            _draw_curve(axes, time, values[(slice(None), *index)], element_name(index, values.shape[1:], names))
    else:
        _draw_spread(axes, time, values.reshape(len(values), -1), "all")


def _draw_named(axes: Axes, time: np.ndarray, values: np.ndarray, names: dict[int, str]) -> None:
    """Draw values [T, n, dim] of bodies by their numbers; the legend names each colour and each dash once."""
    for body, name in names.items():
        color = BODY_COLORS[body % len(BODY_COLORS)]
        for axis, dash in zip(range(values.shape[2]), DASHES, strict=False):
            axes.plot(time, values[:, body, axis], dash, color=color, label="" if axis else name)
    for axis_name, dash in zip(AXIS_NAMES[: values.shape[2]], DASHES, strict=False):
        axes.plot([], [], dash, color=INK, label=axis_name)


def _draw_spread(axes: Axes, time: np.ndarray, values: np.ndarray, name: str) -> None:
    known = np.isfinite(values).any(axis=0)
    spread = np.percentile(values[:, known], (5, 50, 95), axis=1) if known.any() else np.full((3, len(time)), np.nan)
    low, middle, high = spread
    (line,) = axes.plot(time, middle)
    band = axes.fill_between(time, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    if _is_visible(axes, middle):
        line.set_label(name)
    elif _is_visible(axes, high):
        band.set_label(name)


def _draw_curve(axes: Axes, time: np.ndarray, values: np.ndarray, name: str) -> None:
    axes.plot(time, values, label=name if _is_visible(axes, values) else None)


def _is_visible(axes: Axes, values: np.ndarray) -> bool:
    """True if a curve is visible: a logarithmic axis does not show one that is zero throughout."""
    return axes.get_yscale() != "log" or bool((values > 0).any())


def name_components(axes: Axes, nodes: np.ndarray, dim: int, names: BodyNames = NODES) -> None:
    """Add the legend of `draw_components`."""
    has_curves = are_few(nodes, dim) or are_named(nodes, names)
    legend_beside(axes, None if has_curves else _many(nodes.size, names.several))


def name_elements(axes: Axes, shape: tuple[int, ...]) -> None:
    """Add the legend of `draw_elements`."""
    count = int(np.prod(shape))
    if count > 1:
        legend_beside(axes, None if count <= FEW else _many(count, "values"))


def _many(count: int, what: str) -> str:
    return f"median,\n90 % of\n{count} {what}"
