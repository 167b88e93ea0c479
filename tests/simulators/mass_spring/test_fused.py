"""Kernel variants without zero terms and unwanted adjoints give the same derivatives; each is compiled on its own."""

from __future__ import annotations

import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.rollout import rollout

from .systems import system


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
