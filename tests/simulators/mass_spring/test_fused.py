"""Kernel variants without zero terms and unwanted adjoints give the same derivatives; each is compiled on its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.rollout import rollout

from .systems import NAMES, fresh, gradients, leaves, system, weights

WANTED = {
    "stiffness": ("stiffness",),
    "damping": ("damping",),
    "rest length": ("rest_length",),
    "nodes": ("mass", "drag", "gravity", "ground_height", "ground_stiffness", "ground_friction"),
    "state": ("position", "velocity"),
    "mass and velocity": ("mass", "velocity"),
}
SYSTEMS: dict[str, dict[str, Any]] = {
    "all terms": {},
    "no dashpots, no ground": {"damping": 0.0, "ground": 0.0},
}


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize("case", SYSTEMS)
@pytest.mark.parametrize("wanted", WANTED)
def test_a_gradient_wanted_alone_is_the_one_wanted_among_all(case: str, wanted: str) -> None:
    model, given_params, given_state = system(2, **SYSTEMS[case])

    def gradient(names: tuple[str, ...]) -> dict[str, np.ndarray]:
        params, state = fresh(leaves(given_params, given_state), names)
        final = rollout(model, params, state, steps=20).final
        ((weights(final.position.shape) * final.position).sum() + final.velocity.sum()).backward()
        assert all(
            (x.grad is not None) == (name in names) for name, x in zip(NAMES, leaves(params, state), strict=True)
        )
        return gradients(params, state)

    alone, together = gradient(WANTED[wanted]), gradient(NAMES)
    for name in WANTED[wanted]:
        np.testing.assert_allclose(alone[name], together[name], rtol=0, atol=1e-13 * abs(together[name]).max())


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
