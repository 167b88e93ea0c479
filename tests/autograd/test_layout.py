"""Boxes, labels and lines do not overlap, and rows follow the order of computation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from simphys.autograd.look.placement import Placement, Wire, place, rows_of

LABEL = 0.1


def random_graph(seed: int, count: int = 60) -> tuple[list[tuple[float, float]], list[int], list[Wire]]:
    random = np.random.default_rng(seed)
    arrows = [
        (int(start), end)
        for end in range(1, count)
        for start in random.integers(max(0, end - 9), end, random.integers(1, 4))
    ]
    arrows += [(start, count) for start in range(count) if start not in {start for start, _ in arrows}]
    sizes = [(float(width), float(height)) for width, height in random.uniform((0.3, 0.2), (1.5, 0.6), (count + 1, 2))]
    wires = [Wire(start, end, float(random.uniform(0.2, 0.8))) for start, end in arrows]
    return sizes, rows_of(count + 1, arrows), wires


def corners(centres: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """[n, 4]: left, top, right, bottom."""
    return np.hstack([centres - sizes / 2, centres + sizes / 2])


def overlapping(frames: np.ndarray) -> list[tuple[int, int]]:
    return [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(frames), 2)
        if np.all(a[:2] < b[2:] - 1e-9) and np.all(b[:2] < a[2:] - 1e-9)
    ]


def samples(curve: np.ndarray) -> np.ndarray:
    """Points along the Bézier pieces."""
    t = np.linspace(0.0, 1.0, 25)[:, None]
    return np.vstack(
        [
            (1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d
            for a, b, c, d in (curve[i : i + 4] for i in range(0, len(curve) - 1, 3))
        ]
    )


def inside(points: np.ndarray, frame: np.ndarray) -> bool:
    return bool(np.any(np.all((points > frame[:2] + 1e-9) & (points < frame[2:] - 1e-9), axis=1)))


def laid_out(seed: int) -> tuple[Placement, list[Wire], np.ndarray, np.ndarray]:
    sizes, rows, wires = random_graph(seed)
    layout = place(sizes, rows, wires, LABEL)
    boxes = corners(layout.boxes[:, :2], layout.boxes[:, 2:])
    label_sizes = np.array([(wire.label_width, LABEL) for wire in wires])
    return layout, wires, boxes, corners(layout.labels, label_sizes)


def test_each_box_is_in_the_row_above_the_first_box_that_it_leads_to() -> None:
    assert rows_of(5, [(0, 2), (1, 3), (2, 3), (3, 4)]) == [0, 1, 1, 2, 3]


def test_a_full_row_sends_boxes_to_the_one_above() -> None:
    """Twenty boxes between two single ones."""
    rows = rows_of(23, [(0, 1), *((1, box) for box in range(2, 22)), *((box, 22) for box in range(2, 22))])
    assert rows[:2] == [0, 1] and rows[2:12] == [2] * 10 and rows[12:] == [3] * 10 + [4]


@pytest.mark.parametrize("seed", range(4))
def test_boxes_and_labels_do_not_overlap(seed: int) -> None:
    layout, _, boxes, labels = laid_out(seed)
    frames = np.vstack([boxes, labels])
    assert overlapping(frames) == []
    assert np.all(frames >= 0.0) and np.all(frames[:, 2:] <= layout.size)


@pytest.mark.parametrize("seed", range(4))
def test_lines_run_through_no_box_and_no_label_but_their_own(seed: int) -> None:
    layout, wires, boxes, labels = laid_out(seed)
    for number, (curve, wire) in enumerate(zip(layout.curves, wires, strict=True)):
        points = samples(curve)
        assert [box for box, frame in enumerate(boxes) if inside(points, frame)] == []
        assert [label for label, frame in enumerate(labels) if inside(points, frame)] == [number]
        assert np.allclose(points[0], (layout.boxes[wire.start, 0], boxes[wire.start, 3]))
        left, top, right, _ = boxes[wire.end]
        assert left < points[-1, 0] < right and points[-1, 1] == pytest.approx(top)


def test_a_chain_is_straight() -> None:
    rows = list(range(30))
    wires = [Wire(row, row + 1, 0.4) for row in rows[:-1]]
    assert np.ptp(place([(1.0, 0.3)] * 30, rows, wires, LABEL).boxes[:, 0]) < 1e-9


def test_a_box_on_a_single_arrow_does_not_push_the_chain_aside() -> None:
    """A leaf at each step of a long chain does not push it aside."""
    rows = [*range(40), *range(39)]
    wires = [Wire(i, i + 1, 0.4) for i in range(39)] + [Wire(40 + i, i + 1, 0.4) for i in range(39)]
    assert np.ptp(place([(1.0, 0.3)] * 79, rows, wires, LABEL).boxes[:40, 0]) < 2.0


def test_a_box_is_as_wide_as_the_labels_above_it() -> None:
    wires = [Wire(start, 5, 0.8) for start in range(5)]
    assert place([(0.5, 0.3)] * 6, [0] * 5 + [1], wires, LABEL).boxes[5, 2] >= 5 * 0.8


def test_the_same_graph_is_laid_out_the_same() -> None:
    first, second = (place(*random_graph(7), LABEL) for _ in range(2))
    assert np.array_equal(first.boxes, second.boxes) and np.array_equal(first.labels, second.labels)
