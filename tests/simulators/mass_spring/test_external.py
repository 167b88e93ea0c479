"""Gravity and the penalty ground: their forces and adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.compose.functional import jacobian
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mass_spring.external import GroundForce, NormalForce, Rub, Weight
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import springs_only, system


def force_of(model: MassSpring) -> Any:
    def force(x: Tensor, v: Tensor, m: Tensor, g: Tensor, *ground: Tensor) -> Tensor:
        return Weight.apply(model, m, g) + GroundForce.apply(model, x, v, *ground)

    return force


def inputs_of(params: Params, state: State) -> tuple[Tensor, ...]:
    ground = params.ground_height, params.ground_stiffness, params.ground_friction
    return state.position, state.velocity, params.mass, params.gravity, *ground


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_element_of_the_jacobian_is_right_above_and_below_the_ground(dim: int) -> None:
    model, params, state = system(dim)
    gradcheck(force_of(model), inputs_of(params, state), tolerance=1e-7)
    dot_product_test(force_of(model), inputs_of(params, state), tolerance=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_ground_pushes_up_by_penetration_and_rubs_against_the_tangential_velocity(dim: int) -> None:
    model, params, state = system(dim)
    normal = 40.0 * np.maximum(0.1 - state.position.data[:, -1], 0)
    assert 0 < np.count_nonzero(normal) < model.nodes
    expected = params.mass.data[:, None] * params.gravity.data - 0.2 * normal[:, None] * state.velocity.data
    expected[:, -1] = params.mass.data * params.gravity.data[-1] + normal
    found = force_of(model)(*inputs_of(params, state)).data
    assert_equal_but_for_rounding(found, expected)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_by_convention_a_node_exactly_at_the_ground_has_no_contact_derivative(mode: Any) -> None:
    model, params, state = springs_only(
        [], [[0.0, 0.3]], velocity=[[1.0, 0.0]], ground_height=0.3, ground_stiffness=50.0, ground_friction=0.5
    )
    assert not force_of(model)(*inputs_of(params, state)).data.any()
    df_dx, df_dv, _, _, *df_dground = jacobian(force_of(model), inputs_of(params, state), mode=mode)
    assert not any(block.any() for block in (df_dx, df_dv, *df_dground))


def test_without_stiffness_there_is_no_ground() -> None:
    model, params, state = system(2, ground=0.0)
    weight = params.mass.data[:, None] * params.gravity.data
    np.testing.assert_array_equal(force_of(model)(*inputs_of(params, state)).data, weight)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_friction_for_a_time_and_the_normal_force_have_the_right_jacobians(dim: int) -> None:
    model, params, state = system(dim)
    x, v, m, _, *ground = inputs_of(params, state)

    def rub(*inputs: Tensor) -> Tensor:
        rubbed: Tensor = Rub.apply(model, *inputs, 0.3)
        return rubbed

    def push(*inputs: Tensor) -> Tensor:
        normal: Tensor = NormalForce.apply(model, *inputs)
        return normal

    for function, inputs in ((rub, (x, v, m, *ground)), (push, (x, *ground[:2]))):
        gradcheck(function, inputs, tolerance=1e-7)
        dot_product_test(function, inputs, tolerance=1e-13)


def test_friction_for_a_time_is_the_exact_slowing_down_at_a_depth() -> None:
    model, params, state = system(3)
    x, v, m, _, *ground = inputs_of(params, state)
    normal = 40.0 * np.maximum(0.1 - x.data[:, -1:], 0)
    slower = np.exp(-0.2 * normal / m.data[:, None] * 0.3) * v.data
    slower[:, -1] = v.data[:, -1]
    assert_equal_but_for_rounding(Rub.apply(model, x, v, m, *ground, 0.3).data, slower)
