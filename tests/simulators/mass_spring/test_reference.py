"""The rollout and its gradient agree with an independent simulation, on every device and in either precision."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd.ops import stack
from simphys.rollout import rollout
from simphys.simulators.mass_spring.model import MassSpring, Params, State
from simphys.simulators.mass_spring.step import step

from .reference import Inputs, gradient, simulate
from .systems import NAMES, gradients, leaves, system, tolerance, weights

STEPS = 40


def nested(model: MassSpring, params: Params, state: State) -> list[State]:
    """The states of STEPS nested steps."""
    states = [state]
    for _ in range(STEPS):
        states.append(step(model, params, states[-1]))
    return states


@pytest.mark.parametrize("integrator", [pytest.param("semi_implicit_euler", marks=pytest.mark.gpu), "velocity_verlet"])
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("way", ["rollout", "nested"])
def test_states_and_gradients_are_those_of_plain_numpy_and_central_differences(
    way: str, dim: int, integrator: str
) -> None:
    model, params, state = system(dim, integrator=integrator, nodes=6, springs=18 if dim == 2 else 7, seed=dim)
    inputs = {name: x.data.astype(float) for name, x in zip(NAMES, leaves(params, state), strict=True)}
    along, at_end = weights((STEPS + 1, *state.position.shape)), weights(state.position.shape, seed=2)

    def loss(values: Inputs) -> float:
        x, v = simulate(model, values, STEPS)
        return float(np.sum(along.data * x) + np.sum(at_end.data * v[-1]))

    if way == "rollout":
        result = rollout(model, params, state, steps=STEPS)
        position, velocity = result.position, result.final.velocity
    else:
        states = nested(model, params, state)
        position, velocity = stack([s.position for s in states]), states[-1].velocity
    x, v = simulate(model, inputs, STEPS)
    close(position.data, x, tolerance(f64=1e-13, f32=1e-5))
    close(velocity.data, v[-1], tolerance(f64=1e-13, f32=1e-5))
    ((along * position).sum() + (at_end * velocity).sum()).backward()
    for name, expected in gradient(loss, inputs).items():
        close(gradients(params, state)[name], expected, tolerance(f64=1e-7, f32=1e-4), name)


def close(found: np.ndarray, expected: np.ndarray, relative: float, name: str = "") -> None:
    """Errors are relative to the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * abs(expected).max(initial=0), err_msg=name)


@pytest.mark.gpu
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_system_without_springs_needs_no_special_case(nodes: int) -> None:
    model, params, state = system(2, nodes=nodes, springs=0, free=True)
    inputs = {name: x.data.astype(float) for name, x in zip(NAMES, leaves(params, state), strict=True)}
    result = rollout(model, params, state, steps=STEPS, keep_adjoint=True)
    expected = simulate(model, inputs, STEPS)[0]
    close(result.position.data, expected, tolerance(f64=1e-13, f32=1e-5))
    result.final.position.sum().backward()
    assert gradients(params, state)["stiffness"].shape == (0,)
    assert result.adjoint is not None and result.adjoint.position.shape == (STEPS + 1, nodes, 2)
