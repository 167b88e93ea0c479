"""A motion that blows up stops soon, with an error that locates the bad value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.rollout import BlowUp, run
from simphys.rollout.run import FIRST_CHECK

from .cases import Case, case
from .pendulums import Params, PendulumEngine, Pendulums, State

STEPS = 10_000
BAD = 9
"""First bad step of the motion below: its rate grows a thousandfold per step, from 5e-7 to more than 1e20."""


@pytest.fixture(autouse=True)
def check_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the first check as early as for large states."""
    monkeypatch.setattr(run, "FIRST_NUMBERS", 0)


def exploding(batch: int | None = None, mode: str = "fused", limit: float = 1e20, steps: int = STEPS) -> Any:
    """Roll out three pendulums, of which one blows up by a negative damping; in a batch, only member 1 is bad."""
    lead = () if batch is None else (batch,)
    damping = np.zeros(lead)
    damping[... if batch is None else 1] = -999 / 0.05
    angle, rate = np.zeros((*lead, 3)), np.zeros((*lead, 3))
    rate[..., 2] = 5e-7
    params = Params(tensor(np.ones(3)), tensor(damping, requires_grad=True))
    given = Case(Pendulums(), params, State(tensor(angle), tensor(rate)), None, {"steps": steps})
    return given.rollout(mode=mode, limit=limit)


@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
@pytest.mark.parametrize("batch", [None, 3])
def test_the_error_names_step_field_element_and_member(mode: str, batch: int | None) -> None:
    with pytest.raises(BlowUp) as caught:
        exploding(batch, mode)
    error = caught.value
    assert (error.step, error.field) == (BAD, "rate")
    assert error.element == ((2,) if batch is None else (1, 2))
    assert 1e20 < error.value < 1e24
    assert isinstance(error, InputError)
    place = "rate[2]" if batch is None else "rate[1, 2]"
    expected = f"found a blow-up at step {BAD} (t = {BAD * 0.05:g}), first in {place} = {error.value:g}. "
    assert str(error).endswith(expected + "Lower the damping.")


def test_it_stops_within_the_piece_that_is_checked() -> None:
    before = PendulumEngine.advanced
    with pytest.raises(BlowUp):
        exploding()
    assert PendulumEngine.advanced - before <= FIRST_CHECK


def test_advice_gets_the_member_and_its_last_sound_state(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def advice(self: Any, params: Any, state: Any) -> str:
        seen.append((params, state))
        return ""

    monkeypatch.setattr(Pendulums, "advice", advice)
    for mode in ("fused", "nested"):
        with pytest.raises(BlowUp) as caught:
            exploding(3, mode)
        before = len(seen)
        assert str(caught.value) == str(caught.value)  # the cause is sought where it is asked for, once
        assert len(seen) == before + 1
    for params, state in seen:
        assert params["stiffness"].shape == (3,) and params["damping"] == -999 / 0.05
        assert state["rate"].shape == (3,) and 1e17 < abs(state["rate"][2]) < 1e20
    np.testing.assert_allclose(seen[0][1]["rate"], seen[1][1]["rate"], rtol=1e-12)


def test_an_advice_that_fails_hides_no_blow_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Any, params: Any, state: Any) -> str:
        return state["speed"]

    def silent(self: Any, params: Any, state: Any) -> None:
        pass

    told = ("failed with KeyError: 'speed'", "returned None, which is no text")
    for advice, reason in zip((failing, silent), told, strict=True):
        monkeypatch.setattr(Pendulums, "advice", advice)
        for mode in ("fused", "nested"):
            with pytest.raises(BlowUp, match=f"at step {BAD} .*smaller time step.*The advice of Pendulums {reason}"):
                exploding(None, mode)


@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
def test_a_number_that_is_none_is_a_blow_up_whatever_the_limit(mode: str) -> None:
    with pytest.raises(BlowUp) as caught, np.errstate(all="ignore"):
        exploding(mode=mode, limit=np.inf, steps=400)
    assert not np.isfinite(caught.value.value)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
def test_a_start_that_is_none_is_step_0(mode: str, value: float) -> None:
    given = case(steps=3)
    state = given.state.replace(angle=tensor([0.0, value, 0.0]))
    with pytest.raises(BlowUp, match="at step 0") as caught:
        Case(given.model, given.params, state, given.control, given.options).rollout(mode=mode)
    assert caught.value.element == (1,)
    assert caught.value.remedy == "Correct the start: all its numbers must be finite."


@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
@pytest.mark.parametrize("batch", [None, 2])
def test_an_infinite_control_is_named_with_its_row(mode: str, batch: int | None) -> None:
    lead = () if batch is None else (batch,)
    pushes = np.zeros((*lead, 4, 3))
    pushes[(1,) * len(lead) + (2, 1)] = np.inf
    pushes[(0,) * len(lead) + (3, 0)] = -np.inf  # which the motion of the member that blows up has not met
    params, state = Params(tensor(np.ones(3)), tensor(0.1)), State(tensor(np.zeros(3)), tensor(np.zeros(3)))
    given = Case(Pendulums(), params, state, tensor(pushes), {"steps": 4})
    with pytest.raises(BlowUp, match="at step") as caught, np.errstate(all="ignore"):
        given.rollout(mode=mode)
    member, step = int(caught.value.element[0]) if batch else 1, caught.value.step
    row, entry, value = (2, 1, "inf") if member else (3, 0, "-inf")
    place = ", ".join(map(str, (*[member] * len(lead), row, entry)))
    assert step == row + 1
    assert caught.value.remedy == f"control[{place}] = {value} is not finite: correct it."


def test_checks_of_a_sound_motion_become_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    find_bad_value = run.find_bad_value

    def counted(*args: Any) -> Any:
        nonlocal looks
        looks += 1
        return find_bad_value(*args)

    monkeypatch.setattr(run, "find_bad_value", counted)
    monkeypatch.setattr(run, "CHECK_PART", 0.0)  # every check takes too long
    case(steps=FIRST_CHECK * 31, keep="final").rollout()
    assert looks == 6  # the first is of the start


def test_the_first_check_of_a_small_state_waits_for_some_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[int] = []
    given = case(steps=300)
    numbers = sum(array.size for array in given.state.arrays().values())
    monkeypatch.setattr(run, "FIRST_NUMBERS", 100 * numbers)
    given.rollout(on_progress=lambda step, steps: reports.append(step))
    assert reports[0] == 100
