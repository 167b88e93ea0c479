"""Events of nodes at the ground: their times, and the states at which gradients are one-sided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.diagnose.health import health
from simphys.rollout import rollout
from simphys.simulator.events import Event
from simphys.simulators.mass_spring.model import MassSpring, Params, State

from .systems import springs_only, tolerance

STIFFNESS = 400.0


def events(model: MassSpring, params: Params, state: State, steps: int) -> tuple[Event, ...]:
    motion = rollout(model, params, state, steps=steps, keep="all")
    return model.events(params.arrays(), motion.states.arrays(), None)


def nodes(*height: float, speed: float = 0.0, **given: Any) -> tuple[MassSpring, Params, State]:
    """Nodes of 1 kg at these heights, side by side over a ground at 0.3 m, moving upwards with this speed."""
    ground = {"ground_height": 0.3, "ground_stiffness": STIFFNESS}
    velocity = [[1.0, speed]] * len(height)
    position = [[float(i), each] for i, each in enumerate(height)]
    return springs_only([], position, velocity=velocity, **{**ground, **given})


@pytest.mark.gpu
def test_the_time_of_a_contact_lies_between_those_of_the_states() -> None:
    """Without forces a node touches down after the time distance / speed; the event names the step that contains it."""
    found = events(*nodes(0.655, 0.915, speed=-1.0, dt=0.01), 80)
    down = [event for event in found if event.kind == "contact"]
    assert [(event.step, event.what, event.one_sided) for event in down] == [(35, "node 0", ""), (61, "node 1", "")]
    np.testing.assert_allclose([event.time for event in down], [0.355, 0.615], atol=tolerance(1e-13, 1e-6))


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "velocity_verlet"])
def test_a_node_that_bounces_comes_and_goes_at_the_times_of_the_closed_form(integrator: str) -> None:
    """The node falls for sqrt(2 d / g). The ground, a spring, then holds it for (pi + 2 atan(g / (w v))) / w, which
    exceeds half a period because of its weight."""
    depth, g = 0.5, 9.8
    found = events(*nodes(0.3 + depth, gravity=[0.0, -g], dt=1e-4, integrator=integrator), 12_000)
    fall, rate = np.sqrt(2 * depth / g), np.sqrt(STIFFNESS)
    stay = (np.pi + 2 * np.arctan(g / (rate * g * fall))) / rate
    assert [event.kind for event in found] == ["contact", "release", "contact"]
    expected = [fall, fall + stay, 3 * fall + stay]
    np.testing.assert_allclose([event.time for event in found], expected, atol=2e-4)  # two steps
    assert not any(event.one_sided for event in found)


def test_there_are_none_without_a_ground_and_of_pinned_nodes() -> None:
    assert events(*nodes(0.4, speed=-1.0, ground_stiffness=0.0), 20) == ()
    assert events(*nodes(0.3, speed=-1.0, pinned=[0]), 20) == ()


def test_a_node_exactly_at_the_ground_is_an_event_in_each_step_that_evaluates_its_force() -> None:
    """Semi-implicit Euler evaluates no force at the last state, so there is no event."""
    graze = [(0, 0.0), (1, 0.01), (2, 0.02)]
    found = events(*nodes(0.3), 3)
    assert [(event.step, event.time) for event in found] == graze
    assert {(event.kind, bool(event.one_sided)) for event in found} == {("graze", True)}
    verlet = events(*nodes(0.3, integrator="velocity_verlet"), 3)
    assert [(event.step, event.time) for event in verlet] == [*graze, (2, 0.03)]


def test_a_contact_from_exactly_there_is_one_event_and_one_sided() -> None:
    (found,) = events(*nodes(0.3, speed=-1.0), 3)
    assert (found.step, found.time, found.kind) == (0, 0.0, "contact")
    assert found.one_sided.startswith("exactly at the ground's height")


def test_heights_that_differ_by_rounding_are_the_same() -> None:
    for height in np.nextafter(0.3, [0.0, 1.0]):
        found = events(*nodes(height), 1)
        assert [event.what for event in found if event.one_sided] == ["node 0"]
    assert events(*nodes(0.3 + 1e-12), 1) == ()


def test_there_the_derivatives_from_above_and_below_differ_and_the_gradient_is_that_from_above() -> None:
    """The height after a step has the derivative 1 with respect to that before it in free flight, and 1 - k dt^2 / m on
    the ground. At an event that is not one-sided both derivatives are equal, though contact begins."""

    def slopes(height: float) -> tuple[float, ...]:
        model, params, state = nodes(height, speed=-1.0, dt=0.01)

        def end(shift: float) -> float:
            moved = state.replace(position=state.position + tensor([[0.0, shift]]))
            return float(rollout(model, params, moved, steps=1, keep="final").final.position.data[0, 1])

        found = health(model, params, state, steps=1, loss=lambda motion: motion.final.position[0, 1])
        h = 1e-4
        above, below = (end(h) - end(0)) / h, (end(0) - end(-h)) / h
        return above, below, found.adjoint["position"][0, 0, 1], len([e for e in found.events if e.one_sided])

    np.testing.assert_allclose(slopes(0.3), [1, 1 - STIFFNESS * 0.01**2, 1, 1], rtol=1e-10)
    np.testing.assert_allclose(slopes(0.305), [1, 1, 1, 0], rtol=1e-10)
