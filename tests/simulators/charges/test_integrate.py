"""One stage of kick and drift, and its adjoint."""

from __future__ import annotations

from typing import Any

import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics.splitting import Stage
from simphys.simulators.charges import Charges
from simphys.simulators.charges.motion import Drift, Kick

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import system, weights


def integrate(model: Charges, stage: Stage) -> Any:
    def stage_of(position: Tensor, velocity: Tensor, force: Tensor, mass: Tensor) -> tuple[Tensor, Tensor]:
        velocity = Kick.apply(model, velocity, force, mass, stage.kick)
        return Drift.apply(model, position, velocity, stage.drift), velocity

    return stage_of


def inputs_of(dim: int) -> tuple[Charges, tuple[Tensor, ...]]:
    model, params, state = system(dim)
    return model, (*state.tensors(), weights(state.position.shape).requires_grad_(), params.mass)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("stage", [Stage(0.3, 0.0, 0.3), Stage(0.15, 0.0, 0.3), Stage(0.15, 0.15, 0.0)], ids=str)
def test_every_element_of_the_jacobian_is_right(dim: int, stage: Stage) -> None:
    model, inputs = inputs_of(dim)
    gradcheck(integrate(model, stage), inputs, tolerance=1e-7)
    dot_product_test(integrate(model, stage), inputs, tolerance=1e-13)


def test_the_velocity_is_kicked_and_the_position_drifts_by_the_new_velocity() -> None:
    model, inputs = inputs_of(2)
    x, v, f, m = (value.data for value in inputs)
    x_new, v_new = integrate(model, Stage(0.3, 0.0, 0.2))(*inputs)
    assert_equal_but_for_rounding(v_new.data, v + 0.3 * f / m[:, None])
    assert_equal_but_for_rounding(x_new.data, x + 0.2 * v_new.data)
