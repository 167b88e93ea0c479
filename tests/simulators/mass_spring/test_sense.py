"""Inputs of a controller: positions relative to the centre, velocities, and the goal."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mass_spring.model import State
from simphys.simulators.mass_spring.step import sense

from .systems import controls, system


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_its_derivative_is_right(dim: int) -> None:
    model, _, state = system(dim, actuators=2, controlled=True)
    inputs = (state.position, state.velocity, controls(model, 1)[0].detach().requires_grad_())

    def row(x: Tensor, v: Tensor, pattern: Tensor) -> Tensor:
        found: Tensor = sense(model, State(x, v), pattern)
        return found

    assert gradcheck(row, inputs, tolerance=1e-9).outcome == "passed"
    dot_product_test(row, inputs, tolerance=1e-12)


def test_rows_hold_the_pattern_positions_velocities_and_the_goal() -> None:
    model, _, state = system(2, actuators=2, controlled=True)
    x, v = state.position.data, state.velocity.data
    assert model.controller is not None
    pattern = controls(model, 1)[0]
    row = sense(model, state, pattern).data
    np.testing.assert_array_equal(row[:3], pattern.data)
    nodes = row[3:-2].reshape(-1, 2, 2)
    np.testing.assert_allclose(nodes[:, 0], 0.7 * (x - x.mean(axis=0)), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(nodes[:, 1], 0.7 * v, rtol=1e-12)
    np.testing.assert_allclose(row[-2:], model.controller.goal - x.mean(axis=0), rtol=1e-12)
