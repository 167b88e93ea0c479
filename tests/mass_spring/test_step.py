"""The nested step: a graph of three sub-steps a stage, and a derivative that is right as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from simphys.autograd import Tensor
from simphys.autograd.gradcheck import dot_product_test, gradcheck
from simphys.mass_spring.step import step

from .systems import leaves, system, unpacked


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_a_step_has_the_right_derivative_by_every_parameter_and_the_state(dim: int, integrator: str) -> None:
    topology, params, state = system(dim, integrator=integrator, dt=0.1)

    def stepped(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        after = step(topology, *unpacked(*inputs))
        return after.position, after.velocity

    gradcheck(stepped, leaves(params, state), mode="projected", tolerance=1e-7)
    dot_product_test(stepped, leaves(params, state), tolerance=1e-13)


@pytest.mark.parametrize(("integrator", "stages"), [("semi_implicit_euler", 1), ("velocity_verlet", 2)])
def test_the_graph_shows_the_sub_steps(integrator: str, stages: int) -> None:
    node: Any = step(*system(2, integrator=integrator)).position.grad_fn
    for _ in range(stages):
        assert node.name() == "IntegrateBackward"
        total = node.next_functions[4][0]
        assert total.name() == "AddBackward"
        assert [parent.name() for parent, _ in total.next_functions] == ["SpringForceBackward", "ExternalForceBackward"]
        node = node.next_functions[2][0]  # where the position came from
    assert node.name().startswith("AccumulateGrad")
