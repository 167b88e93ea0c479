"""Positions of the boxes and arrows of a graph, in rows from top to bottom.

K. Sugiyama, S. Tagawa, M. Toda, "Methods for visual understanding of hierarchical system structures", IEEE Trans.
Syst. Man Cybern. 11, 1981, with ports: each arrow enters its box below its own label, so nothing covers labels or
boxes. All lengths are in inches, y pointing down.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_GAP = 0.22  # between boxes in a row
_LINE = 0.16  # width of a line that passes between boxes
_LABEL_GAP = 0.1  # between labels side by side
_HEAD = 0.13  # for arrowheads, between label and box
_ROOM = 0.34  # between rows, at least, for lines to move sideways
_STEEPNESS = 0.08  # further room for each inch that lines move sideways
_WIDEST = 10  # boxes in a row
_SWEEPS = 24
_LIGHT = 0.1  # weight of a box without an incoming arrow; others have 1
_PULL = 0.05  # part of the distance to the middle by which points are moved


class Wire(NamedTuple):
    """An arrow between boxes (by position) and the width of its label."""

    start: int
    end: int
    label_width: float


class Placement(NamedTuple):
    """Positions of boxes, wires and labels; the upper left corner of all is (0, 0)."""

    size: tuple[float, float]
    boxes: Floats
    """[box, 4]: centre x, y, width, height."""
    curves: list[Floats]
    """For each wire [points, 2]: the start, then three points for each cubic Bézier piece; the last is on the box."""
    labels: Floats
    """[wire, 2]: centres."""


def rows_of(count: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    """The row of each box: just above the first box that it leads to, or higher up if that row is full.

    Boxes are in topological order; those without an incoming arrow take no room.
    """
    used_by: list[list[int]] = [[] for _ in range(count)]
    for start, end in arrows:
        used_by[start].append(end)
    entered = {end for _, end in arrows}
    above_end = [0] * count
    filled: Counter[int] = Counter()
    for box in reversed(range(count)):
        above_end[box] = max([above_end[user] + 1 for user in used_by[box]], default=0)
        if box in entered:
            while filled[above_end[box]] >= _WIDEST:
                above_end[box] += 1
            filled[above_end[box]] += 1
    top = max(above_end)
    return [top - rows for rows in above_end]


def place(sizes: Sequence[tuple[float, float]], rows: Sequence[int], wires: Sequence[Wire], label: float) -> Placement:
    """Lay out boxes of the given least sizes (width, height), in given rows, under labels of height `label`."""
    rows = [row - min(rows) for row in rows]
    entering: list[list[int]] = [[] for _ in sizes]
    for number, wire in enumerate(wires):
        entering[wire.end].append(number)
    box_widths = [
        max(width, sum([wires[number].label_width + _LABEL_GAP for number in arriving]))
        for (width, _), arriving in zip(sizes, entering, strict=True)
    ]
    routes, row = _routes(rows, wires)
    widths = np.array([width + _GAP for width in box_widths] + [_LINE] * (len(row) - len(sizes)))
    across = _across(widths, row, routes)
    across -= float(np.min(across - widths / 2)) - _GAP / 2
    ports = np.zeros(len(wires))
    for box, arriving in enumerate(entering):
        arriving.sort(key=lambda number: (across[routes[number][-2]], number))
        ports[arriving] = _ports(across[box], box_widths[box], [wires[number].label_width for number in arriving])
    heights = np.array([height for _, height in sizes])
    bands = _bands(heights, rows, row, routes, across, label)
    boxes = np.column_stack([across[: len(sizes)], bands.mean(axis=1)[rows], box_widths, heights])
    curves = []
    for wire, route, port in zip(wires, routes, ports.tolist(), strict=True):
        start, end = boxes[wire.start, 1] + heights[wire.start] / 2, boxes[wire.end, 1] - heights[wire.end] / 2
        down = bands[rows[wire.start] : rows[wire.end] + 1]
        curves.append(_curve(start, end, [*across[route[:-1]].tolist(), port], down, label + _HEAD))
    labels = np.column_stack([ports, bands[[rows[wire.end] for wire in wires], 0] - _HEAD - label / 2])
    return Placement((float(np.max(across + widths / 2)) + _GAP / 2, float(bands[-1, 1])), boxes, curves, labels)


def _ports(centre: float, width: float, label_widths: Sequence[float]) -> Floats:
    """The x at which arrows enter a box, each in the middle of a slot for its label."""
    slots = np.array(label_widths) + _LABEL_GAP
    slots += (width - slots.sum()) / max(len(slots), 1)
    return centre - width / 2 + np.cumsum(slots) - slots / 2


def _curve(start: float, end: float, xs: Sequence[float], bands: Floats, lane: float) -> Floats:
    """A curve from the lower edge y = `start` of a box down through `bands` of rows to the upper edge y = `end`.

    It moves sideways only between bands, and goes straight through the `lane` of labels above each.
    """
    points = [(xs[0], start)]
    _straight(points, xs[0], bands[0, 1])
    for x, (top, bottom) in zip(xs[1:], bands[1:].tolist(), strict=True):
        _bend(points, x, top - lane)
        _straight(points, x, bottom)
    points[-3:] = []
    _straight(points, xs[-1], end)
    return np.array(points)


def _routes(rows: Sequence[int], wires: Sequence[Wire]) -> tuple[list[list[int]], list[int]]:
    """The points of each wire, and the row of each point: first the boxes, then points where lines pass a row.

    Wires from one box share their points.
    """
    row = list(rows)
    passing: dict[tuple[int, int], int] = {}
    routes = []
    for wire in wires:
        route = [wire.start]
        for at in range(rows[wire.start] + 1, rows[wire.end]):
            if (wire.start, at) not in passing:
                passing[wire.start, at] = len(row)
                row.append(at)
            route.append(passing[wire.start, at])
        routes.append([*route, wire.end])
    return routes, row


def _across(widths: Floats, row: Sequence[int], routes: Sequence[Sequence[int]]) -> Floats:
    """The x of each point: the points of each row are sorted and moved towards their neighbours in other rows.

    Boxes without an incoming arrow have little weight. All points are moved a little to the middle, so that long graphs
    do not drift.
    """
    pairs = np.array([*dict.fromkeys(pair for route in routes for pair in itertools.pairwise(route))])
    weights = np.full(len(row), _LIGHT)
    weights[pairs[:, 1]] = 1.0
    numbers = np.array(row)
    lines = [_Line.make(np.flatnonzero(numbers == at), pairs) for at in range(max(row) + 1)]
    across = np.zeros(len(row))
    for sweep in range(_SWEEPS):
        down, both = sweep % 2 == 0, sweep >= _SWEEPS // 2
        for line in lines if down else lines[::-1]:
            target = line.targets(across, weights, both=both, down=down)
            order = np.argsort(target, kind="stable")
            points = line.points[order]
            across[points] = _separate(target[order], widths[points], weights[points])
    return across


class _Line(NamedTuple):
    """The points of a row and their neighbours, as pairs (place in `points`, neighbour)."""

    points: Integers
    above: tuple[Integers, Integers]
    below: tuple[Integers, Integers]

    @classmethod
    def make(cls, points: Integers, pairs: Integers) -> _Line:
        place = {point: i for i, point in enumerate(points.tolist())}
        ends = [np.isin(pairs[:, side], points) for side in (1, 0)]
        above, below = pairs[ends[0]], pairs[ends[1]]
        return cls(
            points,
            (np.array([place[point] for point in above[:, 1].tolist()], np.int64), above[:, 0]),
            (np.array([place[point] for point in below[:, 0].tolist()], np.int64), below[:, 1]),
        )

    def targets(self, across: Floats, weights: Floats, *, both: bool, down: bool) -> Floats:
        """The mean x of each point's neighbours: above it (`down`), below it, or on `both` sides."""
        sums, totals = [], []
        for place, neighbour in (self.above, self.below):
            sums.append(np.bincount(place, weights[neighbour] * across[neighbour], len(self.points)))
            totals.append(np.bincount(place, weights[neighbour], len(self.points)))
        first, second = (0, 1) if down else (1, 0)
        other_side = both | (totals[first] == 0.0)  # also without neighbours on the first side
        total = totals[first] + other_side * totals[second]
        return (1.0 - _PULL) * (sums[first] + other_side * sums[second]) / total


def _separate(target: Floats, width: Floats, weight: Floats) -> Floats:
    """Positions without overlap that are nearest to the sorted targets, in the weighted least-squares sense.

    Isotonic regression by pooling adjacent violators: boxes that would overlap form a block around their mean.
    """
    offset = np.cumsum(width) - width / 2
    means: list[float] = []
    totals: list[float] = []
    counts: list[int] = []
    for free, total in zip((target - offset).tolist(), weight.tolist(), strict=True):
        mean, count = free, 1
        while means and means[-1] > mean:
            mean = (means[-1] * totals[-1] + mean * total) / (totals[-1] + total)
            total += totals.pop()
            count += counts.pop()
            means.pop()
        means.append(mean)
        totals.append(total)
        counts.append(count)
    return offset + np.repeat(means, counts)


def _bands(
    box_heights: Floats,
    rows: Sequence[int],
    row: Sequence[int],
    routes: Sequence[Sequence[int]],
    across: Floats,
    label: float,
) -> Floats:
    """Top and bottom of each row of boxes; above each is room for its labels and for lines to move sideways."""
    heights, sideways = np.zeros(max(rows) + 1), np.zeros(max(rows) + 1)
    for at, height in zip(rows, box_heights.tolist(), strict=True):
        heights[at] = max(heights[at], height)
    for route in routes:
        for a, b in itertools.pairwise(route):
            sideways[row[b]] = max(sideways[row[b]], abs(across[a] - across[b]))
    gaps = _ROOM + _STEEPNESS * np.minimum(sideways, 10.0) + label + _HEAD
    gaps[0] = _GAP / 2
    tops = np.cumsum(gaps + heights) - heights
    return np.column_stack([tops, tops + heights])


def _straight(points: list[tuple[float, float]], x: float, y: float) -> None:
    start = points[-1]
    points += [((2 * start[0] + x) / 3, (2 * start[1] + y) / 3), ((start[0] + 2 * x) / 3, (start[1] + 2 * y) / 3)]
    points.append((x, y))


def _bend(points: list[tuple[float, float]], x: float, y: float) -> None:
    """Add a curve to (x, y) that starts and ends vertically."""
    start = points[-1]
    middle = (start[1] + y) / 2
    points += [(start[0], middle), (x, middle), (x, y)]
