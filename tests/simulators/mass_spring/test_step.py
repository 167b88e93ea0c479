"""The nested step: its graph has three sub-steps per stage, and its derivative is right as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mass_spring.step import step

from .systems import controls, leaves, system, unpacked


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_a_step_has_the_right_derivative_by_every_parameter_and_the_state(dim: int, integrator: str) -> None:
    model, params, state = system(dim, integrator=integrator, dt=0.1)

    def advance(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        after = step(model, *unpacked(*inputs))
        return after.position, after.velocity

    gradcheck(advance, leaves(params, state), mode="projected", tolerance=1e-7)
    dot_product_test(advance, leaves(params, state), tolerance=1e-13)


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_the_graph_shows_the_sub_steps(integrator: str) -> None:
    node: Any = step(*system(2, integrator=integrator)).position.grad_fn
    assert node.name() == "DriftBackward"
    position, kick = [parent for parent, _ in node.next_functions]
    assert kick.name() == "KickBackward"
    _, total, factors, _ = [parent for parent, _ in kick.next_functions]
    assert total.name() == "AddBackward" and factors.name() == "KickFactorsBackward"
    forces, weight = [parent for parent, _ in total.next_functions]
    contact = "NormalForceBackward" if integrator == "velocity_verlet" else "GroundForceBackward"
    assert [parent.name() for parent, _ in forces.next_functions] == ["SpringForceBackward", contact]
    assert weight.name() == "WeightBackward"
    assert position.name().startswith("AccumulateGrad")


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_a_controlled_step_has_the_right_derivative(integrator: str) -> None:
    model, params, state = system(2, integrator=integrator, actuators=2, dt=0.1)
    control = controls(model, 1)[0].detach().requires_grad_()

    def advance(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        after = step(model, *unpacked(*inputs[:-1]), inputs[-1])
        return after.position, after.velocity

    gradcheck(advance, (*leaves(params, state), control), mode="projected", tolerance=1e-7)
    dot_product_test(advance, (*leaves(params, state), control), tolerance=1e-13)


def test_the_control_is_the_same_for_all_stages_of_a_step() -> None:
    """It is a single node of the graph, which drives the springs of both stages."""
    model, params, state = system(2, integrator="velocity_verlet", actuators=2)
    rub: Any = step(model, params, state, controls(model, 1)[0]).velocity.grad_fn
    kick, drivers = rub.next_functions[1][0], []
    for _ in range(2):
        springs = kick.next_functions[1][0].next_functions[0][0].next_functions[0][0]
        drivers.append(springs.next_functions[4][0])
        kick = kick.next_functions[0][0]
    assert drivers[0] is drivers[1] and drivers[0].name() == "ActuateBackward"
