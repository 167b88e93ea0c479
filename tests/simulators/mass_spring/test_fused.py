"""Kernel variants without zero terms and unwanted adjoints give the same derivatives; each is compiled on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.rollout import Mode, rollout

from .systems import fresh, gradients, leaves, system, tolerance, weights


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("absent", ["damping", "ground_stiffness"])
def test_a_term_that_is_zero_has_a_gradient_all_the_same(absent: str) -> None:
    """The vanishing term is compiled only because its gradient is wanted."""
    model, params, state = system(2, damping=0.0, ground=0.0)

    def final(value: Tensor) -> tuple[Tensor, Tensor]:
        after = rollout(model, params.replace(**{absent: value}), state, steps=20).final
        return after.position, after.velocity

    report = gradcheck(final, getattr(params, absent), mode="projected", tolerance=1e-6)
    assert report.worst.adjoint != 0


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("absent", [("damping",), ("damping", "ground_friction"), ()])
def test_velocity_verlet_evaluates_forces_of_position_alone_once_a_step(absent: tuple[str, ...]) -> None:
    """Springs without dashpots begin a step with the forces that the step before ended with."""
    model, params, state = system(2, nodes=12, springs=18, integrator="velocity_verlet")
    params = params.replace(**{name: tensor(0 * getattr(params, name).data) for name in absent})
    wanted = ("position", "velocity", "stiffness", "rest_length", "mass", "drag", "gravity")

    def run(mode: Mode) -> tuple[Any, dict[str, np.ndarray]]:
        moved = fresh(leaves(params, state), wanted)
        after = rollout(model, *moved, steps=20, mode=mode).final
        (after.position * weights(after.position.shape) + after.velocity).sum().backward()
        return after, gradients(*moved)

    (fused, fused_grads), (nested, nested_grads) = run("fused"), run("nested")
    for found, expected in zip(fused.tensors(), nested.tensors(), strict=True):
        np.testing.assert_allclose(found.data, expected.data, rtol=0, atol=tolerance(1e-13, 1e-5))
    for name in wanted:
        size = abs(nested_grads[name]).max()
        np.testing.assert_allclose(fused_grads[name], nested_grads[name], rtol=0, atol=tolerance(1e-12, 1e-4) * size)
    engine: Any = model.engine(params.arrays(), None, batch=1, needs=frozenset(wanted[2:]), deterministic=False)
    assert [each.name for each in engine.make_plan().carried] == (["spring_force"] if absent else [])
