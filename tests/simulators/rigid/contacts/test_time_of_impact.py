"""Time and place of impacts in a step against closed forms, and the adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, grad, linearize, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid import WORLD, Box, Joint, Plane, RigidBodies, Sphere
from simphys.simulators.rigid.contacts.islands import IMPACT, NONE, REST

from ....helpers.rounding import assert_equal_but_for_rounding
from ..systems import tumbling_in_plane, tumbling_in_space
from .poses import matrix, meet

H, R = 0.1, 0.1
"""Time step [s] and radius of the balls [m]."""


def leaves(*values: Any) -> list[Tensor]:
    return [tensor(np.array(each, float), requires_grad=True) for each in values]


def in_the_middle(model: RigidBodies, x: Any, q: Any, twist: Any) -> list[Tensor]:
    """Return poses in the middle of a step, when forces act, from those at its start."""
    moved, dim = model.dt / 2 * np.array(twist, float), model.dim
    return leaves(x + moved[:, :dim], q + moved[:, dim:], twist)


def ball_above_floor(gap: float, u: float) -> tuple[RigidBodies, list[Tensor]]:
    """Return a ball above a floor at the start of the step, with velocity u after its forces."""
    model = RigidBodies(2, H, ((Sphere(R),),), (Plane((0.0, 1.0)),), rest_speed=0.5)
    return model, in_the_middle(model, [[0.0, R + gap]], [[0.0]], [[0.3, u, 0.2]])


def passing_balls(aside: float, speed: float) -> tuple[RigidBodies, list[Tensor]]:
    """Return a ball that flies past another one, whose centre is `aside` off its path."""
    model = RigidBodies(2, H, ((Sphere(R),),) * 2)
    return model, in_the_middle(model, [[-0.3, aside], [0.0, 0.0]], [[0.0], [0.0]], [[speed, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("tumbling", [tumbling_in_plane, tumbling_in_space])
def test_every_derivative_of_an_impact_is_right(tumbling: Any) -> None:
    """The bodies rotate; derivatives are by positions, orientations, velocities and centres of mass."""
    model, params, state = tumbling(dt=0.1, off_centre=True)
    twist = np.concatenate([state.velocity.data, state.angular_velocity.data], axis=1)
    inputs = [state.position, state.orientation, *leaves(twist), params.centre_of_mass]
    *_, time, active, _ = meet(model, *inputs)
    fast = active.data == IMPACT
    assert fast.sum() == 2 and (time.data[fast] > 0.1 * H).all()
    gradcheck(lambda *x: meet(model, *x)[:4], inputs, tolerance=1e-7)


@pytest.mark.parametrize("gap", [0.01, -0.02, -0.5])
def test_every_derivative_of_a_contact_at_rest_or_an_overlap_is_right(gap: float) -> None:
    """The body lands, has met the floor in the step before, or is too deep for that."""
    for u in (-0.3, -2.0):
        model, inputs = ball_above_floor(gap, u)
        gradcheck(lambda *x, model=model: meet(model, *x)[:4], inputs, tolerance=1e-8)


def test_the_gap_of_an_impact_and_its_derivatives_are_exactly_0() -> None:
    """Rounding of one, 7e-18 m here, would count as a value where outputs are weighted by their sizes."""
    model = RigidBodies(2, 0.02, ((Sphere(0.05),),), (Plane((0.0, 1.0)),))
    for height, u in ((0.05878625, -1.91675), (0.0587862537, -1.9167500001), (0.0591, -1.7)):
        inputs = leaves([[0.0, height]], [[0.1]], [[0.3, u, 0.7]])
        gap, _, _, time, active, _ = meet(model, *inputs)
        assert active.data.tolist() == [IMPACT] and gap.data.tolist() == [0.0]
        assert not any(each is not None and each.data.any() for each in grad(gap, inputs, [[1e17]], retain_graph=True))
        directions = [np.ones_like(each.data) for each in inputs]
        assert linearize([gap], inputs)(*directions)[0].tolist() == [0.0]
        np.testing.assert_allclose(time.data, [(0.05 - height) / u], rtol=1e-12)


def test_balls_meet_where_the_distance_of_their_centres_is_twice_the_radius() -> None:
    """This holds for any distance in a step, and the derivatives of the time are those of the closed form."""
    model, inputs = passing_balls(0.12, 4.0)
    gap, frame, _, time, active, _ = meet(model, *inputs)
    across = np.sqrt(4 * R * R - 0.12**2)
    assert active.data.tolist() == [IMPACT]
    np.testing.assert_allclose(time.data, [(0.3 - across) / 4 - H / 2], rtol=1e-12)
    np.testing.assert_allclose(frame.data[0, :2], [-across / (2 * R), 0.12 / (2 * R)], rtol=1e-12)
    assert gap.data.tolist() == [0.0]
    by_x, _, by_twist = grad(time.sum(), inputs)
    np.testing.assert_allclose(by_x.data[0], [-1 / 4, 0.12 / across / 4], rtol=1e-12)
    np.testing.assert_allclose(by_twist.data[0, 0], -time.data[0] / 4, rtol=1e-12)


@pytest.mark.parametrize("speed", [3.0, 5.0, 30.0])
def test_balls_that_pass_each_other_do_not_meet(speed: float) -> None:
    """At the start of the step their normal predicts an impact: the nearer they are, the slower they approach."""
    for aside, meets in ((2 * R - 1e-6, True), (2 * R + 1e-6, False)):
        model, inputs = passing_balls(aside, speed)
        assert (meet(model, *inputs)[4].data[0] == IMPACT) == meets
        assert meets or (meet(model, *inputs)[3].data == -H / 2).all()


def test_a_rotating_corner_hits_the_floor_at_its_position_at_that_time() -> None:
    """The centre is a sin(angle) + b cos(angle) above the lower left corner."""
    a, b, y, q, v, w = 0.2, 0.1, 0.2, 0.3, -1.3, 3.0
    model = RigidBodies(2, H, ((Box((a, b)),),), (Plane((0.0, 1.0)),))
    _, frame, attitude, time, active, _ = meet(model, *leaves([[0.0, y]], [[q]], [[0.0, v, w]]))
    (met,) = np.flatnonzero(active.data)
    t = time.data[met]
    np.testing.assert_allclose(y + v * t, a * np.sin(q + w * t) + b * np.cos(q + w * t), rtol=1e-12)
    assert_equal_but_for_rounding(attitude.data[met, 0], q + w * t, size=1.0)
    np.testing.assert_allclose(frame.data[met, 2], b * np.sin(q + w * t) - a * np.cos(q + w * t), rtol=1e-12)


def test_the_first_corner_of_a_box_hits_the_floor_or_both_if_almost_simultaneous() -> None:
    """0.4 m times the tilt takes 0.27 s times the tilt, a tenth of a step at a tilt of 0.0375."""
    model = RigidBodies(2, H, ((Box((0.2, 0.1)),),), (Plane((0.0, 1.0)),))
    for tilt, counts in ((0.0, 2), (0.03, 2), (0.05, 1)):
        active = meet(model, *leaves([[0.0, 0.15]], [[tilt]], [[0.0, -1.5, 0.0]]))[4].data
        assert (active == IMPACT).sum() == counts and (active == REST).sum() == 0


def test_a_corner_that_approaches_a_thin_wall_sideways_hits_it() -> None:
    """It is opposite the wall neither at the start of the step, nor at the end, when it has passed through."""
    model = RigidBodies(2, 0.01, ((Box((0.05, 0.05)),), (Box((0.01, 0.2)),)), fixed=(1,))
    start = leaves([[-0.1, -0.28], [0.0, 0.0]], [[0.0], [0.0]], [[14.0, 14.0, 0.0], [0, 0, 0]])
    *_, time, active, _ = meet(model, *start)
    np.testing.assert_allclose(time.data[active.data == IMPACT], 0.04 / 14, rtol=1e-12)


@pytest.mark.parametrize(
    ("gap", "u", "what", "time"),
    [
        (0.06, -2.0, IMPACT, 0.03),
        (-0.06, -2.0, IMPACT, -0.03),  # met before the step
        (-0.5, -2.0, REST, 0.0),  # too deep
        (-0.4, -2.0, REST, 0.0),  # at the limit
        (0.0, -0.5, REST, 0.0),  # exactly as fast as the threshold
        (0.04, -0.3, REST, 0.0),
        (-0.3, 0.2, REST, 0.0),
        (0.05, -0.3, NONE, 0.0),  # exactly h v_rest
        (0.2, -2.0, NONE, 0.0),  # exactly h u
        (0.05, 3.0, NONE, 0.0),
    ],
)
def test_the_state_of_a_contact_depends_on_gap_and_speed(gap: float, u: float, what: int, time: float) -> None:
    """Gap and time count from the start of the step; what is at rest is evaluated in its middle.

    The time of a contact that is neither is that of the start, and nobody reads it.
    """
    model, inputs = ball_above_floor(gap, u)
    found = meet(model, *inputs)
    assert found[4].data.tolist() == [what]
    expected = time if what == REST else time - H / 2
    assert_equal_but_for_rounding(found[3].data, [expected], size=1.0)


def in_a_row(dim: int = 2, **options: Any) -> RigidBodies:
    """Return a ball flying to another, which rests on a fixed one; a joint connects that to the next."""
    zero = (0.0,) * dim
    joints = (Joint("revolute", 3, 1, zero, zero, axis=None if dim == 2 else (0.0, 0.0, 1.0)),)
    return RigidBodies(dim, H, ((Sphere(R),),) * 5, joints=joints, fixed=(2,), **options)


def make_poses(model: RigidBodies) -> list[Tensor]:
    """Return poses of the balls in a row; the last one is beside them, alone. They rotate, and rest with a gap."""
    dim, n = model.dim, model.bodies
    x, twist = np.zeros((n, dim)), np.random.default_rng(2).uniform(-0.2, 0.2, (n, model.dim + model.spins))
    x[:, 0], x[:, 1] = (0.0, 0.25, 0.46, 0.25, 3.0), (0.0, 0.02, -0.01, 0.4, 0.0)
    twist[0, :dim], twist[2] = (2.0, 0.3, -0.1)[:dim], 0.0
    q = np.random.default_rng(3).uniform(-1, 1, (n, model.rotations))
    return leaves(x, q, twist)


def test_an_impact_reaches_bodies_at_rest_on_the_body_hit_and_those_joined_to_it() -> None:
    model = in_a_row()
    *_, active, first = meet(model, *make_poses(model))
    what = dict(zip(zip(*model.row_bodies.reshape(-1, 2)[model.joint_rows :].T, strict=True), active.data, strict=True))
    (hit,) = np.flatnonzero(active.data == IMPACT)
    assert {pair for pair, each in what.items() if each == REST} == {(1, 2)} and what[0, 1] == IMPACT
    assert first.data.tolist() == [hit, hit, -1, hit, -1]


def test_the_first_of_two_impacts_reaches_all_bodies() -> None:
    """A ball is between two others, which approach from both sides."""
    model = RigidBodies(2, H, ((Sphere(R),),) * 3)
    places, speeds = [[-0.3, 0.0], [0.0, 0.0], [0.25, 0.0]], [[1.5, 0, 0], [0.0, 0, 0], [-1.5, 0, 0]]
    *_, time, active, first = meet(model, *in_the_middle(model, places, np.zeros((3, 1)), speeds))
    assert active.data.tolist() == [IMPACT, NONE, IMPACT]
    np.testing.assert_allclose(time.data, [0.1 / 1.5 - H / 2, -H / 2, 0.05 / 1.5 - H / 2], rtol=1e-12)
    assert first.data.tolist() == [2, 2, 2]


def test_contacts_at_rest_have_the_frame_at_the_impact_and_the_gap_before() -> None:
    model = in_a_row()
    x, q, twist = make_poses(model)
    gap, frame, attitude, time, active, first = meet(model, x, q, twist)
    (rests,) = np.flatnonzero(active.data == REST)
    t = time.data[int(first.data[1])]
    then, now = x.data + t * twist.data[:, :2], x.data
    np.testing.assert_allclose(time.data[rests], t)
    np.testing.assert_allclose(gap.data[rests], np.linalg.norm(now[1] - now[2]) - 2 * R, rtol=1e-12)
    np.testing.assert_allclose(frame.data[rests, :2], (then[1] - then[2]) / np.linalg.norm(then[1] - then[2]))
    np.testing.assert_allclose(attitude.data[rests], (q.data + t * twist.data[:, 2:])[[1, 2], 0])


def hit_at_rest(dim: int, **options: Any) -> tuple[RigidBodies, list[Tensor]]:
    """Return a box that rests on a floor, rotates a little, and is hit by a ball; their centres of mass are given."""
    half, up = ((0.2, 0.1), (0.0, 1.0)) if dim == 2 else ((0.2, 0.15, 0.1), (0.0, 0.0, 1.0))
    model = RigidBodies(dim, H, ((Box(half),), (Sphere(R),)), (Plane(up),), free_anchors=True, **options)
    x, q, twist = np.zeros((2, dim)), np.zeros((2, model.rotations)), np.zeros((2, dim + model.spins))
    x[0, -1], x[1, 0], x[1, -1] = 0.103, -0.38, 0.11
    q[:, 0] = 0.02 if dim == 2 else 1.0
    q[0] += 0.003 * np.arange(model.rotations)
    twist[0], twist[1, 0] = 0.03 * np.arange(dim + model.spins) - 0.05, 2.0
    centres = 0.05 * np.array([[1.0, -0.5, 0.7], [-0.4, 0.8, -0.6]])[:, :dim]
    turned = np.array([matrix(turn / np.linalg.norm(turn) if dim == 3 else turn) for turn in q])
    x += np.einsum("nij,nj->ni", turned, centres)
    return model, leaves(x, q, twist, centres)


@pytest.mark.parametrize("dim", [2, 3])
def test_derivatives_of_contacts_at_rest_include_the_time_of_impact(dim: int) -> None:
    model, inputs = hit_at_rest(dim)
    _, _, _, time, active, _ = meet(model, *inputs)
    assert (active.data == IMPACT).sum() == 1 and time.data[active.data == REST].all()
    rests = np.flatnonzero(active.data == REST)
    assert len(rests) == 2 ** (dim - 1) + 1  # including the ball
    for outputs in (lambda *x: meet(model, *x)[1:4], lambda *x: meet(model, *x)[0][rests]):
        gradcheck(outputs, inputs, tolerance=1e-6, mode="projected")  # kinks are some mm away


def test_derivatives_include_the_time_of_impact_on_a_round_support() -> None:
    """Its normal rotates until the impact; balls have no orientation."""
    model = in_a_row()
    x, q, twist = make_poses(model)
    *_, active, _ = meet(model, x, q, twist)
    (rests,) = np.flatnonzero(active.data == REST)

    def rest_outputs(x: Tensor, twist: Tensor) -> Any:
        gap, frame, _, time, *_ = meet(model, x, q.detach(), twist)
        return gap[rests], frame, time

    gradcheck(rest_outputs, (x, twist), tolerance=1e-7)


def test_features_not_opposite_at_the_impact_keep_their_pose_before() -> None:
    """A corner slides over the edge of a box below, before another corner hits a wall."""
    shapes = (Box((0.1, 0.1)),), (Box((0.2, 0.1)),)
    model = RigidBodies(2, H, shapes, (Plane((-1.0, 0.0), offset=-0.3),), fixed=(1,))
    state = in_the_middle(model, [[0.09, 0.205], [0.0, 0.0]], [[0.0], [0.0]], [[2.0, -0.1, 0.0], [0, 0, 0]])
    gap, frame, _, time, active, first = meet(model, *state)
    assert time.data[int(first.data[0])] == pytest.approx(0.055 - H / 2)
    rests = {round(float(frame.data[c, 2]), 3): time.data[c] for c in np.flatnonzero(active.data == REST)}
    assert rests.pop(0.1) == 0.0 and abs(gap.data[active.data == REST]).max() < 1e-13
    assert rests and all(each == pytest.approx(0.055 - H / 2) for each in rests.values())


def test_the_world_links_no_bodies() -> None:
    """Two balls are on one floor, and one of them hits a wall."""
    model = RigidBodies(2, H, ((Sphere(R),),) * 2, (Plane((0.0, 1.0)), Plane((-1.0, 0.0), offset=-1.0)))
    places = [[0.8, R], [0.0, R]]
    *_, active, first = meet(model, *leaves(places, np.zeros((2, 1)), [[2.0, 0, 0], [0.0, 0, 0]]))
    assert (active.data == REST).sum() == 2 and first.data[0] >= 0 and first.data[1] == -1
    assert WORLD in model.row_bodies
