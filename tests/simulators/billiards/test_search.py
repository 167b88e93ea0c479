"""The search finds the first impact, and no false ones: touching, separating, passing by, resting before."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from simphys.simulators.billiards import Billiards, Params, State
from simphys.simulators.billiards.legs import trace_legs

from ...helpers.rounding import assert_equal_but_for_rounding
from .tables import table

Case = tuple[Billiards, Params, State]


class Impact(NamedTuple):
    """The next impact."""

    time: float
    ball: int
    partner: int


def first(case: Case, end: float | None = None) -> Impact | None:
    leg = trace_legs(*case, end)[0]
    return None if leg.collision is None else Impact(leg.time, *leg.collision)


def sampled(case: Case, end: float) -> tuple[float, int, int] | None:
    """Return the first of very many samples at which a gap is closed."""
    model, params, state = case
    x, v, r, a = (each.data for each in (state.position, state.velocity, params.radius, params.deceleration))
    t = np.linspace(0, end, 40001)[:, None]
    speed = np.linalg.norm(v, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(speed > 0, speed / a, 0.0)
        s = np.minimum(t, rest)
        x = x + (s * (1 - np.where(rest > 0, s / (2 * rest), 0.0)))[..., None] * v
    gaps = {}
    for i in range(model.balls):
        for j in range(i + 1, model.balls):
            gaps[i, j] = np.linalg.norm(x[:, i] - x[:, j], axis=1) - r[i] - r[j]
        for side in range(4 if model.cushions else 0):
            wall = (params.lower, params.upper)[side % 2].data[side // 2]
            gaps[i, model.balls + side] = (1 - 2 * (side % 2)) * (x[:, i, side // 2] - wall) - r[i]
    closed = [(float(t[np.argmax(gap < 0), 0]), *who) for who, gap in gaps.items() if (gap < 0).any()]
    return min(closed, default=None)


@pytest.mark.parametrize("deceleration", [0.0, 0.2, 2.0])
def test_it_agrees_with_the_first_of_many_samples(deceleration: float) -> None:
    """Some hundred random tables, to the spacing of the samples; near misses of that size are left out."""
    random, met = np.random.default_rng(5), 0
    for _ in range(100):
        x = np.array([[0.2, 0.2], [0.5, 0.6], [0.8, 0.3]]) + random.uniform(-0.1, 0.1, (3, 2))
        v = random.uniform(-1, 1, (3, 2)) * (random.random((3, 1)) < 0.7)
        case = table(x, v, radius=[0.05, 0.09, 0.07], deceleration=deceleration, corners=([0.0, 0.0], [1.0, 0.8]))
        expected, found = sampled(case, 1.0), first(case, 1.0)
        assert (found is None) == (expected is None)
        if expected is not None and found is not None:
            met += 1
            assert (found.ball, found.partner) == expected[1:]
            assert found.time == pytest.approx(expected[0], abs=3e-5)
    assert met > 20


def test_the_time_is_right_to_rounding() -> None:
    """A ball rolls towards another one at rest, d - v t + a t^2 / 2 = 2 r, and hits a cushion."""
    head_on = table([[0.0, 0.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 0.0]], deceleration=0.5)
    found = first(head_on, 1.0)
    assert found is not None
    assert_equal_but_for_rounding(found.time, (2 - np.sqrt(4 - 2 * 0.5 * 0.9)) / 0.5, size=2 / 0.5)
    cushion = first(table([[0.3, 0.4]], [[0.6, 0.1]], corners=([0.0, 0.0], [1.0, 1.0])), 2.0)
    assert cushion is not None and cushion[1:] == (0, 2)
    assert_equal_but_for_rounding(cushion.time, (1.0 - 0.05 - 0.3) / 0.6)


@pytest.mark.parametrize(
    "velocity",
    [[[0.0, 0.0], [0.0, 0.0]], [[-1.0, 0.3], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]], [[0.7, 0.2], [0.7, 0.2]]],
    ids=["resting", "parting", "sliding", "together"],
)
@pytest.mark.parametrize("deceleration", [0.0, 0.3])
def test_touching_balls_that_do_not_approach_do_not_collide(velocity: list[list[float]], deceleration: float) -> None:
    assert first(table([[0.0, 0.0], [0.1, 0.0]], velocity, deceleration=deceleration)) is None


def test_touching_balls_that_approach_collide_immediately() -> None:
    found = first(table([[0.0, 0.0], [0.1, 0.0]], [[0.7, 0.2], [0.0, 0.0]]))
    assert found is not None and found.time < 1e-13


@pytest.mark.parametrize(("beside", "meets"), [(-1e-10, True), (1e-10, False)])
def test_a_graze_and_a_near_miss_are_distinguished(beside: float, meets: bool) -> None:
    case = table([[0.0, 0.0], [0.5, 0.1 + beside]], [[1.0, 0.0], [0.0, 0.0]])
    assert (first(case, 1.0) is not None) == meets


def test_a_ball_that_stops_before_hits_nothing() -> None:
    """It stops after v^2 / (2 a) = 0.4 m, just before or just after it would touch."""
    for gap, meets in ((0.4 + 1e-9, False), (0.4 - 1e-9, True)):
        case = table([[0.0, 0.0], [gap + 0.1, 0.0]], [[0.8, 0.0], [0.0, 0.0]], deceleration=0.8)
        assert (first(case, 2.0) is not None) == meets


def test_simultaneous_impacts_are_taken_in_the_order_of_ball_numbers() -> None:
    """A ball hits two at once, whichever is first by rounding; and a cushion after balls."""
    for angle in np.linspace(0.1, 1.5, 15):
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, s], [-s, c]])
        x = np.array([[0.0, 0.0], [0.5, 0.06], [0.5, -0.06]]) @ turn
        for order in ([0, 1, 2], [0, 2, 1]):
            found = first(table(x[order], np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]) @ turn, dt=1.0))
            assert found is not None and (found.ball, found.partner) == (0, 1)
    both = table([[0.25, 0.5], [0.05, 0.7]], [[-0.2, 0.1], [0.0, 0.0]], corners=([0.0, 0.0], [1.0, 1.0]), dt=2.0)
    found = first(both)
    assert found is not None and found.partner == 1
