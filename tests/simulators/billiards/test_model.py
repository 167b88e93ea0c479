"""The model of a table of balls, and its messages if impacts do not end."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import InputError, no_grad
from simphys.autograd.errors import UnphysicalValue
from simphys.rollout import Mode, rollout
from simphys.rollout.trajectory import BlowUp
from simphys.simulators.billiards import Billiards, Params, State

from ...helpers.rounding import assert_equal_but_for_rounding
from .tables import busy, leaf, move, table


def test_shapes_are_those_of_the_fields() -> None:
    for cushions in (True, False):
        model, params, state = busy(cushions=cushions)
        assert {name: value.shape for name, value in params.arrays().items()} == model.param_shapes()
        assert {name: value.shape for name, value in state.arrays().items()} == model.state_shapes()


@pytest.mark.parametrize(("balls", "impacts"), [(0, 10), (3, 0)])
def test_counts_are_positive(balls: int, impacts: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        Billiards(balls, 0.1, max_impacts=impacts)


@pytest.mark.parametrize("dt", [0.0, -0.1, np.nan, np.inf])
def test_a_time_step_is_positive_and_finite(dt: float) -> None:
    """Any other value would give motions that do not exist."""
    with pytest.raises(InputError, match=r"Billiards\.dt"):
        Billiards(1, dt)


@pytest.mark.parametrize("mode", ["fused", "nested"])
@pytest.mark.parametrize(
    ("places", "message"),
    [([[0.3, 0.5], [0.35, 0.5]], "balls 0 and 1, which overlap by 0.05"), ([[0.3, 0.5], [0.96, 0.5]], "ball 1 at")],
)
def test_balls_start_apart_and_on_the_table(places: list[list[float]], message: str, mode: Mode) -> None:
    """Balls that overlap collide at once, whatever their radii: a gradient by these would be that of another motion."""
    model, params, state = table(places, [[1.0, 0.1], [0.0, 0.0]], corners=([0.0, 0.0], [1.0, 1.0]))
    with pytest.raises(UnphysicalValue, match=message):
        rollout(model, params, state, steps=3, mode=mode)
    batch = state.replace(position=leaf([[[0.3, 0.5], [0.7, 0.5]], places]))
    with pytest.raises(UnphysicalValue, match=message):
        rollout(model, params, batch, steps=3, mode=mode)
    sound = state.replace(position=leaf([[0.3, 0.5], [0.7, 0.5]]))
    with pytest.raises(UnphysicalValue, match=r"overlap by 0\.2:"):
        rollout(model, params.replace(radius=leaf([[0.05, 0.05], [0.3, 0.3]])), sound, steps=3, mode=mode)
    assert rollout(model, params.replace(radius=leaf([[0.05, 0.05], [0.1, 0.1]])), sound, steps=1, mode=mode)


def trapped_balls() -> tuple[Billiards, Params, State]:
    """A light ball between two heavy ones that close in on it; each impact takes nearly all of their relative speed."""
    return table(
        [[0.2, 0.5], [0.5, 0.5], [0.8, 0.5]],
        [[0.5, 0.0], [0.0, 0.0], [-0.5, 0.0]],
        dt=1.0,
        mass=[9.0, 1.0, 9.0],
        restitution=0.01,
    )


def test_endless_impacts_stop_the_motion_and_name_the_balls() -> None:
    """Inelastic collapse (McNamara and Young 1992): three balls in a row lose all relative speed in finite time."""
    model, params, state = trapped_balls()
    with pytest.raises(BlowUp, match=r"at most 100 impacts.*of ball . and ball .*more restitution"), no_grad():
        rollout(model, params, state, steps=2)
    with pytest.raises(InputError, match=r"at most 100 impacts.*of ball . and ball .*more restitution"), no_grad():
        model.step(params, state)


def test_balls_that_push_each_other_collide_endlessly() -> None:
    """Without restitution two balls stay together if the one behind is slowed less along the line of centres."""
    pushed = table([[0.5, 0.5], [0.5, 0.6]], [[0.03, 0.1], [0.0, 0.1]], dt=0.05, restitution=0.0, deceleration=1.0)
    message = (
        r"at most 100 impacts within a time step; found (were )?more within its first 0\.00\d+, the last of "
        r"them of ball 0 and ball 1, whose restitution is 0\. .*pushed by others.*lasting contact.*more restitution"
    )
    mode: Mode
    for mode in ("fused", "nested"):
        with pytest.raises(InputError, match=message), no_grad():
            rollout(*pushed, steps=1, mode=mode)


def test_balls_that_lose_all_speed_along_their_line_stay_together_without_a_cloth() -> None:
    case = table([[0.3, 0.5], [0.5, 0.5]], [[1.0, 0.0], [0.0, 0.0]], restitution=0.0)
    x, v = move(case, 2.0)
    assert_equal_but_for_rounding(v, [[0.5, 0.0], [0.5, 0.0]])
    assert_equal_but_for_rounding(x[1, 0] - x[0, 0], 0.1, ulps=64, size=x.max())  # twenty steps


def test_as_many_impacts_as_allowed_are_fine() -> None:
    """A ball moves to and fro between cushions: exactly seven impacts in a step."""
    case = table(
        [[0.5, 0.5]], [[1.0, 0.0]], dt=6.0, cushion_restitution=1.0, corners=([0.0, 0.0], [1.0, 1.0]), max_impacts=7
    )
    x, _ = move(case, 6.0)
    assert x[0, 0] == pytest.approx(_zigzag(6.5))
    with pytest.raises(BlowUp, match=r"ball 0 and the left cushion"), no_grad():
        rollout(Billiards(1, 9.0, max_impacts=7), *case[1:], steps=1)


def _zigzag(way: float) -> float:
    """Return the position, between 0.05 and 0.95, of a ball that would be at `way` on an open table."""
    around = (way - 0.05) % 1.8
    return 0.05 + min(around, 1.8 - around)


def test_advice_for_another_blow_up() -> None:
    model, params, state = busy()
    assert "have an end" in model.advice(params.arrays(), state.arrays())
