"""Events of rigid bodies, and where the gradient of a motion is one-sided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.rollout import rollout
from simphys.simulator.events import Event
from simphys.simulators.rigid import Box, Plane, RigidBodies, Sphere
from simphys.simulators.rigid.events import CONE, EDGE, SAME_TIME, THRESHOLD, TOUCHING

from .systems import system

FLOOR = Plane((0.0, 1.0))


def find_events(model: RigidBodies, steps: int, state: dict[str, Any], **params: Any) -> tuple[Event, ...]:
    model, given, start = system(model, state={"velocity": 0.0, "angular_velocity": 0.0, **state}, **params)
    states = rollout(model, given, start, steps=steps).states
    return model.events(given.arrays(), states.arrays(), None)


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


def ball(**changes: Any) -> RigidBodies:
    return RigidBodies(**{"dim": 2, "dt": 0.01, "shapes": ((Sphere(0.1),),), "planes": (FLOOR,), **changes})


def test_a_ball_bounces_until_it_rests() -> None:
    found = find_events(ball(), 200, {"position": [[0.0, 0.3]]}, restitution=0.5, friction=0.0)
    assert kinds(found)[:3] == ["impact", "release", "impact"] and kinds(found)[-1] == "rest"
    assert {event.what for event in found} == {"body 0 and the world"}
    np.testing.assert_allclose(found[0].time, np.sqrt(2 * 0.2 / 9.81), atol=0.01)
    assert not any(event.one_sided for event in found)
    assert [event.time for event in found] == sorted(event.time for event in found)


def test_a_box_slides_until_it_sticks() -> None:
    model = ball(shapes=((Box((0.2, 0.1)),),))
    state = {"position": [[0.0, 0.1]], "velocity": [[0.5, 0.0]]}
    found = find_events(model, 40, state, friction=0.4, mass=1.0, inertia=0.05 / 3)
    assert kinds(found) == ["rest", "stick"]
    np.testing.assert_allclose(found[1].time, 0.5 / (0.4 * 9.81), atol=0.015)


def test_a_contact_exactly_at_the_end_of_a_step_is_a_graze() -> None:
    """It is one whether or not rounding makes it an impact."""
    found = find_events(ball(), 1, {"position": [[0.0, 0.1 + 0.01]], "velocity": [[0.0, -1.0]]}, gravity=0.0)
    assert found[0].kind == "graze" and found[0].one_sided == EDGE


def test_an_impact_just_as_fast_as_the_threshold_is_one_sided() -> None:
    state = {"position": [[0.0, 0.1005]], "velocity": [[0.0, -0.2]]}
    found = find_events(ball(), 1, state, gravity=0.0, friction=0.0)
    assert [(event.kind, event.one_sided) for event in found] == [("rest", THRESHOLD)]


def test_friction_exactly_at_the_edge_of_its_cone_is_one_sided() -> None:
    """An impact at speed v stops a slip of at most 3 mu (1 + e) v, as for a disc."""
    state = {"position": [[0.0, 0.105]], "velocity": [[1.5, -1.0]]}
    found = find_events(ball(), 1, state, gravity=0.0, friction=0.5, restitution=0.0, mass=1.0, inertia=0.005)
    assert [(event.kind, event.one_sided) for event in found] == [("stick", CONE), ("impact", "")]


def test_a_box_that_lands_flat_is_one_sided() -> None:
    model = ball(shapes=((Box((0.2, 0.1)),),))
    state = {"position": [[0.0, 0.105]], "velocity": [[0.0, -1.0]]}
    found = find_events(model, 1, state, gravity=0.0, friction=0.0)
    assert [(event.kind, event.one_sided) for event in found] == [("impact", SAME_TIME)]


def test_a_ball_between_two_others_is_hit_from_both_sides_at_once() -> None:
    model = ball(shapes=((Sphere(0.1),),) * 3, planes=())
    state = {"position": [[-0.205, 0], [0, 0], [0.205, 0]], "velocity": [[1, 0], [0, 0], [-1, 0]]}
    found = find_events(model, 1, state, gravity=0.0, friction=0.0)
    assert [(event.kind, event.what, event.one_sided) for event in found] == [
        ("impact", "body 0 and body 1", SAME_TIME),
        ("impact", "body 1 and body 2", SAME_TIME),
    ]


def test_compliant_contacts_begin_and_end() -> None:
    stiff = {"contact_stiffness": 2000.0, "contact_damping": 0.0, "friction": 0.0}
    state = {"position": [[0.0, 0.15]], "velocity": [[0.0, -1.0]]}
    found = find_events(ball(law="compliant", dt=0.002), 120, state, gravity=0.0, mass=1.0, **stiff)
    assert kinds(found) == ["contact", "release"]
    np.testing.assert_allclose(found[1].time - found[0].time, np.pi / np.sqrt(2000.0), atol=0.004)
    touching = find_events(ball(law="compliant"), 1, {"position": [[0.0, 0.1]]}, gravity=0.0, **stiff)
    assert [(event.kind, event.one_sided) for event in touching] == [("graze", TOUCHING)]


def test_bodies_without_contacts_have_no_events() -> None:
    assert find_events(ball(planes=()), 3, {"position": [[0.0, 0.1]]}) == ()


def find_grazes(speed: float, aside: float) -> tuple[Event, ...]:
    """Return the grazes of two balls, one of which flies past, 0.5 m away at first."""
    state = {"position": [[-0.5, aside], [0.0, 0.0]], "velocity": [[speed, 0.0], [0.0, 0.0]]}
    model = ball(shapes=((Sphere(0.1),),) * 2, planes=())
    return find_events(model, int(0.6 / speed / 0.01) + 2, state, gravity=0.0, friction=0.0)


@pytest.mark.parametrize("speed", [3.0, 4.0, 4.4, 5.0, 6.0])
def test_balls_that_just_touch_or_just_miss_each_other_graze(speed: float) -> None:
    """This holds in the middle of a step or, at 5 m/s, at the end of one."""
    found = [event for event in find_grazes(speed, 0.2) if event.kind == "graze"]
    assert found and {event.one_sided for event in found} == {EDGE}
    assert abs(found[0].time - 0.5 / speed) < 0.0101
    assert not any(event.one_sided for aside in (0.2 - 1e-5, 0.2 + 1e-5) for event in find_grazes(speed, aside))
