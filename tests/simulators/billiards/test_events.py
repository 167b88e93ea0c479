"""A motion reports its events, and those at which the one-sided derivatives differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, no_grad, tensor
from simphys.rollout import rollout
from simphys.simulator.events import Event, select_one_sided
from simphys.simulators.billiards import Billiards, Params, State

from .tables import busy, table

Case = tuple[Billiards, Params, State]
STEPS = 20


def find_events(case: Case, steps: int = STEPS) -> tuple[Event, ...]:
    model, params, state = case
    with no_grad():
        states = rollout(model, params, state, steps=steps).states
    return model.events(params.arrays(), states.arrays(), None)


def only_one_sided(case: Case, kind: str) -> Event:
    """Return the only one-sided event, which has this kind."""
    found = select_one_sided(find_events(case))
    assert [event.kind for event in found] == [kind]
    return found[0]


def slopes(case: Case, ball: int, axis: int, of: int, step: float = 1e-4) -> tuple[float, float, float]:
    """Derivative of ball `of`'s final second coordinate by an initial one: from the left, the right, and by adjoint."""
    model, params, state = case

    def end(position: Tensor) -> Tensor:
        return rollout(model, params, state.replace(position=position), steps=STEPS, keep="final").final.position[of, 1]

    ends = []
    for change in (-step, 0.0, step):
        x = state.position.data.copy()
        x[ball, axis] += change
        with no_grad():
            ends.append(end(tensor(x)).item())
    leaf = tensor(state.position.data, requires_grad=True)
    end(leaf).backward()
    assert leaf.grad is not None
    return (ends[1] - ends[0]) / step, (ends[2] - ends[1]) / step, float(leaf.grad.data[ball, axis])


def test_a_generic_motion_has_impacts_cushions_and_rests_and_none_is_one_sided() -> None:
    found = find_events(busy())
    assert {event.kind for event in found} == {"impact", "cushion", "rest"}
    assert not select_one_sided(found)
    assert [event.time for event in found] == sorted(event.time for event in found)
    for event in found:
        assert event.step * 0.1 <= event.time <= (event.step + 1) * 0.1
    whole = find_events(busy(dt=2.0), steps=1)
    assert [(event.kind, event.what) for event in whole] == [(event.kind, event.what) for event in found]
    np.testing.assert_allclose([e.time for e in whole], [e.time for e in found], rtol=0, atol=1e-13)


def test_an_impact_is_reported_with_its_time_and_its_partners() -> None:
    case = table([[0.2, 0.5], [0.5, 0.5]], [[0.5, 0.0], [0.0, 0.0]], restitution=1.0, corners=([0.0, 0.0], [1.0, 1.0]))
    first, second = find_events(case)
    assert (first.kind, first.what, first.step) == ("impact", "ball 0 and ball 1", 4)
    assert first.time == pytest.approx(0.4)
    assert (second.kind, second.what) == ("cushion", "ball 1 and the right cushion")


def test_a_ball_that_comes_to_rest_is_reported_and_smooth() -> None:
    (event,) = find_events(table([[0.2, 0.5]], [[0.5, -0.3]], deceleration=0.9))
    assert (event.kind, event.what, event.one_sided) == ("rest", "ball 0", "")
    assert event.time == pytest.approx(np.hypot(0.5, 0.3) / 0.9)


def grazing_balls(beside: float) -> Case:
    """A ball passes another one at rest, whose centre is one diameter plus `beside` off its path."""
    return table([[0.2, 0.5], [0.6, 0.6 + beside]], [[0.5, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("beside", [-1e-15, 0.0, 1e-15])
def test_a_graze_is_one_sided(beside: float) -> None:
    """Any closer, the impulse grows as the square root of the overlap; farther away there is none.

    The derivative returned is that of the miss.
    """
    event = only_one_sided(grazing_balls(beside), "graze")
    assert event.what == "ball 0 and ball 1" and event.time == pytest.approx(0.8)
    left, right, adjoint = slopes(grazing_balls(beside), 0, 1, 0)
    assert right < -10 and left == pytest.approx(1)
    assert adjoint == pytest.approx(left)


def test_an_impact_that_is_next_to_a_graze_is_one_sided() -> None:
    event = only_one_sided(grazing_balls(-3e-14), "impact")
    assert "graze" in event.one_sided


@pytest.mark.parametrize("beside", [-1e-6, 1e-6])
def test_a_thin_hit_and_a_clear_miss_are_not_one_sided(beside: float) -> None:
    assert not select_one_sided(find_events(grazing_balls(beside)))


def test_balls_that_slide_along_each_other_graze() -> None:
    case = table([[0.5, 0.5], [0.5, 0.6]], [[0.5, 0.0], [0.0, 0.0]])
    assert "near miss" in only_one_sided(case, "graze").one_sided


def break_shot(order: list[int]) -> Case:
    """A ball runs into two others at once, symmetrically; `order` permutes the numbers of the balls."""
    x = np.array([[0.2, 0.5], [0.6, 0.56], [0.6, 0.44]])
    return table(x[order], np.array([[0.5, 0.0], [0.0, 0.0], [0.0, 0.0]])[order], restitution=1.0)


def test_simultaneous_impacts_are_one_sided_and_taken_in_the_order_of_ball_numbers() -> None:
    """The ball hit first takes more momentum; a shift towards the other ball makes that one the first."""
    found = find_events(break_shot([0, 1, 2]))[:2]
    assert [event.what for event in found] == ["ball 0 and ball 1", "ball 0 and ball 2"]
    assert all("at the same time" in event.one_sided for event in found)
    left, right, adjoint = slopes(break_shot([0, 1, 2]), 0, 1, 0)
    assert abs(left) > 1e3  # a jump, due to the other order
    assert adjoint == pytest.approx(right, rel=1e-2)

    model, params, state = break_shot([0, 1, 2])
    aside = np.array([[0, 1e-9], [0, 0], [0, 0]])
    shifted = state.replace(position=tensor(state.position.data + aside))
    ends = [rollout(model, params, each, steps=STEPS).final.position.data for each in (state, shifted)]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-6)

    other = [event.what for event in find_events(break_shot([2, 1, 0]))[:2]]
    assert other == ["ball 0 and ball 2", "ball 1 and ball 2"]


def test_touching_balls_transmit_an_impact_immediately() -> None:
    """Balls in a row of three overlap if moved any closer, so that the derivative is one-sided."""
    row = table([[0.2, 0.5], [0.6, 0.5], [0.7, 0.5]], [[0.5, 0.0], [0.0, 0.0], [0.0, 0.0]], restitution=1.0)
    found = find_events(row)
    assert [event.what for event in found] == ["ball 0 and ball 1", "ball 1 and ball 2"]
    assert all("at the same time" in event.one_sided for event in found)


def test_an_impact_at_the_very_start_or_end_is_one_sided() -> None:
    now = table([[0.5, 0.5], [0.6, 0.5]], [[0.5, 0.0], [0.0, 0.0]])
    assert "very start" in only_one_sided(now, "impact").one_sided
    last = table([[0.5, 0.5]], [[0.0, 0.25]], dt=0.125, corners=([0.0, 0.0], [1.0, 1.175]))
    assert "very end" in only_one_sided(last, "cushion").one_sided


def test_a_rest_at_the_very_end_is_one_sided() -> None:
    assert "kink" in only_one_sided(table([[0.5, 0.5]], [[0.5, 0.0]], dt=0.125, deceleration=0.2), "rest").one_sided


def test_a_ball_that_comes_to_rest_just_where_it_would_touch_is_one_sided() -> None:
    """A faster ball would touch and come back; it travels 0.5^2 / (2 0.25) = 0.5 m, in 2 s."""
    case = table([[0.2, 0.5]], [[0.5, 0.0]], dt=0.2, deceleration=0.25, corners=([0.0, 0.0], [0.75, 1.0]))
    found = select_one_sided(find_events(case))
    assert {event.kind for event in found} <= {"graze", "cushion"} and len(found) == 1


def test_an_impact_in_the_moment_of_a_rest_is_one_sided() -> None:
    """Ball 1 stops after 0.5 s and 0.25 m, exactly when ball 0 arrives."""
    a, t = 2.0, 0.5
    stop = 0.6 + 0.5 * 1.0 * t
    way = 1.5 * t - a * t**2 / 2
    case = table([[stop - 0.1 - way, 0.5], [0.6, 0.5]], [[1.5, 0.0], [1.0, 0.0]], deceleration=a)
    assert any(
        event.kind == "impact" and "comes to rest at this moment" in event.one_sided for event in find_events(case)
    )


def test_separating_balls_and_balls_touching_at_rest_are_no_events() -> None:
    still: Any = [[0.0, 0.0], [0.0, 0.0]]
    assert not find_events(table([[0.5, 0.5], [0.6, 0.5]], still))
    assert not find_events(table([[0.5, 0.5], [0.6, 0.5]], [[-0.3, 0.1], [0.0, 0.0]]))
