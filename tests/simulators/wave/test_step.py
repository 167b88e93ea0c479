"""The nested step: the inputs and outputs of each sub-step."""

from __future__ import annotations

import numpy as np

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.wave.curvature import compute_curvature
from simphys.simulators.wave.model import Params, State
from simphys.simulators.wave.receive import receive
from simphys.simulators.wave.source import drive
from simphys.simulators.wave.step import step

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import DX, PLANE, TORUS, case


def test_it_is_the_algorithm() -> None:
    _, params, state, control, _ = case(PLANE, 1)
    assert control is not None
    strength = tensor(control.data[0])
    k, slope_memory, curvature_memory = compute_curvature(
        PLANE, state.height, state.slope_memory, state.curvature_memory
    )
    total = k.data + drive(PLANE, strength, state.source_position).data
    height = 2 * state.height.data - state.previous.data + (params.speed.data * PLANE.dt / DX) ** 2 * total
    new = step(PLANE, params, state, strength)
    assert_equal_but_for_rounding(new.height.data, height, ulps=64)
    np.testing.assert_array_equal(new.previous.data, state.height.data)
    np.testing.assert_array_equal(new.slope_memory.data, slope_memory.data)
    np.testing.assert_array_equal(new.curvature_memory.data, curvature_memory.data)
    moved = state.source_position.data + PLANE.dt * params.source_velocity.data
    assert_equal_but_for_rounding(new.source_position.data, moved, ulps=4)
    received = receive(PLANE, new.height, params.receiver_position)
    np.testing.assert_array_equal(new.received.data, received.data)


def test_without_a_control_nothing_drives() -> None:
    _, params, state, *_ = case(PLANE, 1)
    silent = step(PLANE, params, state, tensor(np.zeros(2)))
    np.testing.assert_array_equal(step(PLANE, params, state).height.data, silent.height.data)


def test_its_derivative_is_right() -> None:
    """Check the derivative of a step by all inputs along random directions."""
    given = case(TORUS, 1)
    assert given.control is not None
    names = [*State.names()[:2], *State.names()[4:]]

    def new(*inputs: object) -> tuple[object, ...]:
        made = dict(zip(names, inputs, strict=False))
        params = Params(*inputs[len(names) : -1])  # type: ignore[arg-type]
        state = given.state.replace(**made)  # type: ignore[arg-type]
        after = step(TORUS, params, state, inputs[-1])  # type: ignore[arg-type]
        return tuple([getattr(after, name) for name in names])

    inputs = [getattr(given.state, name) for name in names], given.params.tensors(), [tensor(given.control.data[0])]
    leaves = [tensor(x.data, requires_grad=True) for group in inputs for x in group]
    gradcheck(new, leaves, mode="projected", repeats=1)  # type: ignore[arg-type]
