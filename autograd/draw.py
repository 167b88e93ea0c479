"""The graph of a result, to look at: as text for a terminal, as DOT for Graphviz, and as a matplotlib picture.

Arrows point the way the computation ran, from leaves to the result; each carries the dtype and shape of what flows.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .errors import InputError
from .function import AccumulateGrad
from .graph import ancestors, origin
from .tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Names = Mapping[Tensor, str]

_LEAF, _NODE, _RESULT = "#dcefd9", "#dde6f3", "#f6e3c5"


class Box(NamedTuple):
    """A leaf, a Function's node, or the result."""

    label: str
    color: str


class Arrow(NamedTuple):
    """What flows from one box to another; both by position in `Drawing.boxes`."""

    start: int
    end: int
    label: str


class Drawing(NamedTuple):
    """What all three forms show: boxes in the order of computation (leaves first, the result last) and their arrows."""

    boxes: list[Box]
    arrows: list[Arrow]


def read(output: Tensor, *, names: Names | None = None) -> Drawing:
    """The graph of `output`. `names` labels leaves (else `leaf 1`, `leaf 2`, ...) and what Functions returned.

    Errors: InputError for a result without a graph, GraphError when a backward freed it.
    """
    if not output.requires_grad:
        remedy = "Set requires_grad=True on a leaf, and do not compute under no_grad()."
        raise InputError("draw", "the result must have a graph", repr(output), remedy)
    given: dict[int, list[str]] = {}
    for tensor, name in (names or {}).items():
        if tensor.requires_grad:
            given.setdefault(origin(tensor)[0], []).append(name)
    nodes = ancestors([output])
    leaves = [node for node in nodes if node.function is AccumulateGrad][::-1]  # in the order of their first use
    boxes = [Box(", ".join(given.get(leaf.sequence, [f"leaf {i}"])), _LEAF) for i, leaf in enumerate(leaves, 1)]
    inner = nodes[len(leaves) :]
    for node in inner:
        results = given.get(node.sequence)
        boxes.append(Box(node.name() + (": " + ", ".join(results) if results else ""), _NODE))
    numbers = {node.sequence: number for number, node in enumerate(leaves + inner)}
    arrows = []
    for node in inner:
        for upstream, index in filter(None, node.edges):
            arrows.append(Arrow(numbers[upstream.sequence], numbers[node.sequence], _flow(upstream.outputs, index)))
    outputs = next(node for node in nodes if node.sequence == origin(output)[0]).outputs
    arrows.append(Arrow(numbers[origin(output)[0]], len(boxes), _flow(outputs, output.output_index)))
    return Drawing([*boxes, Box("result", _RESULT)], arrows)


def _flow(outputs: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...], index: int) -> str:
    shape, dtype = outputs[index]
    which = f"#{index} " if len(outputs) > 1 else ""  # which output, where there are several
    return f"{which}{dtype.kind}{8 * dtype.itemsize} {'×'.join(map(str, shape)) or 'scalar'}"


def to_text(output: Tensor, *, names: Names | None = None) -> str:
    """A line for each node, numbered: its name and, for each input, the number it comes from and what flows."""
    boxes, arrows = read(output, names=names)
    width = len(str(len(boxes)))
    column = max(len(box.label) for box in boxes)
    inputs: list[list[str]] = [[] for _ in boxes]
    for start, end, label in arrows:
        inputs[end].append(f"{start + 1} ({label})")
    lines = [
        f"{number:>{width}}  {box.label:<{column}}{'  <- ' if arriving else ''}{', '.join(arriving)}".rstrip()
        for number, (box, arriving) in enumerate(zip(boxes, inputs, strict=True), 1)
    ]
    return "\n".join(lines)


def to_dot(output: Tensor, *, names: Names | None = None) -> str:
    """The graph in Graphviz's language."""
    boxes, arrows = read(output, names=names)
    lines = ["digraph {", '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    lines += [f'  n{i} [label={_quoted(box.label)}, fillcolor="{box.color}"];' for i, box in enumerate(boxes)]
    lines += [f"  n{start} -> n{end} [label={_quoted(label)}];" for start, end, label in arrows]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def draw(output: Tensor, *, names: Names | None = None, path: str | PathLike[str] | None = None) -> Figure:
    """A picture of the graph, top to bottom; saved to `path` if given (PNG, SVG or PDF by its suffix).

    A leaf that is used again further down is drawn again there, under the same name.
    """
    from matplotlib.figure import Figure

    boxes, arrows = _repeat_leaves(*read(output, names=names))
    routes, places = _place(len(boxes), [(arrow.start, arrow.end) for arrow in arrows])
    across, down = places[:, 0], places[:, 1]
    figure = Figure(figsize=(1.9 * (np.ptp(across) + 1.2), 0.9 * (down.max() + 1)), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(across.min() - 0.6, across.max() + 0.6), ylim=(down.max() + 0.5, -0.5))
    axes.axis("off")
    patches: list[Any] = [None] * len(places)  # where arrows are cut off: at boxes, not at bends
    for number, (box, (x, y)) in enumerate(zip(boxes, places, strict=False)):
        frame = {"boxstyle": "round,pad=0.35", "facecolor": box.color, "edgecolor": "0.35"}
        text = axes.text(x, y, box.label, ha="center", va="center", size=8.5, bbox=frame)
        patches[number] = text.get_bbox_patch()
    taken: list[np.ndarray] = []
    for arrow, route in zip(arrows, routes, strict=True):
        for a, b in itertools.pairwise(route):
            line = {"color": "0.45", "shrinkA": 0, "shrinkB": 0, "patchA": patches[a], "patchB": patches[b]}
            line["arrowstyle"] = "-" if patches[b] is None else "-|>"
            axes.annotate("", xy=places[b], xytext=places[a], arrowprops=line)
        x, y = _label_place(places[route[0]], places[route[1]], taken)
        backing = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        axes.text(x, y, arrow.label, ha="center", va="center", size=6.5, color="0.25", bbox=backing)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _label_place(start: np.ndarray, end: np.ndarray, taken: list[np.ndarray]) -> np.ndarray:
    """A point on an arrow for its label, the middle if no other label lies there."""
    choices = [start + part * (end - start) for part in (0.5, 0.62, 0.38, 0.7)]
    free = [place for place in choices if all(np.any(np.abs(place - other) > (0.45, 0.11)) for other in taken)]
    taken.append(free[0] if free else choices[0])
    return taken[-1]


def _repeat_leaves(boxes: list[Box], arrows: list[Arrow]) -> Drawing:
    """Draw a leaf again for uses more than two layers below its first, instead of long arrows."""
    layer = _layers(len(boxes), [(arrow.start, arrow.end) for arrow in arrows])
    boxes, changed = list(boxes), []
    drawn: dict[int, tuple[int, int]] = {}  # leaf -> (row of first use, box) of its latest drawing
    for arrow in sorted(arrows, key=lambda arrow: layer[arrow.end]):
        start, end, label = arrow
        if boxes[start].color == _LEAF:
            row, copy = drawn.setdefault(start, (layer[end], start))
            if layer[end] > row + 2:
                boxes.append(boxes[start])
                row, copy = drawn[start] = (layer[end], len(boxes) - 1)
            start = copy
        changed.append(Arrow(start, end, label))
    return Drawing(boxes, changed)


def _layers(count: int, arrows: list[tuple[int, int]]) -> list[int]:
    """The row of each box: the longest way from a leaf; leaves sink to their first use."""
    rows = [0] * count
    for start, end in sorted(arrows, key=lambda arrow: arrow[1]):  # boxes are in topological order, copied leaves aside
        rows[end] = max(rows[end], rows[start] + 1)
    fed = {end for _, end in arrows}
    first_use: dict[int, int] = {}
    for start, end in arrows:
        first_use[start] = min(first_use.get(start, rows[end]), rows[end])
    return [row if box in fed else first_use[box] - 1 for box, row in enumerate(rows)]


def _place(count: int, arrows: list[tuple[int, int]]) -> tuple[list[list[int]], np.ndarray]:
    """Layered layout: (route of each arrow as numbers of points, coordinates [point, 2]); the first `count` are boxes.

    An arrow over several layers bends at a point in each, which keeps it clear of boxes. Within layers, points are
    sorted and moved towards their neighbours.
    """
    layer = _layers(count, arrows)
    routes = []
    for start, end in arrows:
        bends = range(layer[start] + 1, layer[end])
        routes.append([start, *range(len(layer), len(layer) + len(bends)), end])
        layer.extend(bends)
    neighbours: list[list[int]] = [[] for _ in layer]
    for route in routes:
        for a, b in itertools.pairwise(route):
            neighbours[a].append(b)
            neighbours[b].append(a)
    rows = [np.array([point for point, at in enumerate(layer) if at == row]) for row in range(max(layer) + 1)]
    across = np.zeros(len(layer))
    for sweep in range(24):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wish = np.array([across[neighbours[point]].mean() for point in row])
            order = np.argsort(wish, kind="stable")
            across[row[order]] = _spread(wish[order], np.where(row[order] < count, 1.0, 0.4))
    return routes, np.column_stack([across, layer])


def _spread(wish: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Places without overlap, near the sorted wishes: the mean of pushing to the right and to the left."""
    offset = np.cumsum(width) - width / 2
    slack = wish - offset
    return offset + (np.maximum.accumulate(slack) + np.minimum.accumulate(slack[::-1])[::-1]) / 2
