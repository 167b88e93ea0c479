"""The rollout: its results, its adjoint, its node of the graph, and the smallest systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.rollout import rollout
from simphys.simulators.mass_spring.model import MassSpring, State
from simphys.simulators.mass_spring.step import step

from .reference import simulate
from .systems import NAMES, fresh, gradients, leaves, system, unpacked, weights

INTEGRATORS = ["semi_implicit_euler", "velocity_verlet"]
SMALL: dict[str, dict[str, Any]] = {
    "no springs": {"springs": 0},
    "one free node": {"nodes": 1, "springs": 0, "free": True},
    "no pinned node": {"free": True},
    "no dashpots": {"damping": 0.0},
    "no ground": {"ground": 0.0},
    "nothing but springs": {"damping": 0.0, "ground": 0.0, "free": True},
}


def final_of(model: MassSpring, steps: int) -> Any:
    def final(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        after = rollout(model, *unpacked(*inputs), steps=steps).final
        return after.position, after.velocity

    return final


@pytest.mark.parametrize(
    ("integrator", "case"),
    [*[(INTEGRATORS[0], case) for case in SMALL], *[(INTEGRATORS[1], case) for case in ("no springs", "no dashpots")]],
)
def test_degenerate_systems_move_and_differentiate_like_any_other(integrator: str, case: str) -> None:
    model, params, state = system(2, integrator=integrator, **SMALL[case])
    result = rollout(model, params, state, steps=25)
    values = {name: x.data for name, x in zip(NAMES, leaves(params, state), strict=True)}
    for found, expected in zip((result.position, result.velocity), simulate(model, values, 25), strict=True):
        np.testing.assert_allclose(found.data, expected, rtol=0, atol=1e-12)
    gradcheck(final_of(model, 25), leaves(params, state), mode="projected", tolerance=1e-6)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("dense", [False, True], ids=["final loss", "loss along time"])
def test_the_stored_adjoint_is_the_gradient_of_the_state_at_every_step(integrator: str, dense: bool) -> None:
    """It equals the `.grad` of each state after nested steps."""
    steps = 6
    model, params, state = system(2, integrator=integrator)
    w = weights((2, steps + 1, *state.position.shape))

    nested_params, start = fresh(leaves(params, state))
    states = [start]
    for _ in range(steps):
        new = step(model, nested_params, states[-1])
        states.append(State(1.0 * new.position, 1.0 * new.velocity))  # apart from their uses within the step
    for each in states:
        each.position.retain_grad()
        each.velocity.retain_grad()
    used = list(enumerate(states)) if dense else [(steps, states[-1])]
    sum(((w[0, t] * s.position).sum() + (w[1, t] * s.velocity).sum() for t, s in used), start=weights(())).backward()

    result = rollout(model, params, state, steps=steps, keep_adjoint=True)
    if dense:
        ((w[0] * result.position).sum() + (w[1] * result.velocity).sum()).backward()
    else:
        ((w[0, steps] * result.final.position).sum() + (w[1, steps] * result.final.velocity).sum()).backward()

    assert result.adjoint is not None
    np.testing.assert_array_equal(result.adjoint.position[0], gradients(params, state)["position"])
    np.testing.assert_array_equal(result.adjoint.velocity[0], gradients(params, state)["velocity"])
    for field in ("position", "velocity"):
        kept = getattr(result.adjoint, field)
        retained = np.array([getattr(s, field).grad.data for s in states])
        np.testing.assert_allclose(kept, retained, rtol=0, atol=1e-13 * abs(retained).max())
