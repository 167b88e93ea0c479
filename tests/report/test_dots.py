"""Dots of very many samples in the pictures of a report."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from simphys.plot import style
from simphys.plot.fit.measurement import _draw_band
from simphys.report.dots import draw_strokes
from simphys.report.pictures import LARGEST_SVG, make_picture


def samples(count: int) -> Figure:
    time = np.linspace(0, 30, count)
    values = np.sin(time) + 0.05 * np.random.default_rng(0).standard_normal(count)
    with style.style():
        figure = Figure(figsize=(9, 4))
        axes = figure.subplots()
        _draw_band(axes, time, np.full(count, 0.05), color="#CFCFCF", label="noise")
        style.draw_samples(axes, time, values, color=style.COLORS[0], label="measured")
    return figure


def test_a_few_dots_are_elements_of_their_own() -> None:
    assert make_picture("few", samples(100), "Samples.").svg.count("<use") >= 100


@pytest.mark.parametrize("count", [5_000, 100_000])
def test_very_many_are_a_path_in_the_colour_of_the_page(count: int) -> None:
    picture = make_picture("many", samples(count), "Samples.")
    assert not picture.png and len(picture.svg) < LARGEST_SVG / 2
    (path,) = re.findall(
        r'<path d="[^"]*" style="([^"]*)"/>', "".join(re.findall(r"<path[^>]*round[^>]*>", picture.svg))
    )
    assert "stroke: var(--measured); stroke-opacity: 0.45" in path and "stroke-linecap: round" in path
    assert "#0072b2" not in picture.svg.lower() and "<image" not in picture.svg


def test_strokes_end_at_the_outermost_dots_and_leave_gaps_open() -> None:
    places = np.array([[3.0, 1.0], [3.1, 2.0], [3.0, 9.0], [7.0, 5.0]])
    assert draw_strokes(places, 2.0) == "M3 1.0V2.0M3 9.0h0M7 5.0h0"
