"""Pictures stay legible for any graph: text of one size without overlaps, on a page of a moderate shape."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from simphys.autograd.look.drawing import Arrow, Box, Drawing
from simphys.autograd.look.picture import picture


def drawing_of(labels: list[str], arrows: list[tuple[int, int]]) -> Drawing:
    entered = {end for _, end in arrows}
    boxes = [Box("node" if number in entered else "leaf", label) for number, label in enumerate(labels)]
    return Drawing(boxes, [Arrow(start, end, "f64 125×3") for start, end in arrows])


def chain(length: int) -> Drawing:
    return drawing_of([f"Function{i}Backward" for i in range(length)], [(i, i + 1) for i in range(length - 1)])


def irregular(nodes: int) -> Drawing:
    """Six leaves, then nodes with one or two inputs from any before them; the last has all unused results as inputs."""
    random = np.random.default_rng(0)
    arrows = [(int(s), end) for end in range(6, nodes) for s in random.integers(0, end, random.integers(1, 3))]
    used = {start for start, _ in arrows}
    arrows += [(start, nodes) for start in range(nodes) if start not in used]
    return drawing_of([f"Function{i}Backward" for i in range(nodes + 1)], arrows)


def overlapping_texts(figure: Figure) -> list[tuple[str, str]]:
    (axes,) = figure.axes
    frames = [(text.get_text(), text.get_window_extent()) for text in axes.texts]
    return [(a, b) for (a, one), (b, other) in itertools.combinations(frames, 2) if one.overlaps(other)]


@pytest.mark.parametrize("drawing", [chain(200), irregular(200)], ids=["chain", "irregular"])
def test_two_hundred_nodes_are_legible(drawing: Drawing) -> None:
    figure = picture(drawing)
    (axes,) = figure.axes
    shown = {text.get_text().split(" [")[0] for text in axes.texts}
    assert {box.label for box in drawing.boxes} <= shown
    assert {text.get_fontsize() for text in axes.texts} == {6.5, 8.5}
    assert overlapping_texts(figure) == []
    width, height = figure.get_size_inches()
    assert 0.4 < height / width < 2.0
    places = np.array([text.get_position() for text in axes.texts])  # [inch]
    assert np.all(places > 0.0) and np.all(places < (width, height))


def test_twenty_nodes_are_one_column() -> None:
    figure = picture(chain(20))
    (axes,) = figure.axes
    across = [text.get_position()[0] for text in axes.texts]
    assert np.ptp(across) < 1e-9 and len(across) == 39


def test_all_lines_of_a_fold_stand_in_its_box() -> None:
    names = "SpringForceBackward, ExternalForceBackward, IntegrateBackward"
    fold = Box("fold", "× 48 more", names, "12 µs + 20 µs, 1.2 kB", range(1))
    figure = picture(Drawing([Box("leaf", "x"), fold], [Arrow(0, 1, "f64")]))
    (axes,) = figure.axes
    lines = ["× 48 more", "SpringForceBackward, ExternalForceBackward,", "IntegrateBackward", "12 µs + 20 µs, 1.2 kB"]
    assert [text.get_text() for text in axes.texts if text.get_text() in lines] == lines
    assert overlapping_texts(figure) == []


def test_names_are_not_read_as_mathematics() -> None:
    figure = picture(drawing_of(["$k$", "cost_$"], [(0, 1)]))
    assert {"$k$", "cost_$"} <= {text.get_text() for text in figure.axes[0].texts}
    assert not any(text.get_parse_math() for text in figure.axes[0].texts)
