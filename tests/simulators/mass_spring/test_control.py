"""Controls of actuated springs in a rollout: their effect, their derivatives, and the agreement of all modes."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.rollout import rollout

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import system, tolerance

INTEGRATORS = ["semi_implicit_euler", "velocity_verlet"]


@pytest.mark.gpu
@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_constant_control_is_another_rest_length(integrator: str) -> None:
    """The same holds for the gradients with respect to rest length and control."""
    model, params, state = system(2, nodes=8, springs=18, integrator=integrator, actuators=3)
    assert model.actuator is not None
    control = tensor(np.tile([0.5, -0.3, 0.8], (20, 1)), requires_grad=True)
    driven = np.append(control.data[0], 0)[model.actuator]  # -1 selects the last entry, 0
    factor = 1 + params.amplitude.data * driven
    steady = params.replace(rest_length=tensor(params.rest_length.data * factor, requires_grad=True))
    for params_of, control_of in [(params, control), (steady, None)]:
        after = rollout(model, params_of, state, steps=20, control=control_of).final
        (after.position.sum() + after.velocity.sum()).backward()
    assert steady.rest_length.grad is not None and params.rest_length.grad is not None
    assert params.amplitude.grad is not None and control.grad is not None
    adj_length = steady.rest_length.grad.data.astype(float)

    def same(found: Tensor, expected: np.ndarray) -> None:
        atol = tolerance(f64=1e-13, f32=1e-4) * abs(expected).max()
        np.testing.assert_allclose(found.data, expected, rtol=0, atol=atol)

    same(params.rest_length.grad, adj_length * factor)
    same(params.amplitude.grad, adj_length * params.rest_length.data * driven)
    adj_control = adj_length * params.rest_length.data * params.amplitude.data
    same(control.grad.sum(axis=0), np.array([adj_control[model.actuator == a].sum() for a in range(3)]))


def test_without_a_control_nothing_acts() -> None:
    model, params, state = system(2, actuators=3)
    at_rest = rollout(model, params, state, steps=20, control=tensor(np.zeros((20, 3)))).final
    without = rollout(model, params, state, steps=20).final
    assert_equal_but_for_rounding(at_rest.position.data, without.position.data, ulps=20 * 16)
    (without.position.sum() + without.velocity.sum()).backward()
    assert params.amplitude.grad is not None and not params.amplitude.grad.data.any()
