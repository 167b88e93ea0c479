"""Streamed rollouts: the same states block by block; sound states come before an error or interrupt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.rollout import BlowUp, stream

from .cases import Case, case
from .pendulums import Params, PendulumEngine, Pendulums, State


def streamed(given: Case, **options: Any) -> Any:
    steps = given.options["steps"]
    return stream(given.model, given.params, given.state, control=given.control, **{"steps": steps, **options})


@pytest.mark.parametrize("block", [1, 7, 20, 1000])
@pytest.mark.parametrize("batch", [None, 1, 3])
def test_its_states_are_those_of_the_rollout(block: int, batch: int | None) -> None:
    given = case(steps=20, batch=batch, shared=("control",))
    expected = given.rollout()
    blocks = list(streamed(given, block=block))
    assert len(blocks) == -(-20 // block)
    numbers = np.concatenate([steps for steps, _ in blocks])
    np.testing.assert_array_equal(numbers, np.arange(21))
    for name, whole in expected.states.arrays().items():
        states = np.concatenate([part[name] for _, part in blocks], axis=0 if batch is None else 1)
        assert states.tobytes() == whole.tobytes()


def test_it_holds_one_block_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    segment = PendulumEngine.segment

    def noted(self: PendulumEngine, steps: int) -> Any:
        sizes.append(steps)
        return segment(self, steps)

    monkeypatch.setattr(PendulumEngine, "segment", noted)
    before = PendulumEngine.advanced
    blocks = streamed(case(steps=1000), block=10)
    next(blocks)
    assert sizes == [10] and PendulumEngine.advanced - before == 10


def test_invalid_inputs_are_errors_at_once() -> None:
    with pytest.raises(InputError, match="rollout: steps is a number, at least 1; found 0"):
        streamed(case(control=False), steps=0, block=5)
    with pytest.raises(InputError, match="stream: a block has at least one step; found 0"):
        streamed(case(), block=0)


@pytest.mark.parametrize("block", [3, 5, 9, 50])
def test_sound_states_come_before_a_blow_up(block: int) -> None:
    params = Params(tensor(np.ones(3)), tensor(-999 / 0.05))
    state = State(tensor(np.zeros(3)), tensor([0.0, 0.0, 5e-7]))
    found = []
    with pytest.raises(BlowUp, match="at step 9 "):
        for steps, states in stream(Pendulums(), params, state, steps=100, block=block, limit=1e20):
            found += steps.tolist()
            assert len(steps) == len(states["rate"]) and np.abs(states["rate"]).max() < 1e20
    assert found == list(range(9))


@pytest.mark.parametrize("block", [64, 100, 1000])
def test_sound_states_come_before_ctrl_c(block: int) -> None:
    def interrupted(step: int, steps: int) -> None:
        if step >= 128:
            raise KeyboardInterrupt

    given = case(steps=500)
    expected = given.rollout()
    found, angles = [], []
    with pytest.raises(KeyboardInterrupt):
        for steps, states in streamed(given, block=block, on_progress=interrupted):
            found += steps.tolist()
            angles.append(states["angle"])
    assert found == list(range(len(found))) and len(found) > 128
    assert np.concatenate(angles).tobytes() == expected.angle.numpy()[: len(found)].tobytes()


def test_the_iteration_can_be_left_early() -> None:
    for _, _ in streamed(case(steps=1000), block=10):
        break
