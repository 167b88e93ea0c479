"""Inputs that do not fit together are errors that name the input, the constraint and the value found."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import InputError
from simphys.rollout import Mode, plan, rollout
from simphys.simulator import Record

from .cases import assert_bitwise, case, gradient
from .pendulums import Pendulums, system

OPTIONS = ("steps", "control", "keep", "memory")


def attempt(**changes: Any) -> None:
    """Run a rollout of two steps with some inputs replaced."""
    model, params, state, control = system(steps=2)
    exchanged = {name: x if isinstance(x, Tensor) else tensor(x) for name, x in changes.items() if name not in OPTIONS}
    options: dict[str, Any] = {"steps": 2, "control": control} | {n: x for n, x in changes.items() if n in OPTIONS}
    for record in (params, state):
        record.__dict__.update({name: x for name, x in exchanged.items() if name in record.names()})
    rollout(model, params, state, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stiffness": np.ones(4)}, "rollout, params.stiffness: its shape is [3], or [B, ...] with a batch axis in "),
        ({"damping": np.ones((2, 2))}, "rollout, params.damping: its shape is [], or [B, ...] with a batch axis in "),
        (
            {"rate": np.ones((2, 4))},
            "state.rate: its shape is [3], or [B, ...] with a batch axis in front; found [2, 4]",
        ),
        (
            {"control": tensor(np.ones((5, 3)))},
            "control: its shape is [2, 3], or [B, ...] with a batch axis in front; ",
        ),
        ({"angle": np.ones(3, int)}, "state.angle: all inputs are floating-point numbers; found int64. Convert it"),
        ({"damping": tensor(1.0, dtype=np.float32)}, "params.damping: all inputs are float64; found float32. Convert "),
        ({"angle": np.ones((2, 3)), "damping": np.ones(5)}, "state.angle has 2, params.damping has 5. Make them equal"),
        ({"angle": np.ones((0, 3))}, "rollout: a batch has a member; found state.angle has none. Pass one member or "),
        ({"steps": 0}, "rollout: steps is a number, at least 1; found 0. Ask for one step or more."),
        (
            {"steps": np.array([3])},
            "rollout: steps is a number, at least 1; found array([3]). Ask for one step or more.",
        ),
        (
            {"control": np.ones((2, 3))},
            "rollout, control: is a Tensor; found ndarray. Wrap it: simphys.autograd.tensor",
        ),
        (
            {"control": [[1.0, 2.0, 3.0]] * 2},
            "rollout, control: is a Tensor; found list. Wrap it: simphys.autograd.ten",
        ),
        ({"steps": 1.5}, "rollout: steps is a number, at least 1; found 1.5. Ask for one step or more."),
        ({"keep": "last"}, 'it is all, final or step numbers; found last. Pass "all", "final" or a list of step '),
        ({"keep": []}, "rollout, keep: steps lie in 0 ... 2; found none. Pass steps of the horizon."),
        ({"keep": [-1, 2]}, "rollout, keep: steps lie in 0 ... 2; found -1 ... 2. Pass steps of the horizon."),
        ({"keep": [3]}, "rollout, keep: steps lie in 0 ... 2; found 3 ... 3. Pass steps of the horizon."),
        ({"keep": [0.5]}, "rollout, keep: steps lie in 0 ... 2; found 0.5 ... 0.5. Pass steps of the horizon."),
        ({"damping": np.nan}, "rollout, params.damping: all values are numbers; found params.damping = nan. Correct"),
        ({"control": tensor(np.full((2, 3), np.nan))}, "control: all values are numbers; found control[0, 0] = nan. "),
        ({"memory": "much"}, "memory: the budget is a size with a unit; found much."),
        ({"memory": "10B"}, "rollout, memory: the budget holds the fixed part ("),
    ],
    ids=lambda given: str(sorted(given)[0]) if isinstance(given, dict) else "",
)
def test_the_message_says_what_is_wrong(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        attempt(**changes)


@pytest.mark.parametrize("mode", ["fused", "step", "nested"])
def test_records_that_are_none_or_another_ones_are_refused(mode: Mode) -> None:
    model, params, state, control = system(steps=2)

    make: Any = replace

    def run(params: Any, state: Any) -> None:
        rollout(model, params, state, steps=2, control=control, mode=mode)

    for swapped, message in (
        ((state, params), "rollout, state: has the fields angle, rate; found stiffness, "),
        ((params.arrays(), state), "rollout, params: is a record with the fields stiffness, "),
        ((None, state), "found NoneType. Pass the model's Params."),
        ((params, make(state, angle=state.angle.data)), "rollout, state.angle: is a Tensor; found ndarray. Wrap it"),
        ((make(params, damping=0.1), state), "rollout, params.damping: is a Tensor; found float. Wrap it: simphys"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            run(*swapped)


@pytest.mark.parametrize("name", ["running", "plan", "adjoint", "final", "steps", "plot"])
def test_a_field_that_a_trajectory_would_hide_is_refused(name: str) -> None:
    @dataclass(frozen=True)
    class OtherState(Record):
        angle: Tensor
        rate: Tensor
        __annotations__ = {"angle": Tensor, "rate": Tensor, name: Tensor}

    model, params, state, control = system(steps=2)
    other = OtherState(state.angle, state.rate, state.rate)  # type: ignore[call-arg]
    with pytest.raises(InputError, match=f"called like a part of a Trajectory; found {name}"):
        rollout(model, params, other, steps=2, control=control)


def test_a_control_for_a_simulator_that_takes_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pendulums, "control_shape", lambda self: None)
    with pytest.raises(
        InputError, match=re.escape("this simulator takes no control; found shape (2, 3). Leave it out.")
    ):
        attempt()
    attempt(control=None)


def test_a_budget_that_is_too_small_names_ones_that_do() -> None:
    given = case(steps=100)
    with pytest.raises(InputError) as caught:
        given.plan(memory=10)
    least, quick = (int(size) for size in re.findall(r"memory=(\d+)", str(caught.value)))
    assert given.rollout(memory=least).plan == given.plan(memory=least)
    assert least < quick and given.plan(memory=quick).recomputed_steps < 100
    with pytest.raises(InputError, match="rollout, memory"):
        given.rollout(memory=least - 1)


def test_the_plan_of_plain_numbers_is_that_of_all_gradients() -> None:
    model, params, state, control = system(steps=12)
    assert control is not None
    plain = [type(record)(*[x.detach() for x in record.tensors()]) for record in (params, state)]
    found = plan(model, *plain, steps=12, control=control.detach())
    assert found == case().plan()


def test_gradients_go_by_the_names_of_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = gradient(case())
    for shapes in ("param_shapes", "state_shapes"):
        original = getattr(Pendulums, shapes)
        monkeypatch.setattr(
            Pendulums, shapes, lambda self, original=original: dict(reversed(list(original(self).items())))
        )
    assert_bitwise(gradient(case()), expected)
