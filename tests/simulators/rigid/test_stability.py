"""Time steps up to the limit keep a motion bounded; those beyond do not, and are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError, UnphysicalValue
from simphys.experiment.scene import build_scene
from simphys.rollout import rollout
from simphys.rollout.stability import find_largest_dt, require_stable_step
from simphys.scenefile import from_dict
from simphys.simulator import Array
from simphys.simulators.rigid import WORLD, Box, Capsule, Joint, Plane, RigidBodies, Sphere, Spring
from simphys.simulators.rigid.checks import check_params
from simphys.simulators.rigid.stability import require_slow

from .systems import GRAVITY, System, system
from .test_scene import sections

FLOOR = (Plane((0.0, 1.0)),)
BELOW, ABOVE = 0.995, 1.01
FORCES = "springs and joints, the fastest on free bodies being "
SHARP = 3e-4
"""Relative tolerance of the limit, or of its square, that the tangent of a step finds."""
K = 1e5


def limit(model: RigidBodies, params: Any, state: Any) -> tuple[Any, str]:
    """Return the largest stable time step, and its cause; inf and '' if 10 s are stable."""
    limits = replace(model, dt=10.0).step_limits(params.arrays(), state.arrays())
    found = [
        (min([find_largest_dt(*system) for system in each.systems]), each.cause) for each in limits if each.systems
    ]
    return min([each for each in found if each[0] < np.inf], default=(np.inf, ""))


def largest_motion(system_: System, part: float, field: str) -> Array:
    """Return final over initial maximum of a field's magnitude, after 600 steps at this fraction of the limit."""
    model, params, state = system_
    still = replace(model, dt=part * limit(*system_)[0])
    along = abs(getattr(rollout(still, params, state, steps=600).states, field).data)
    return along.reshape(len(along), -1)[-20:].max() / along[0].max()


def spring_between(damping: float) -> System:
    """Return two rotated bodies with anchors off their centres, which move a little."""
    anchors = (0.1, 0.2), (-0.2, 0.1)
    model = RigidBodies(2, 0.01, ((), ()), springs=(Spring(0, 1, *anchors),))
    state: dict[str, Any] = {"position": [[0, 0], [1.0, 0.3]], "orientation": [[0.5], [2.0]]}
    state |= {"velocity": [[1e-7, 0], [0, 2e-7]], "angular_velocity": 0.0}
    ends = [x + rotation(y, *q) for x, y, q in zip(state["position"], anchors, state["orientation"], strict=True)]
    length = np.linalg.norm(ends[1] - ends[0])
    params: dict[str, Any] = {"spring_stiffness": 100.0, "spring_damping": damping, "spring_length": length}
    return system(model, state=state, gravity=0.0, mass=[1.0, 2.0], inertia=[[0.02], [0.03]], **params)


def rotation(anchor: tuple[float, float], angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]]) @ anchor


def require_stable(model: RigidBodies, params: Any, state: Any) -> None:
    """Do what a scene does."""
    check_params(params.arrays())
    require_stable_step(model, params, state)
    require_slow(model, state.arrays())


@pytest.mark.parametrize("damping", [0.0, 5.0])
def test_a_spring_with_arms_is_stable_up_to_the_limit_and_not_beyond(damping: float) -> None:
    system_ = spring_between(damping)
    assert largest_motion(system_, BELOW, "velocity") < 30 and largest_motion(system_, ABOVE, "velocity") > 1e3
    assert limit(*system_)[1] == FORCES + "spring 0"


def test_the_limit_of_a_spring_depends_on_the_effective_mass_of_its_ends() -> None:
    """Only the arm across the spring matters for the first body: h^2 k W + 2 h c W = 4."""
    model = RigidBodies(2, 0.01, ((), ()), springs=(Spring(0, 1, (0.3, 0.2), (0.0, 0.0)),))
    state = {"position": [[0.0, 0.0], [1.3, 0.2]], "velocity": 0.0, "angular_velocity": 0.0}
    params: dict[str, Any] = {"spring_stiffness": 50.0, "spring_damping": 3.0, "spring_length": 1.0}
    h, _ = limit(*system(model, state=state, mass=[2.0, 4.0], inertia=[[0.1], [0.3]], **params))
    W = 1 / 2 + 1 / 4 + 0.2**2 / 0.1
    assert h**2 * 50 * W + 2 * h * 3 * W == pytest.approx(4, rel=SHARP)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_limit_includes_the_rotating_arm_of_a_tight_spring(dim: int) -> None:
    """Two long springs pull a small body from both sides: a rotation theta gives the torque 2 f r theta."""
    along, k, stretched, arm, J = np.eye(dim)[0], 100.0, 0.8, 0.05, 0.00125
    ends = [(tuple(sign * arm * along), tuple(sign * (1 + arm) * along)) for sign in (-1, 1)]
    model = RigidBodies(dim, 0.01, ((),), springs=tuple([Spring(0, WORLD, *each) for each in ends]))
    state = {"position": np.zeros((1, dim)), "velocity": 0.0, "angular_velocity": 0.0}
    params: dict[str, Any] = {"spring_stiffness": k, "spring_damping": 0.0, "spring_length": 1 - stretched}
    found = limit(*system(model, state=state, mass=1.0, inertia=J, **params))
    turning = 2 * k * stretched * arm + 2 * k * stretched * arm**2
    assert found[0] == pytest.approx(2 / np.sqrt(turning / J), rel=SHARP)


def hinge(damping: float) -> System:
    """Return a rod on a hinge, with a slider on it; both rotate."""
    slide = Joint("prismatic", 1, 0, (0.0, 0.0), (0.0, 0.0), axis=(1.0, 0.0))
    joints = (Joint("revolute", 0, WORLD, (-0.3, 0.0), (0.0, 0.0)), slide)
    state = {"position": [[0.3, 0.0], [0.3, 0.0]], "velocity": [[0, 0.3e-7], [1e-7, 0.3e-7]], "angular_velocity": 1e-7}
    model = RigidBodies(2, 0.01, ((), ()), joints=joints, sweeps=100)
    both: dict[str, Any] = {"joint_damping": [damping, 3.0], "mass": [1.0, 0.5], "inertia": [[0.03], [0.01]]}
    return system(model, state=state, gravity=0.0, **both)


def test_damped_joints_are_stable_up_to_the_limit_and_not_beyond() -> None:
    """It is the limit of the moving masses: the bodies together about the hinge, the slider by itself."""
    slow, fast = hinge(0.5), hinge(5.0)
    assert limit(*slow)[0] == pytest.approx(2 / 3.0 * 0.5, rel=SHARP)
    assert limit(*fast) == (pytest.approx(2 / 5.0 * (0.03 + 0.01 + 1.5 * 0.3**2), rel=SHARP), FORCES + "joint 0")
    for system_ in (slow, fast):
        assert largest_motion(system_, BELOW, "velocity") < 10 and largest_motion(system_, ABOVE, "velocity") > 1e3


def test_dry_friction_damps_a_joint_at_rest_most_and_limits_the_step() -> None:
    model, params, state = hinge(0.0)
    dry = {"joint_dry_friction": tensor([0.2, 0.0]), "joint_transition_rate": tensor([0.02, 0.1])}
    rubbing = replace(model, joint_friction=True), params.replace(**dry), state
    slope, inertia = 2 * 0.2 / (np.pi * 0.02), 0.03 + 0.01 + 1.5 * 0.3**2
    assert limit(*rubbing) == (pytest.approx(2 / slope * inertia, rel=SHARP), FORCES + "joint 0")
    with pytest.raises(InputError, match=r"free bodies being joint 0.*raise the transition_rate of its dry friction"):
        require_stable(replace(rubbing[0], dt=0.1), *rubbing[1:])


@pytest.mark.parametrize("damping", [1e300, 1.7e308])
def test_a_damping_that_no_step_is_small_enough_for_ends_the_search(damping: float) -> None:
    assert limit(*hinge(damping))[0] < 1e-290


def standing(shape: Any, height: float, feet: int, *, up: float = 0.0, friction: float = 0.0, **changed: Any) -> System:
    """Return a body of 2 kg that stands on its feet, and rocks a little."""
    sunk = 2.0 * GRAVITY / K / feet
    model = RigidBodies(2, 0.01, ((shape,),), planes=FLOOR, law="compliant", slip_speed=0.05)
    state = {"position": [[0.0, height - sunk + up]], "velocity": [[0.0, 1e-9]], "angular_velocity": 1e-8}
    params = {"mass": 2.0, "inertia": 0.01, "contact_stiffness": K, "contact_damping": 0.0, "friction": friction}
    return system(model, state=state, **{**params, **changed})


@pytest.mark.parametrize(
    ("shape", "height", "feet"),
    [(Sphere(0.1), 0.1, 1), (Box((0.2, 0.05)), 0.05, 2), (Capsule(0.05, 0.2), 0.05, 2)],
)
def test_a_body_on_a_floor_is_stable_up_to_the_limit_and_not_beyond(shape: Any, height: float, feet: int) -> None:
    system_ = standing(shape, height, feet, contact_damping=30.0)
    assert largest_motion(system_, BELOW, "velocity") < 100 and largest_motion(system_, ABOVE, "velocity") > 1e3
    assert limit(*system_)[1] == "body 0 at rest on a plane"


def test_the_bound_in_closed_form_is_stable() -> None:
    """The tangent of a step, which decides beyond it, allows at least as much."""
    feet = standing(Box((0.2, 0.05)), 0.05, 2, contact_damping=30.0, friction=0.8)
    for model, params, state in (spring_between(0.0), spring_between(5.0), hinge(0.5), hinge(5.0), feet, two_discs()):
        for each in replace(model, dt=10.0).step_limits(params.arrays(), state.arrays()):
            largest = [find_largest_dt(*system) for system in each.systems]
            assert all([0 < each.dt < 1.001 * found for found in largest]), each.cause


def speeds_after_impacts(system_: System, h: float) -> Array:
    """Return rebound speeds relative to those of the impacts, of a body that hits the floor anywhere in a step."""
    model, params, state = system_
    begin = np.array([[0.0, 0.1]]) - h * np.linspace(0.02, 1, 50)[:, None, None] * state.velocity.data
    still = {name: tensor(np.tile(getattr(state, name).data, (50, 1, 1))) for name in state.names()}
    still["position"] = tensor(begin)
    final = rollout(replace(model, dt=h), params, state.replace(**still), steps=12).final
    found: Array = final.velocity.data[:, 0, 1] / -state.velocity.data[0, 1]
    return found


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_impacts_beyond_the_limit_rebound_faster(damping: float) -> None:
    system_ = standing(Sphere(0.1), 0.1, 1, up=1.0, contact_damping=damping, gravity=0.0)
    system_ = (
        system_[0],
        system_[1],
        system_[2].replace(velocity=tensor([[0.0, -2.0]]), angular_velocity=tensor([[0.0]])),
    )
    h, what = limit(*system_)
    assert what == "the impact of body 0" and h**2 * K * (1 + damping * 2.0) / 2 == pytest.approx(2, rel=SHARP)
    for part in (0.5, 0.7, 0.87, 0.999):
        assert 0 < speeds_after_impacts(system_, part * h).min() <= speeds_after_impacts(system_, part * h).max() < 1.26
    for part in (1.15, 1.4):
        assert speeds_after_impacts(system_, part * h).max() == pytest.approx(2 * part**2 - 1, rel=0.02)


def test_the_impact_of_a_fall_has_the_speed_of_the_fall() -> None:
    system_ = standing(Box((0.2, 0.05)), 0.05, 2, up=1.0, contact_damping=0.3)
    speed = np.sqrt(2 * GRAVITY * (1.0 - 2.0 * GRAVITY / K / 2))
    W = 1 / 2 + 0.2**2 / 0.01  # for one corner
    assert limit(*system_) == (
        pytest.approx(np.sqrt(2 / (K * W * (1 + 0.3 * speed))), rel=1e-3),
        "the impact of body 0",
    )


@pytest.mark.parametrize(("part", "slip"), [(BELOW, 0.0), (1.2, 0.05 * np.sqrt(1.2**2 - 1))])
def test_friction_that_is_too_steep_for_a_step_trembles(part: float, slip: float) -> None:
    """A sliding disc comes to roll below the limit; beyond it, the slip jumps between both values."""
    system_ = standing(Sphere(0.1), 0.1, 1, friction=0.8)
    arm = 0.1 - 2.0 * GRAVITY / K / 2
    h, what = limit(*system_)
    assert (h, what) == (
        pytest.approx(2 * 0.05 / (0.8 * 2.0 * GRAVITY * (1 / 2 + arm**2 / 0.01)), rel=SHARP),
        "body 0 at rest on a plane",
    )
    model, params, state = system_
    state = state.replace(velocity=tensor([[0.02, 0.0]]), angular_velocity=tensor([[0.0]]))
    final = rollout(replace(model, dt=part * h), params, state, steps=1500).final
    assert abs(final.velocity.data[0, 0] + arm * final.angular_velocity.data[0, 0]) == pytest.approx(slip, abs=1e-4)


def test_friction_of_a_ball_in_space_has_two_sevenths_of_its_mass_to_move() -> None:
    model = RigidBodies(3, 0.01, ((Sphere(0.1),),), planes=(Plane((0.0, 0.0, 1.0)),), law="compliant", slip_speed=0.01)
    still = {"position": [[0.0, 0.0, 0.7]], "velocity": 0.0, "angular_velocity": 0.0}
    params: dict[str, Any] = {
        "mass": 2.0,
        "inertia": 0.4 * 2.0 * 0.1**2,
        "contact_stiffness": 1e6,
        "contact_damping": 0.0,
    }
    h, what = limit(*system(model, state=still, friction=0.5, **params))
    assert what == "body 0 at rest on a plane" and h * 0.5 * GRAVITY * 7 / 2 == pytest.approx(2 * 0.01, rel=1e-3)


def two_discs(*, law: str = "compliant", aside: float = 0.0, speed: float = 1.0, dt: float = 1e-3) -> System:
    model = RigidBodies(2, dt, ((Sphere(0.1),), (Sphere(0.05),)), law=law)
    state = {"position": [[0, 0], [3.0, aside]], "velocity": [[speed, 0], [-speed, 0]], "angular_velocity": 0.0}
    return system(model, state=state, mass=[1.0, 3.0], contact_stiffness=1e4, contact_damping=0.2, gravity=0.0)


def test_two_bodies_may_meet() -> None:
    h, what = limit(*two_discs())
    assert (
        h**2 * 1e4 * (1 + 0.2 * 2) * (1 + 1 / 3) == pytest.approx(2, rel=SHARP)
        and what == "the impact of bodies 0 and 1"
    )
    assert limit(*two_discs(law="impulse")) == (np.inf, "")


def test_the_compliant_law_refuses_bodies_that_could_jump_over_each_other() -> None:
    require_stable(*two_discs(speed=74.0))
    with pytest.raises(InputError, match=r"thicknesses, here 0\.15; found 0\.001, in which bodies 0 and 1 come 0"):
        require_stable(*two_discs(speed=76.0))
    for fine in (two_discs(speed=76.0, aside=0.2), two_discs(speed=-76.0), two_discs(speed=76.0, law="impulse")):
        require_stable(*fine)


def test_a_step_beyond_the_limit_is_refused_and_the_limiting_term_is_named() -> None:
    model, params, state = spring_between(0.0)
    with pytest.raises(InputError) as caught:
        require_stable(replace(model, dt=0.1), params, state)
    assert str(caught.value) == (
        "time.dt: the largest stable time step of this scene is 0.08479, by springs and joints, "
        "the fastest on free bodies being spring 0; found 0.1. Set "
        "time.dt to 0.076 or less, or soften or damp less what limits it."
    )
    require_stable(replace(model, dt=0.084), params, state)
    with pytest.raises(InputError, match="by a value that is not finite"):
        require_stable(model, params.replace(spring_stiffness=tensor([np.nan])), state)
    with pytest.raises(UnphysicalValue, match="mass: positive"):
        require_stable(model, params.replace(mass=tensor([-1.0, 2.0])), state)


def test_fixed_bodies_have_no_limit() -> None:
    model, params, state = spring_between(5.0)
    assert limit(replace(model, fixed=(0, 1)), params, state) == (np.inf, "")
    assert limit(replace(model, fixed=(1,)), params, state)[0] > limit(model, params, state)[0]


def test_a_scene_is_refused_as_it_is_loaded_and_a_search_at_its_start() -> None:
    spring = {"a": 1, "anchor_a": [0.1, 0.5], "anchor_b": [0.1, 1.5], "stiffness": 10.0}
    unknown = {"k": {"parameter": "spring_stiffness", "start": 1e5}}
    term = {"terms": [{"kind": "final_state", "nodes": [1], "target": [0.2, 0.5]}]}
    scene = build_scene(from_dict(sections(springs=[spring], unknowns=unknown, loss=term)))
    objective = scene.objective()
    with pytest.raises(InputError, match="free bodies being spring 0"):
        objective.scene_at(objective.start).require_stable()
    with pytest.raises(InputError, match="largest stable time step"):
        build_scene(from_dict(sections(springs=[{**spring, "stiffness": 1e5}])))
