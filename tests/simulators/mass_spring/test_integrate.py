"""One stage of kick and drift: exact drag, pinned nodes, and its adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.numerics.splitting import Stage
from simphys.simulators.mass_spring.integrate import Damp, Drift, Kick, KickFactors, Predict
from simphys.simulators.mass_spring.model import MassSpring

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import system, weights


def integrate(model: MassSpring, stage: Stage) -> Any:
    def stage_of(x: Tensor, v: Tensor, f: Tensor, m: Tensor, drag: Tensor) -> tuple[Tensor, Tensor]:
        decay, impulse = KickFactors.apply(model, drag, m, stage.kick, stage.damp, model.free)
        v = Kick.apply(model, v, f, decay, impulse)
        return Drift.apply(model, x, v, stage.drift), v

    return stage_of


def inputs_of(dim: int) -> tuple[MassSpring, tuple[Tensor, ...]]:
    model, params, state = system(dim)
    force = weights(state.position.shape).requires_grad_()
    return model, (state.position, state.velocity, force, params.mass, params.drag)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("stage", [Stage(0.3, 0.0, 0.3), Stage(0.15, 0.0, 0.3), Stage(0.15, 0.15, 0.0)], ids=str)
def test_every_element_of_the_jacobian_is_right(dim: int, stage: Stage) -> None:
    model, inputs = inputs_of(dim)
    gradcheck(integrate(model, stage), inputs, tolerance=1e-7)
    dot_product_test(integrate(model, stage), inputs, tolerance=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_predicted_velocity_is_that_after_twice_the_kick(dim: int) -> None:
    model, (_, v, f, m, drag) = inputs_of(dim)

    def predict(v: Tensor, f: Tensor, m: Tensor, drag: Tensor) -> Tensor:
        decay, impulse = KickFactors.apply(model, drag, m, 0.15, 0.0, model.free)
        return Predict.apply(model, Damp.apply(model, v, decay), Kick.apply(model, v, f, decay, impulse))

    expected = np.exp(-0.15 * drag.data)[:, None] * v.data + 0.3 * f.data / m.data[:, None]
    expected[model.pinned] = 0
    assert_equal_but_for_rounding(predict(v, f, m, drag).data, expected, ulps=16)
    gradcheck(predict, (v, f, m, drag), tolerance=1e-7)
    dot_product_test(predict, (v, f, m, drag), tolerance=1e-13)


def test_the_velocity_is_kicked_and_the_position_drifts_by_the_new_velocity() -> None:
    model, inputs = inputs_of(2)
    x, v, f, m, drag = (value.data for value in inputs)
    x_new, v_new = integrate(model, Stage(0.3, 0.0, 0.2))(*inputs)
    expected = np.exp(-0.3 * drag)[:, None] * v + 0.3 * f / m[:, None]
    expected[model.pinned] = 0
    assert_equal_but_for_rounding(v_new.data, expected)
    assert_equal_but_for_rounding(x_new.data, x + 0.2 * expected)


def test_no_gradient_passes_through_a_pinned_node_but_that_of_its_position() -> None:
    model, inputs = inputs_of(2)
    x_new, v_new = integrate(model, Stage(0.3, 0.0, 0.3))(*inputs)
    (x_new * weights(x_new.shape) + v_new).sum().backward()
    grads = [value.grad.data[model.pinned] for value in inputs if value.grad is not None]
    assert len(grads) == 5
    assert grads[0].all() and not any(grad.any() for grad in grads[1:])
