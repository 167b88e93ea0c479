"""Picture of a motion's events along time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from simphys.autograd import tensor
from simphys.diagnose.health import health
from simphys.plot.fit.health import health as draw
from simphys.simulator.events import Event

from ..rollout.pendulums import Params, Pendulums, State

IMPACTS = tuple([Event(step, 0.01 * step, "impact", "two balls") for step in (10, 30, 31)])
GRAZE = Event(20, 0.2, "graze", "ball 1", "it only just touches")


def panels(*events: Event) -> list[Axes]:
    params, state = Params(tensor([4.0]), tensor(0.0)), State(tensor([0.1]), tensor([0.0]))
    found = health(Pendulums(n=1, dt=0.01), params, state, steps=50)
    return draw(replace(found, events=events), units={}).axes


def test_each_kind_has_a_row_of_marks_at_its_times_with_their_number() -> None:
    axes = panels(*IMPACTS, GRAZE)[-1]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["impact (3)", "graze (1)"]
    assert axes.get_xlabel() == "time [s]"
    rows: list[Any] = list(axes.collections)[:2]
    times = [[segment[0, 0] for segment in row.get_segments()] for row in rows]
    np.testing.assert_allclose(times[0], [0.1, 0.3, 0.31])
    np.testing.assert_allclose(times[1], [0.2])
    assert axes.yaxis_inverted()  # the first kind is on top


def test_events_with_a_one_sided_gradient_have_another_mark() -> None:
    axes = panels(*IMPACTS, GRAZE)[-1]
    marks: Any = axes.collections[2]
    np.testing.assert_allclose(marks.get_offsets(), [[0.2, 1]])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["the gradient is one-sided (1)"]
    assert panels(*IMPACTS)[-1].get_legend() is None


def test_without_events_there_is_no_such_panel() -> None:
    assert len(panels()) == 3
    assert len(panels(GRAZE)) == 4
    assert panels()[-1].get_xlabel() == "time [s]"
