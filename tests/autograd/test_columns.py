"""A drawing cut into columns is complete: it has every arrow, or a reference to its source."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from simphys.autograd.look.drawing import Arrow, Box, Drawing
from simphys.autograd.look.page_columns import Column, cut_into_columns


def drawing_of(nodes: int, arrows: list[tuple[int, int]]) -> Drawing:
    """Boxes n0, n1, ...; those without an incoming arrow are leaves."""
    entered = {end for _, end in arrows}
    boxes = [Box("node" if number in entered else "leaf", f"n{number}") for number in range(nodes)]
    return Drawing(boxes, [Arrow(start, end, "f64") for start, end in arrows])


def random_drawing(seed: int, nodes: int = 80) -> Drawing:
    random = np.random.default_rng(seed)
    arrows = [(int(start), end) for end in range(3, nodes) for start in random.integers(0, end, 2)]
    used = {start for start, _ in arrows}
    return drawing_of(nodes + 1, arrows + [(start, nodes) for start in range(nodes) if start not in used])


def arrows_of(columns: list[Column]) -> Counter[tuple[str, str]]:
    """The arrows of the whole drawing as (from, to), found from its columns."""
    found: Counter[tuple[str, str]] = Counter()
    for boxes, _, arrows in columns:
        for start, end, _ in arrows:
            name = boxes[start].label
            numbers = re.findall(r"\[(\d+)\]", name + boxes[start].detail)
            sources = [f"n{int(number) - 1}" for number in numbers] or [name]
            found.update((source, boxes[end].label.split()[0]) for source in sources)
    return found


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_columns_hold_every_box_and_every_arrow(seed: int, count: int) -> None:
    drawing = random_drawing(seed)
    columns = cut_into_columns(drawing, count)
    shown = Counter(box.label.split()[0] for each in columns for box in each.boxes if box.kind == "node")
    assert shown == Counter(box.label for box in drawing.boxes if box.kind == "node")
    assert arrows_of(columns) == Counter((f"n{start}", f"n{end}") for start, end, _ in drawing.arrows)


@pytest.mark.parametrize("seed", range(3))
def test_arrows_lead_down_and_few_of_them_past_a_row(seed: int) -> None:
    for boxes, rows, arrows in cut_into_columns(random_drawing(seed), 2):
        passing = Counter([(row, start) for start, end, _ in set(arrows) for row in range(rows[start] + 1, rows[end])])
        assert all(rows[start] < rows[end] for start, end, _ in arrows)
        inner = Counter(row for row, start in passing if boxes[start].kind == "node")
        assert max(inner.values(), default=0) <= 6


def test_a_short_drawing_has_no_references() -> None:
    (column,) = cut_into_columns(drawing_of(8, [*((i, i + 1) for i in range(7)), (1, 7)]), 1)
    assert [box.label for box in column.boxes] == ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n0"]
    assert column.rows == [1, 2, 3, 4, 5, 6, 7, 0]


def test_a_leaf_is_drawn_again_near_each_use() -> None:
    chain = [(0, 2), *((i, i + 1) for i in range(2, 12))]
    (column,) = cut_into_columns(drawing_of(13, [*chain, (1, 3), (1, 4), (1, 11)]), 1)
    assert [row for box, row in zip(column.boxes, column.rows, strict=True) if box.label == "n1"] == [1, 9]


@pytest.mark.parametrize(("before", "cut_at"), [(1, 13), (2, 10)])
def test_columns_are_cut_where_one_reference_is_enough(before: int, cut_at: int) -> None:
    """Rows of three between single boxes, after a chain of a length that puts the middle at either kind of row."""
    arrows = [(i, i + 1) for i in range(before)]
    for neck in range(before, before + 28, 4):
        arrows += [pair for side in (1, 2, 3) for pair in [(neck, neck + side), (neck + side, neck + 4)]]
    columns = cut_into_columns(drawing_of(before + 29, arrows), 2)
    assert [box.label for box in columns[1].boxes if box.kind == "reference"] == [f"[{cut_at + 1}] n{cut_at}"]
    assert f"n{cut_at} [{cut_at + 1}]" in [box.label for box in columns[0].boxes]


def test_many_arrows_from_far_away_are_drawn_as_one() -> None:
    """The result uses all boxes of a chain."""
    chain = [(i, i + 1) for i in range(30)]
    (column,) = cut_into_columns(drawing_of(32, [*chain, *((i, 31) for i in range(1, 31))]), 1)
    (many,) = [box for box in column.boxes if box.kind == "reference"]
    entering = [arrow.label for arrow in column.arrows if column.boxes[arrow.end].label == "n31"]
    count = int(many.label.removesuffix(" boxes"))
    assert f"{count} of f64" in entering and len(entering) == 30 - count + 1
    assert many.detail.startswith("[2], [3], [4], ")
