"""Tangents of a rollout of billiards are those of its steps; its motion is right in either precision."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.compose.functional import jvp
from simphys.rollout import Mode, rollout

from .contract import STEPS, pair
from .tables import busy, leaves, table, unpack


def test_fused_tangents_are_those_of_the_nested_step() -> None:
    """In a batch of two tables, whose impacts come at different times."""
    model, params, state, _ = pair()
    names = tuple(each for each in (*state.names(), *params.names()))
    inputs = leaves(params, state)
    random = np.random.default_rng(2)
    directions = [random.standard_normal(x.shape) for x in inputs]

    def push(mode: Mode) -> dict[str, tuple[np.ndarray, ...]]:
        def move(*inputs: Tensor) -> tuple[Tensor, ...]:
            return tuple(rollout(model, *unpack(*inputs), steps=STEPS, mode=mode).states.tensors())

        one = len(inputs) * [None]
        return {
            name: jvp(move, inputs, [*one[:k], direction, *one[k + 1 :]])[1]
            for k, (name, direction) in enumerate(zip(names, directions, strict=True))
        }

    nested = push("nested")
    for name, fused in push("fused").items():
        for found, expected in zip(fused, nested[name], strict=True):
            size = np.abs(expected).max()
            assert size > 0
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * size, err_msg=name)


def test_a_memory_budget_changes_no_bit_of_a_tangent() -> None:
    model, params, state = busy()

    def push(memory: int | str) -> np.ndarray:
        def move(x: Tensor) -> Tensor:
            found = rollout(model, params, state.replace(velocity=x), steps=STEPS, keep="final", memory=memory)
            assert found.plan is not None and (memory == "all" or found.plan.blocks > 1)
            return found.final.position

        return jvp(move, state.velocity, (np.ones(state.velocity.shape),))[1][0]

    plan = rollout(model, params, state, steps=STEPS, keep="final").plan
    assert plan is not None
    np.testing.assert_array_equal(push(int(0.98 * plan.predicted_bytes)), push("all"))


@pytest.mark.gpu
def test_a_motion_is_the_same_in_either_precision() -> None:
    """Two balls collide and one of them hits a cushion; the final state is known."""
    case = table([[0.2, 0.5], [0.5, 0.5]], [[0.5, 0.0], [0.0, 0.0]], restitution=1.0, corners=([0.0, 0.0], [1.0, 1.0]))
    model, params, state = case
    final = rollout(model, params, state, steps=20, keep="final").final
    # They collide after 0.4 s. Then ball 1 travels 0.8 m: 0.45 m to the cushion, from which it returns at 0.35 m/s.
    np.testing.assert_allclose(final.position.data, [[0.4, 0.5], [0.95 - 0.7 * 0.35, 0.5]], atol=2e-6)
    final.position[1, 0].backward()
    assert state.position.grad is not None
    np.testing.assert_allclose(state.position.grad.data[:, 0], [-0.7, 0.0], atol=2e-5)
