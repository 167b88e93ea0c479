"""A control lengthens the springs of its actuator by their amplitudes, and no others."""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mass_spring.actuate import Actuate
from simphys.simulators.mass_spring.model import MassSpring

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import controls, system


def case() -> tuple[MassSpring, tuple[Tensor, ...]]:
    model, params, _ = system(2, springs=7, actuators=3)
    return model, (params.rest_length, params.amplitude, controls(model, 1)[0].detach().requires_grad_())


def test_every_element_of_the_jacobian_is_right() -> None:
    model, inputs = case()
    gradcheck(lambda *x: Actuate.apply(model, *x), inputs, tolerance=1e-7)
    dot_product_test(lambda *x: Actuate.apply(model, *x), inputs, tolerance=1e-13)


def test_a_control_acts_on_the_springs_of_its_actuator_alone() -> None:
    model, (rest_length, amplitude, control) = case()
    assert model.actuator is not None
    actuated = Actuate.apply(model, rest_length, amplitude, control)
    for s, actuator in enumerate(model.actuator):
        factor = 1.0 if actuator < 0 else 1 + amplitude.data[s] * control.data[actuator]
        assert_equal_but_for_rounding(actuated.data[s], rest_length.data[s] * factor)
    actuated.sum().backward()
    assert amplitude.grad is not None
    np.testing.assert_array_equal(amplitude.grad.data != 0, model.actuator >= 0)
