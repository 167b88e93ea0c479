"""Inputs of a controller: positions relative to the centre, velocities, and the goal."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mass_spring.sense import Sense

from .systems import system


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_its_derivative_is_right(dim: int) -> None:
    model, _, state = system(dim, actuators=2, controlled=True)
    inputs = (state.position, state.velocity)
    assert gradcheck(lambda x, v: Sense.apply(model, x, v), inputs, tolerance=1e-9).outcome == "passed"
    dot_product_test(lambda x, v: Sense.apply(model, x, v), inputs, tolerance=1e-12)


def test_rows_hold_positions_velocities_and_the_goal() -> None:
    model, _, state = system(2, actuators=2, controlled=True)
    x, v = state.position.data, state.velocity.data
    assert model.controller is not None
    row = Sense.apply(model, state.position, state.velocity).data
    nodes = row[:-2].reshape(-1, 2, 2)
    np.testing.assert_allclose(nodes[:, 0], 0.7 * (x - x.mean(axis=0)), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(nodes[:, 1], 0.7 * v, rtol=1e-12)
    np.testing.assert_allclose(row[-2:], model.controller.goal - x.mean(axis=0), rtol=1e-12)
