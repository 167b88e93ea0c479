"""Tangents of fused rollouts of rigid bodies: those of the nested step, for each member of a batch."""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.compose.functional import jvp
from simphys.rollout import Mode, rollout

from .systems import NAMES, leaves, tumbling_in_plane, unpack

STEPS = 12


def test_tangents_of_a_batch_are_those_of_the_nested_step() -> None:
    """Two members with other velocities, whose impacts come at different times; the parameters are shared."""
    model, params, state = tumbling_in_plane()
    velocity = state.velocity.data
    state = state.replace(velocity=tensor(np.stack([velocity, 0.8 * velocity]), requires_grad=True))
    inputs = leaves(params, state)
    random = np.random.default_rng(4)
    directions = [random.standard_normal(x.shape) if x.size else None for x in inputs]

    def push(mode: Mode) -> tuple[np.ndarray, ...]:
        def move(*inputs: Tensor) -> tuple[Tensor, ...]:
            return tuple(rollout(model, *unpack(*inputs), steps=STEPS, mode=mode).states.tensors())

        return jvp(move, inputs, directions)[1]

    assert len(directions) == len(NAMES)
    for found, expected in zip(push("fused"), push("nested"), strict=True):
        assert found.shape[:2] == (2, STEPS + 1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
