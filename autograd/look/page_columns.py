"""A drawing cut into columns, so that a long graph fits on a page and no arrow runs far.

A box that is used far below, or in another column, is drawn again near its use: a leaf under its name, another box as
a reference by its number.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from .drawing import Arrow, Box, Drawing
from .placement import rows_of

_MANY = 5  # like arrows from far away into one box are drawn as one
_PASSING = 6  # lines that pass the boxes of a row
_SAME_COPY = 2  # rows below the first use of a copy that may use it too


class Column(NamedTuple):
    """A part of a drawing, complete in itself; arrows have the numbers of its own boxes."""

    boxes: list[Box]
    rows: list[int]
    arrows: list[Arrow]

    def add(self, box: Box, row: int) -> int:
        """Add a box; returns its number."""
        self.boxes.append(box)
        self.rows.append(row)
        return len(self.boxes) - 1


def cut_into_columns(drawing: Drawing, count: int) -> list[Column]:
    """Cut a drawing into `count` columns (fewer if it has fewer rows), to be read one after the other."""
    boxes, arrows = drawing
    rows = rows_of(len(boxes), [(arrow.start, arrow.end) for arrow in arrows])
    reach = _reach(drawing, rows)
    breaks = _breaks(drawing, rows, min(count, max(rows) + 1))
    column_of = [bisect(breaks, row) for row in rows]

    def is_near(arrow: Arrow) -> bool:
        start, end = arrow.start, arrow.end
        return boxes[start].kind != "leaf" and column_of[start] == column_of[end] and rows[end] - rows[start] <= reach

    referred = {arrow.start for arrow in arrows if boxes[arrow.start].kind != "leaf" and not is_near(arrow)}
    columns = [Column([], [], []) for _ in range(len(breaks) + 1)]
    placed: dict[int, int] = {}
    for number, box in enumerate(boxes):
        if box.kind != "leaf":
            shown = box._replace(label=f"{box.label} [{number + 1}]") if number in referred else box
            placed[number] = columns[column_of[number]].add(shown, rows[number])
    copies: dict[tuple[str, int], int] = {}  # (label and details, column) -> the latest copy there

    def copy(box: Box, at: int, row: int) -> int:
        key = (box.label + box.detail, at)
        if key not in copies or row > columns[at].rows[copies[key]] + _SAME_COPY:
            copies[key] = columns[at].add(box, row)
        return copies[key]

    far: dict[tuple[int, str], list[int]] = {}  # like inputs of a box from far away
    for arrow in sorted(arrows, key=lambda arrow: rows[arrow.end]):
        start, end, label = arrow
        at = column_of[end]
        if is_near(arrow):
            columns[at].arrows.append(Arrow(placed[start], placed[end], label))
        elif boxes[start].kind == "node":
            far.setdefault((end, label), []).append(start)
        else:
            shown = boxes[start] if boxes[start].kind == "leaf" else _reference(boxes, [start])
            columns[at].arrows.append(Arrow(copy(shown, at, rows[end] - 1), placed[end], label))
    for (end, label), starts in far.items():
        at = column_of[end]
        for together in [starts] if len(starts) >= _MANY else [[start] for start in starts]:
            flow = f"{len(together)} of {label}" if len(together) > 1 else label
            start = copy(_reference(boxes, together), at, rows[end] - 1)
            columns[at].arrows.append(Arrow(start, placed[end], flow))
    return columns


def _reference(boxes: Sequence[Box], numbers: Sequence[int]) -> Box:
    named = [f"[{number + 1}]" for number in numbers]
    if len(named) == 1:
        return Box("reference", f"{named[0]} {boxes[numbers[0]].label}")
    return Box("reference", f"{len(named)} boxes", ", ".join(named))


def _reach(drawing: Drawing, rows: Sequence[int]) -> int:
    """Number of rows that an arrow may go down, such that few lines pass the boxes of any row."""
    boxes, arrows = drawing
    spans = {(arrow.start, rows[arrow.end]) for arrow in arrows if boxes[arrow.start].kind != "leaf"}
    reach = 1
    while reach < max(rows):
        lowest: dict[int, int] = {}  # row in which the line from a box ends
        for start, end in spans:
            if end - rows[start] <= reach + 1:
                lowest[start] = max(lowest.get(start, end), end)
        passing = Counter([row for start, end in lowest.items() for row in range(rows[start] + 1, end)])
        if max(passing.values(), default=0) > _PASSING:
            break
        reach += 1
    return reach


def _breaks(drawing: Drawing, rows: Sequence[int], count: int) -> list[int]:
    """The first row of each column after the first: near equal shares, with the fewest references."""
    boxes, arrows = drawing
    height = max(rows) + 1
    lowest: dict[int, int] = {}
    for start, end, _ in arrows:
        if boxes[start].kind != "leaf":
            lowest[start] = max(lowest.get(start, 0), rows[end])
    cut_by = Counter([row for start, end in lowest.items() for row in range(rows[start] + 1, end + 1)])
    slack = height // (4 * count)
    breaks = []
    for share in range(1, count):
        ideal = share * height // count
        breaks.append(min(range(ideal - slack, ideal + slack + 1), key=lambda row: (cut_by[row], abs(row - ideal))))
    return breaks
