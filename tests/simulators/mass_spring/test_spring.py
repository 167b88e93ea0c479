"""The spring force obeys Hooke and Newton, and its adjoint is the transpose of its Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.compose.functional import jacobian
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mass_spring.model import MassSpring, Params, State
from simphys.simulators.mass_spring.spring import SpringForce

from .systems import springs_only, system


def force_of(model: MassSpring) -> Any:
    def force(*inputs: Tensor) -> Tensor:
        return SpringForce.apply(model, *inputs)

    return force


def inputs_of(params: Params, state: State) -> tuple[Tensor, ...]:
    return state.position, state.velocity, params.stiffness, params.damping, params.rest_length


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model, params, state = system(dim, nodes=4, springs=5)
    gradcheck(force_of(model), inputs_of(params, state), tolerance=1e-7)
    dot_product_test(force_of(model), inputs_of(params, state), tolerance=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_force_is_that_of_hooke_and_a_dashpot_and_equal_and_opposite_on_the_other_end(dim: int) -> None:
    model, params, state = system(dim)
    expected = np.zeros_like(state.position.data)
    for (a, b), k, c, L in zip(model.ends, *(p.data for p in inputs_of(params, state)[2:]), strict=True):
        d = state.position.data[b] - state.position.data[a]
        axis = d / np.linalg.norm(d)
        pull = k * (np.linalg.norm(d) - L) + c * axis @ (state.velocity.data[b] - state.velocity.data[a])
        expected[a] += pull * axis
        expected[b] -= pull * axis
    force = force_of(model)(*inputs_of(params, state)).data
    np.testing.assert_allclose(force, expected, rtol=0, atol=1e-13 * abs(expected).max())
    np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-13 * abs(expected).max())


def test_a_node_without_springs_has_no_spring_force() -> None:
    model, params, state = system(2, springs=0)
    assert not force_of(model)(*inputs_of(params, state)).data.any()


@pytest.mark.parametrize("rest_length", [0.0, 0.5])
def test_by_convention_only_the_linear_part_remains_at_zero_length(rest_length: float) -> None:
    """The force is k d without a dashpot: zero, with derivative k times the identity, 0 for c and L, and no NaN."""
    model, params, state = springs_only(
        [[0, 1]],
        [[0.2, 0.3]] * 2,
        stiffness=7.0,
        damping=3.0,
        rest_length=rest_length,
        velocity=[[1.0, 2.0], [0.0, 0.0]],
    )
    inputs = inputs_of(params, state)
    assert not force_of(model)(*inputs).data.any()
    for mode in ("forward", "reverse"):
        df_dx, df_dv, df_dk, df_dc, df_dL = jacobian(force_of(model), inputs, mode=mode)
        np.testing.assert_array_equal(df_dx[0, :, 1], 7 * np.eye(2))
        np.testing.assert_array_equal(df_dx[0, :, 0], -7 * np.eye(2))
        assert not any(block.any() for block in (df_dv, df_dk, df_dc, df_dL))


def test_a_spring_without_rest_length_is_linear_through_zero_length() -> None:
    """The adjoint at zero length is thus the true derivative there."""
    model, _, state = springs_only([[0, 1]], [[0.2, 0.3]] * 2)
    fixed = tensor([7.0]), tensor([0.0]), tensor([0.0])
    position = tensor(state.position.data, requires_grad=True)
    report = gradcheck(lambda x: force_of(model)(x, state.velocity, *fixed), position, tolerance=1e-9)
    assert report.worst.error < 1e-9
