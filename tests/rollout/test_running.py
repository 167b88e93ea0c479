"""Running sums: a loss of every state without memory for the states."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, ops, tensor
from simphys.autograd.errors import InputError
from simphys.rollout import Trajectory, inputs

from .cases import assert_bitwise, assert_rounding, case, energy, gradient


def of_running(trajectory: Trajectory) -> Tensor:
    assert trajectory.running is not None
    return ops.exp(0.1 * trajectory.running)


def of_kept(trajectory: Trajectory) -> Tensor:
    """Compute the same loss from a trajectory that keeps all states."""
    later = slice(1, None) if trajectory.angle.ndim == 2 else (slice(None), slice(1, None))
    states = trajectory.states.replace(angle=trajectory.angle[later], rate=trajectory.rate[later])
    return ops.exp(0.1 * energy(states, trajectory.steps[1:]))


@pytest.mark.parametrize("batch", [None, 3])
def test_it_is_the_sum_over_all_states_but_the_start(batch: int | None) -> None:
    expected = gradient(case(batch=batch, keep="all"), loss=of_kept)
    for mode in ("fused", "step", "nested"):
        found = gradient(case(batch=batch, keep="final", running=energy), loss=of_running, mode=mode)
        assert_rounding(found, expected)


@pytest.mark.parametrize("piece", [1, 100, 1000, inputs.PIECE])
@pytest.mark.parametrize("batch", [None, 3])
def test_it_is_the_same_in_every_bit_for_every_plan(
    piece: int, batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "PIECE", piece)
    given = case(steps=30, batch=batch, keep="final", running=energy)
    expected = gradient(given, loss=of_running)
    for memory in given.budgets().values():
        assert_bitwise(gradient(given, loss=of_running, memory=memory), expected)


def test_it_is_evaluated_piece_by_piece_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PIECE", 48 * 5)  # five states
    asked: list[list[int]] = []

    def noted(states: Any, steps: np.ndarray) -> Tensor:
        assert states.angle.shape == (len(steps), 3)
        asked.append(steps.tolist())
        return energy(states, steps)

    given = case(steps=12, keep="final", running=noted)
    memory = given.budgets()["segments"]
    asked.clear()
    trajectory = given.rollout(memory=memory)
    assert asked == [[1], [1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12]]  # the first is a check
    asked.clear()
    of_running(trajectory).backward()
    assert sorted(itertools.chain(*asked)) == list(range(1, 13))


def test_it_may_depend_on_one_field_or_on_none() -> None:
    of_one = gradient(case(keep="final", running=lambda states, steps: states.rate.sum()), loss=of_running)
    assert all(np.any(values) for values in of_one)

    def constant(states: Any, steps: np.ndarray) -> Tensor:
        return tensor(float(len(steps)))

    given = case(keep="final", running=constant)
    trajectory = given.rollout()
    assert trajectory.running is not None and trajectory.running.item() == 12
    (trajectory.running + trajectory.final.angle.sum()).backward()
    assert given.params.stiffness.grad is not None and given.params.stiffness.grad.numpy().any()


def test_a_loss_of_other_results_may_leave_it_out() -> None:
    expected = gradient(case(keep="final"), loss=lambda trajectory: trajectory.final.angle.sum())
    given = case(keep="final", running=energy)
    assert_bitwise(gradient(given, loss=lambda trajectory: trajectory.final.angle.sum()), expected)


@pytest.mark.parametrize(
    ("running", "found"),
    [
        (lambda states, steps: states.angle, r"shape \(1, 3\)"),
        (lambda states, steps: 1.5, "1.5"),
        (lambda states, steps: None, "None"),
    ],
)
def test_a_result_that_is_no_scalar_is_refused(running: Any, found: str) -> None:
    with pytest.raises(InputError, match=f"rollout, running: it returns a scalar Tensor; found {found}"):
        case(running=running).rollout()


def test_a_gradient_that_would_be_missed_is_refused() -> None:
    target = tensor(np.zeros(3), requires_grad=True)

    def from_target(states: Any, steps: np.ndarray) -> Tensor:
        away = states.angle - ops.sin(target)
        return (away * away).sum()

    with pytest.raises(InputError, match="it depends on the states alone; found a Tensor that requires a gradient"):
        case(running=from_target).rollout()
    target.requires_grad_(False)
    case(running=from_target).rollout()
