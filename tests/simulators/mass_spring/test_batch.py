"""The derivative of a batch by both kinds of kernels; a batch is one node of the graph."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.rollout import rollout
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from .systems import NAMES, controls, leaves, system, unpacked

STEPS = 12


def inputs_of(model: MassSpring, params: Params, state: State, batched: tuple[str, ...], members: int) -> list[Tensor]:
    """State, parameters and control; the `batched` ones differ between members by a few per cent."""
    random = np.random.default_rng(7)
    found = []
    for name, value in zip((*NAMES, "control"), (*leaves(params, state), controls(model, STEPS)), strict=True):
        data = value.data
        if name in batched:
            data = data * random.uniform(0.95, 1.05, (members, *data.shape))
        found.append(tensor(data, requires_grad=True))
    return found


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_the_derivative_of_a_batch_is_right(integrator: str) -> None:
    """Each group has shared and batched parameters."""
    model, params, state = system(2, nodes=6, springs=7, actuators=2, integrator=integrator)
    inputs = inputs_of(model, params, state, ("stiffness", "amplitude", "mass", "gravity", "control"), 2)

    def run(*given: Tensor) -> tuple[Tensor, Tensor]:
        params, state = unpacked(*given[:-1])
        result = rollout(model, params, state, steps=STEPS, control=given[-1])
        return result.position, result.velocity

    gradcheck(run, inputs, mode="projected", tolerance=1e-6)
    dot_product_test(run, inputs, tolerance=1e-12)


@pytest.mark.gpu
def test_a_batch_is_one_node() -> None:
    model, params, state = system(2, actuators=2)
    result = rollout(model, *unpacked(*inputs_of(model, params, state, ("velocity",), 5)[:-1]), steps=2)
    assert result.final.position.shape == (5, *state.position.shape)
    assert result.final.position.grad_fn is result.final.velocity.grad_fn is not None
