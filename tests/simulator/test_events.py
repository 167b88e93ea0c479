"""Events of a motion, by the model and in the report of its health."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.diagnose.health import health
from simphys.experiment.members import StackedMembers
from simphys.simulator import Array, Arrays
from simphys.simulator.events import Event, group_by_kind, select_one_sided

from ..rollout.pendulums import Params, Pendulums, State

GRAZE = Event(3, 0.31, "graze", "ball 1", "it only just touches")
FOUND = (Event(0, 0.05, "impact", "ball 0 and ball 1"), GRAZE, Event(4, 0.42, "impact", "ball 2 and the wall"))


class Swings(Pendulums):
    """Pendulums with an event when one hangs straight down, declared one-sided if it started at rest."""

    def events(self, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
        angle = states["angle"]
        assert angle.dtype == np.float64 and params["stiffness"].shape == (self.n,)
        assert control is None or len(control) == len(angle) - 1
        found = np.argwhere(np.signbit(angle[1:]) != np.signbit(angle[:-1]))
        return tuple([Event(int(t), self.dt * (t + 0.5), "bottom", f"pendulum {i}") for t, i in found])


def swinging(*, push: float | None = None) -> tuple[Any, ...]:
    """Make pendulums of period 1 s and 2 s; each is at the bottom after a quarter of its period."""
    stiffness = (2 * np.pi / np.array([1.0, 2.0])) ** 2
    params, state = Params(tensor(stiffness), tensor(0.0)), State(tensor([0.1, 0.1]), tensor([0.0, 0.0]))
    control = None if push is None else tensor(np.full((100, 2), push))
    return Swings(n=2, dt=0.01), params, state, control


def test_events_are_sorted_by_kind_and_those_where_a_gradient_is_one_sided_are_picked() -> None:
    assert group_by_kind(FOUND) == {"impact": (FOUND[0], FOUND[2]), "graze": (GRAZE,)}
    assert select_one_sided(FOUND) == (GRAZE,)


def test_a_model_that_tells_of_no_events_has_none() -> None:
    model = Pendulums(n=1)
    assert model.events({}, {"angle": np.ones((2, 1)), "rate": np.ones((2, 1))}, None) == ()


def test_health_has_the_events_of_the_motion_that_it_differentiates() -> None:
    model, params, state, _ = swinging()
    found = health(model, params, state, steps=100).events
    assert [event.what for event in found] == ["pendulum 0", "pendulum 1", "pendulum 0"]
    np.testing.assert_allclose([event.time for event in found], [0.25, 0.5, 0.75], atol=0.01)
    assert health(Pendulums(n=2, dt=0.01), params, state, steps=100).events == ()


def test_of_a_motion_that_breaks_down_there_are_the_events_before() -> None:
    """Check a damping that overshoots: the angle changes sign in each step, until it is infinite."""
    model, params, state, control = swinging(push=0.01)
    found = health(model, params.replace(damping=tensor(1e50)), state, steps=100, control=control)
    assert found.fault is not None and 0 < found.steps < 20
    assert found.events and max(event.step for event in found.events) < found.steps


def test_several_members_are_told_apart_and_their_events_come_in_the_order_of_time() -> None:
    """Check members with their own stiffness and control, and the other parameters shared."""
    model, params, state, _ = swinging()
    both: Any = StackedMembers.of(model, 2, frozenset(["stiffness", "control"]))
    faster = params.replace(stiffness=tensor(np.stack([params.stiffness.data, 4 * params.stiffness.data])))
    start = State(*[tensor(np.stack([each.data, each.data])) for each in state.tensors()])
    events = health(both, faster, start, steps=60, control=tensor(np.zeros((60, 2, 2)))).events
    own = health(model, params, state, steps=60).events
    assert [event for event in events if event.what.startswith("member 0")] == [
        replace(event, what=f"member 0: {event.what}") for event in own
    ]
    assert [event.time for event in events] == sorted(event.time for event in events)
    assert [event.what for event in events][:2] == ["member 1: pendulum 0", "member 0: pendulum 0"]
