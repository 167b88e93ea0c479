"""A network inside the loop over time has the same gradients nested, fused, in segments and in batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, no_grad, tensor
from simphys.autograd.errors import InputError
from simphys.nn import Controller
from simphys.rollout import rollout
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from .systems import NAMES, controls, system

STEPS = 6


def weights(shape: Any, seed: int = 5) -> Tensor:
    return tensor(np.random.default_rng(seed).normal(size=shape))


def gradients(model: MassSpring, inputs: dict[str, Tensor], **options: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Final positions, and the gradients of a weighted sum of all states, or of the last one, for each input."""
    leaves = {name: value.detach().requires_grad_() for name, value in inputs.items()}
    params = Params(**{name: leaves[name] for name in Params.names()})
    start = State(leaves["position"], leaves["velocity"])
    found = rollout(model, params, start, steps=STEPS, control=leaves["control"], **options)
    states = found.final if options.get("keep") == "final" else found.states
    parts = [(getattr(states, name) * weights(getattr(states, name).shape)).sum() for name in State.names()]
    (parts[0] + parts[1]).backward()
    arrived = {name: leaf.grad.data for name, leaf in leaves.items() if leaf.grad is not None}
    return {"end": found.final.position.data, **arrived}


def case(integrator: str = "semi_implicit_euler") -> tuple[MassSpring, dict[str, Tensor]]:
    model, params, state = system(2, nodes=6, springs=17, actuators=3, controlled=True, integrator=integrator)
    named = dict(zip(NAMES, (*state.tensors(), *params.tensors()), strict=True))
    return model, {**named, "control": controls(model, STEPS)}


def test_without_the_feedback_to_the_state_the_check_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sensed state matters: the check notices an adjoint that leaves it out."""
    from simphys.simulators.mass_spring.sense import SenseNodes

    model, inputs = case()

    def drop_adjoint(ctx: Any, *adjoints: Tensor) -> tuple[Any, ...]:
        nothing = np.zeros((model.nodes, model.dim))
        return None, nothing, nothing, np.zeros(model.dim), None

    whole = gradients(model, inputs, keep="final")
    monkeypatch.setattr(SenseNodes, "backward", staticmethod(drop_adjoint))
    without_feedback = gradients(model, inputs, mode="nested", keep="final")
    assert abs(without_feedback["velocity"] - whole["velocity"]).max() > 1e-4 * abs(whole["velocity"]).max()


def test_only_the_goal_relative_to_the_centre_matters() -> None:
    """A common shift of robot, ground and goal changes nothing, since all sensed values are relative."""
    model, inputs = case()
    with no_grad():
        ends = []
        for shift in (0.0, 3.0):
            assert model.controller is not None
            moved = tuple(x + s for x, s in zip(model.controller.goal, (shift, 0.0), strict=True))
            there = replace(model, controller=replace(model.controller, goal=moved))
            params = Params(**{name: inputs[name] for name in Params.names()})
            start = State(inputs["position"] + np.array([shift, 0.0]), inputs["velocity"])
            final = rollout(there, params, start, steps=STEPS, control=inputs["control"], keep="final").final
            ends.append(final.position.data - np.array([shift, 0.0]))
    np.testing.assert_allclose(ends[1], ends[0], rtol=0, atol=1e-12)


def test_a_controller_needs_something_to_drive_and_a_goal_in_space() -> None:
    ends, pinned = np.array([[0, 1]], np.int32), np.zeros(2, bool)
    with pytest.raises(InputError, match="needs actuators to drive"):
        MassSpring(ends, pinned, 2, 0.1, controller=Controller(waves=2, hidden=3, goal=(0.0, 1.0)))
    with pytest.raises(InputError, match="a goal in 2 dimensions"):
        MassSpring(
            ends, pinned, 2, 0.1, actuator=np.zeros(1, np.int32), controller=Controller(waves=2, hidden=3, goal=(0.0,))
        )
