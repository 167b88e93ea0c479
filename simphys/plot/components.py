"""Components of a quantity of the nodes along time: a curve each for a few, the spread over the nodes for many."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from simphys.plot.style import AXIS_NAMES, legend_beside

FEW = 6
"""As many curves can be told apart."""


def component_name(node: int, axis: int) -> str:
    """'node 3 x'."""
    return f"node {node} {AXIS_NAMES[axis]}"


def are_few(nodes: np.ndarray, dim: int) -> bool:
    return nodes.size * dim <= FEW


def draw_components(axes: Axes, time: np.ndarray, values: np.ndarray, nodes: np.ndarray) -> None:
    """Draw values [T, n, dim] of `nodes` against time [T]: curves, or by axis the median and the middle 90 %."""
    names = AXIS_NAMES[: values.shape[2]]
    if are_few(nodes, len(names)):
        for node in nodes:
            for axis in range(len(names)):
                axes.plot(time, values[:, node, axis], label=component_name(node, axis))
        return
    for axis, name in enumerate(names):
        low, middle, high = np.percentile(values[:, nodes, axis], (5, 50, 95), axis=1)
        (line,) = axes.plot(time, middle, label=name)
        axes.fill_between(time, low, high, color=line.get_color(), alpha=0.25, linewidth=0)


def name_components(axes: Axes, nodes: np.ndarray, dim: int) -> None:
    """The legend of `draw_components`."""
    legend_beside(axes, None if are_few(nodes, dim) else f"median,\n90 % of\n{nodes.size} nodes")
