"""Conversion of the sections of a scene of rigid bodies to a model and arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from simphys.autograd import tensor
from simphys.numerics.orientation import matrices
from simphys.scenefile.model_sections import fill_model
from simphys.scenefile.section import Fields
from simphys.simulator import Array
from simphys.simulators.rigid.joints.assembly import JointStart, assemble
from simphys.simulators.rigid.joints.joint import WORLD, Joint, Spring, tabulate_ends
from simphys.simulators.rigid.markers import RigidMarkers
from simphys.simulators.rigid.model import RigidBodies, State
from simphys.simulators.rigid.pseudo_inertia import find_gyration
from simphys.simulators.rigid.sections import (
    BallSection,
    BodySection,
    CuboidSection,
    JointSection,
    PlaneSection,
    RodSection,
    SpringSection,
)
from simphys.simulators.rigid.shapes import Box, Capsule, Plane, Shape, Sphere, fill_shapes

TRANSITION_RATE = 0.1
"""Transition rate of dry friction where none is given [rad/s] or [m/s]."""
START_NAMES = ("joint_start", "joint_rate")
"""Names by which unknowns and values call the start of joints."""
GYRATION = "gyration"
"""Name of the root of moments of inertia, from which they follow where it is unknown or has a value."""
ANCHOR_NAMES = ("joint_anchor_a", "joint_anchor_b", "centre_of_mass")
"""Names by which they call what the start of jointed bodies follows from, too."""
SPRING_ANCHOR_NAMES = ("spring_anchor_a", "spring_anchor_b")
"""Names by which they call the anchors of springs, which no start follows from."""


def build_model(config: Any) -> RigidBodies:
    """Return the model of a scene that is loaded and hence free of problems."""
    bodies, network = config.bodies, config.controller
    given = config.fields.params  # those of the whole scene: what one experiment asks for, the model of all has
    return fill_model(
        config,
        RigidBodies,
        shapes=tuple([tuple(shapes_of(body)) for body in bodies]),
        planes=tuple([plane_of(each) for each in config.planes]),
        joints=build_joints(config.joints, bodies),
        springs=build_springs(config.springs, bodies),
        fixed=fixed_bodies(bodies),
        apart=tuple([(pair[0], pair[1]) for pair in config.contact.apart]),
        joint_friction="joint_dry_friction" in given,
        free_anchors="joint_anchor_a" in given,
        full_inertia=given["inertia"].shape[1] == 6,
        controller=None if network is None else network.make(config.control),
    )


def _has_friction(config: Any) -> bool:
    """Tell if dry friction of a joint is given, or unknown, or has a value."""
    given = [joint for joint in config.joints if (joint.dry_friction, joint.transition_rate) != (None, None)]
    return bool(given) or not config.named_parameters.isdisjoint(("joint_dry_friction", "joint_transition_rate"))


def _has_anchors(config: Any) -> bool:
    """Tell if a centre of mass is given, or anchors or centres of mass are unknown or have values."""
    named = not config.named_parameters.isdisjoint((*ANCHOR_NAMES, *SPRING_ANCHOR_NAMES))
    return named or any(body.centre is not None for body in config.bodies)


def _has_tensors(config: Any) -> bool:
    """Tell if inertias are full tensors: in space, if one is given or their roots are unknown or have values."""
    given = any(isinstance(body.inertia, list) and len(body.inertia) == 6 for body in config.bodies)
    return given or (len(config.bodies[0].position) == 3 and GYRATION in config.named_parameters)


def build_fields(config: Any) -> Fields:
    """Return all parameters and state components in full length; with a controller, the control has size `waves`."""
    bodies, joints, springs = config.bodies, config.joints, config.springs
    environment, contact, controller = config.environment, config.contact, config.controller
    waves = getattr(config.control, "waves", 0)
    dim, n = len(bodies[0].position), len(bodies)
    spins = 1 if dim == 2 else 3
    masses, width = [mass_and_inertia(body) for body in bodies], 6 if _has_tensors(config) else spins
    motors = [joint.motor for joint in joints if joint.motor is not None]
    params = {
        "mass": np.array([mass for mass, _ in masses]),
        "inertia": np.array([np.append(each, [0.0] * (width - len(each))) for _, each in masses]),
        "gravity": np.array(environment.gravity or [0.0] * dim, float),
        "friction": np.array([body.friction for body in bodies]),
        "restitution": np.array([body.restitution for body in bodies]),
        "contact_stiffness": np.array(contact.stiffness or 0.0),
        "contact_damping": np.array(contact.damping),
        "spring_stiffness": np.array([each.stiffness for each in springs], float),
        "spring_damping": np.array([each.damping for each in springs], float),
        "spring_length": np.array([_length(each) for each in springs], float),
        "joint_damping": np.array([joint.damping for joint in joints], float),
        "motor_strength": np.array(motors, float),
        **{name: np.zeros(0) for name in ("hidden_weight", "hidden_bias", "output_weight", "output_bias")},
    }
    if _has_friction(config):
        params["joint_dry_friction"] = np.array([joint.dry_friction or 0.0 for joint in joints], float)
        rates = [joint.transition_rate or TRANSITION_RATE for joint in joints]
        params["joint_transition_rate"] = np.array(rates, float)
    if _has_anchors(config):
        params |= find_anchors("joint", build_joints(joints, bodies), bodies)
        params |= find_anchors("spring", build_springs(springs, bodies), bodies)
    channels = len(motors)
    if controller is not None and motors:
        senses = n * (dim * (dim + 1) + spins) + dim
        network = controller.make(config.control).network(senses=senses, outputs=channels)
        params |= network.initial_arrays(controller.seed)
        channels = waves
    started = have_starts(joints, config.named_parameters)
    return Fields(
        params=params,
        state=start_state(bodies, joints),
        design=(start_joints(joints) if started else {}) | _gyrations(config, masses),
        nodes=n,
        channels=channels or None,
        markers=RigidMarkers(n, dim, conservative=config.simulator.law == "impulse"),
    )


def _gyrations(config: Any, masses: Sequence[tuple[float, Array]]) -> dict[str, Array]:
    """Return the roots of all inertias where one of them is unknown or has a value."""
    if GYRATION not in config.named_parameters:
        return {}
    found = [find_gyration(mass, inertia) for mass, inertia in masses]
    assert all(each is not None for each in found), "checked on loading the scene"
    return {GYRATION: np.array(found)}


def are_started(joints: Sequence[JointSection]) -> bool:
    """Return True if a joint says where it starts, or how fast."""
    return any((joint.start, joint.rate) != (None, None) for joint in joints)


def have_starts(joints: Sequence[JointSection], named: Set[str]) -> bool:
    """Return True if joints start somewhere: by themselves, or by an unknown or a value among those that are `named`.

    Bodies that joints connect also follow unknown anchors and centres of mass.
    """
    moved = bool(joints) and not named.isdisjoint(ANCHOR_NAMES)
    return moved or not named.isdisjoint(START_NAMES) or are_started(joints)


def start_joints(joints: Sequence[JointSection]) -> dict[str, Array]:
    """Return where joints start, and how fast."""
    return {
        "joint_start": np.array([joint.start or 0.0 for joint in joints], float),
        "joint_rate": np.array([joint.rate or 0.0 for joint in joints], float),
    }


def start_state(bodies: Sequence[BodySection], joints: Sequence[JointSection]) -> dict[str, Array]:
    """Return poses and velocities of bodies, moved to where their joints start."""
    dim = len(bodies[0].position)
    spins = 1 if dim == 2 else 3
    given = {
        "position": np.array([body.position for body in bodies], float),
        "orientation": np.array([orientation(body) for body in bodies]),
        "velocity": np.array([body.velocity or [0.0] * dim for body in bodies], float),
        "angular_velocity": np.array([np.broadcast_to(body.angular_velocity or 0.0, spins) for body in bodies], float),
    }
    if not are_started(joints):
        return given
    return follow_joints(build_joints(joints, bodies), fixed_bodies(bodies), given | start_joints(joints))


def follow_joints(joints: Sequence[Joint], fixed: Sequence[int], given: Mapping[str, Array]) -> dict[str, Array]:
    """Return poses and velocities of bodies that have followed their joints, given those before and the joints' own."""
    values = {name: tensor(each, dtype=np.float64) for name, each in given.items()}
    state = State(**{name: values[name] for name in State.names()})
    return assemble(joints, fixed, state, JointStart(*[values[name] for name in START_NAMES])).arrays()


def build_joints(joints: Sequence[JointSection], bodies: Sequence[BodySection]) -> tuple[Joint, ...]:
    """Return the joints in the form of the model."""
    return tuple([_joint(each, bodies) for each in joints])


def build_springs(springs: Sequence[SpringSection], bodies: Sequence[BodySection]) -> tuple[Spring, ...]:
    """Return the spring-dampers in the form of the model."""
    return tuple([_spring(each, bodies) for each in springs])


def find_anchors(name: str, links: Sequence[Joint | Spring], bodies: Sequence[BodySection]) -> dict[str, Array]:
    """Return anchors of joints or springs, which is the `name`, and centres of mass in the frames of their bodies."""
    dim = len(bodies[0].position)
    centres = np.array([centre_of(body) for body in bodies] + [[0.0] * dim])  # the last one is the world's
    ends = tabulate_ends(links, dim)
    own, its = ends.anchor_a + centres[ends.a], ends.anchor_b + centres[ends.b]
    return {f"{name}_anchor_a": own, f"{name}_anchor_b": its, "centre_of_mass": centres[:-1]}


def centre_of(body: BodySection) -> list[float]:
    """Return the centre of mass in the frame of a body."""
    return body.centre or [0.0] * len(body.position)


def fixed_bodies(bodies: Sequence[BodySection]) -> tuple[int, ...]:
    """Return the indices of the bodies that no force moves."""
    return tuple([index for index, body in enumerate(bodies) if body.fixed])


def shapes_of(body: BodySection) -> list[Shape]:
    """Return the body's shapes in the form of the model."""
    shapes: list[Shape] = []
    for each in body.shapes:
        offset = None if each.offset is None else tuple(each.offset)
        match each:
            case BallSection():
                shapes.append(Sphere(each.radius, offset))
            case CuboidSection():
                shapes.append(Box(tuple(each.half), offset))
            case RodSection():
                shapes.append(Capsule(each.radius, each.half_length, offset))
    return shapes


def mass_and_inertia(body: BodySection) -> tuple[float, Array]:
    """Return mass [kg] and principal moments [S]: given, or those of the shapes; 1 if a fixed body has none."""
    dim = len(body.position)
    filled = fill_shapes(shapes_of(body), dim)
    density = body.density or (body.mass or 1.0) / (filled.volume or 1.0)
    mass = body.mass or (density * filled.volume or 1.0)  # a fixed body without matter is a ball of 1 kg
    if body.inertia is not None:
        return mass, np.ravel(body.inertia).astype(float)
    return mass, density * np.diag(filled.inertia) if filled.volume else np.ones(len(filled.inertia))


def plane_of(section: PlaneSection) -> Plane:
    """Return the plane with a unit normal."""
    length = math.hypot(*section.normal)  # also of numbers whose squares underflow
    return Plane(tuple([each / length for each in section.normal]), section.offset / length)


def orientation(body: BodySection) -> Array:
    """Return the angle [1] or the unit quaternion [4]."""
    given = np.ravel(0.0 if body.orientation is None else body.orientation).astype(float)
    if len(body.position) == 2:
        return given
    if len(given) == 4:
        return given / np.linalg.norm(given)
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_rotvec(given * np.ones(3)).as_quat(), 1)


def rotation_matrix(body: BodySection) -> Array:
    """Return the rotation matrix from the body frame to the world frame, [dim, dim]."""
    return matrices(orientation(body))


def find_frame(body: BodySection) -> tuple[Array, Array]:
    """Return where the frame of a body begins [dim], and its rotation matrix."""
    turn = rotation_matrix(body)
    return np.array(body.position, float) - turn @ centre_of(body), turn


def _joint(section: JointSection, bodies: Sequence[BodySection]) -> Joint:
    a, b = bodies[section.a], None if section.b is None else bodies[section.b]
    anchor = section.anchor or a.position
    axis = None
    if section.axis is not None:
        direction = np.array(section.axis, float) @ rotation_matrix(a)
        axis = tuple((direction / np.linalg.norm(direction)).tolist())
    return Joint(
        section.kind,
        section.a,
        WORLD if section.b is None else section.b,
        _to_frame(anchor, a),
        _to_frame(anchor, b),
        axis=axis,
        relative=_relative_orientation(orientation(a), None if b is None else orientation(b)),
        motor=section.motor is not None,
    )


def _spring(section: SpringSection, bodies: Sequence[BodySection]) -> Spring:
    a, b = bodies[section.a], None if section.b is None else bodies[section.b]
    ends = _to_frame(section.anchor_a, a), _to_frame(section.anchor_b, b)
    return Spring(section.a, WORLD if section.b is None else section.b, *ends)


def _to_frame(place: Sequence[float], body: BodySection | None) -> tuple[float, ...]:
    """Express a point of the world along the axes of a body, from its centre of mass, or in the world (None)."""
    if body is None:
        return tuple(place)
    return tuple(((np.array(place, float) - body.position) @ rotation_matrix(body)).tolist())


def _relative_orientation(a: Array, b: Array | None) -> tuple[float, ...]:
    """Return the orientation of the frame of b, or the world's, relative to that of a."""
    if len(a) == 1:
        return (float((0.0 if b is None else b[0]) - a[0]),)
    w, v = a[0], -a[1:]
    s, u = (1.0, np.zeros(3)) if b is None else (b[0], b[1:])
    return (float(w * s - v @ u), *(w * u + s * v + np.cross(v, u)).tolist())


def _length(spring: SpringSection) -> float:
    if spring.length is not None:
        return spring.length
    return float(np.linalg.norm(np.subtract(spring.anchor_a, spring.anchor_b)))
