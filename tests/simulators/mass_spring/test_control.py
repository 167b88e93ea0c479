"""Controls of actuated springs in a rollout: their effect, their derivatives, and the agreement of all modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout, run
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import controls, leaves, system, tolerance, unpacked

INTEGRATORS = ["semi_implicit_euler", "velocity_verlet"]


def final_of(model: MassSpring, steps: int) -> Any:
    """Function that maps state, parameters and control to the final state."""

    def final(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        after = rollout(model, *unpacked(*inputs[:-1]), steps=steps, control=inputs[-1], keep="final").final
        return after.position, after.velocity

    return final


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize(
    ("dim", "springs", "integrator"),
    [(1, 7, "velocity_verlet"), *[(2, 18, each) for each in INTEGRATORS], (3, 7, INTEGRATORS[0])],
)
def test_the_derivative_of_a_hundred_controlled_steps_is_right(dim: int, springs: int, integrator: str) -> None:
    model, params, state = system(dim, integrator=integrator, springs=springs, actuators=3, dt=0.005)
    inputs = (*leaves(params, state), controls(model, 100))
    gradcheck(final_of(model, 100), inputs, mode="projected", tolerance=1e-6)
    dot_product_test(final_of(model, 100), inputs, tolerance=1e-12)


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("wanted", ["rest_length", "amplitude", "control"])
def test_a_gradient_wanted_alone_is_the_one_wanted_among_all(wanted: str) -> None:
    model, params, state = system(2, actuators=3)

    def gradient(names: tuple[str, ...]) -> np.ndarray:
        new = {name: tensor(x.data, requires_grad=name in names) for name, x in vars(params).items()}
        control = tensor(controls(model, 20).data, requires_grad="control" in names)
        fixed = State(*[x.detach() for x in state.tensors()])
        after = rollout(model, Params(**new), fixed, steps=20, control=control).final
        (after.position.sum() + after.velocity.sum()).backward()
        grad = (new | {"control": control})[wanted].grad
        assert grad is not None
        return grad.data

    together = gradient(("rest_length", "amplitude", "control", "stiffness"))
    np.testing.assert_allclose(gradient((wanted,)), together, rtol=0, atol=1e-13 * abs(together).max())


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


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_checks_for_a_blow_up_along_the_way_change_no_bit(integrator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each segment is a new launch, which must continue with the control of its own first step."""
    model, params, state = system(2, integrator=integrator, springs=18, actuators=3, dt=0.005)
    inputs = (*leaves(params, state), controls(model, 100))
    seldom = final_of(model, 100)(*inputs)
    monkeypatch.setattr(run, "FIRST_NUMBERS", 0)
    monkeypatch.setattr(run, "FIRST_CHECK", 7)
    often = final_of(model, 100)(*inputs)
    for one, other in zip(seldom, often, strict=True):
        np.testing.assert_array_equal(one.data, other.data)
