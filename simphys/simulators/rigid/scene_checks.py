"""Checks inside and between the sections that describe rigid bodies, and between them and the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from simphys.scenefile.control import PatternSection
from simphys.scenefile.section import NOTHING, Key, Problem, Words
from simphys.simulators.rigid import inertia_checks, target_checks, unknown_checks, value_checks
from simphys.simulators.rigid.contacts import overlap
from simphys.simulators.rigid.joints.assembly import find_tree
from simphys.simulators.rigid.scene import (
    are_named,
    are_started,
    build_joints,
    find_frame,
    fixed_bodies,
    have_starts,
    plane_of,
    shapes_of,
    start_state,
)
from simphys.simulators.rigid.sections import (
    BodySection,
    ContactSection,
    ControllerSection,
    EnvironmentSection,
    JointSection,
    PlaneSection,
    RigidSimulator,
    SpringSection,
)
from simphys.simulators.rigid.solids import fill_shapes

START = ("start", "rate")
"""Keys of a joint that say where bodies start."""
ROUNDING = 1e-9
"""Relative tolerance of overlaps and centres of mass: shapes that touch only because of rounded decimals are valid."""


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Return all problems. An invalid section is absent, and checks that need it are skipped.

    `waves`: number of waves of the control's pattern; None if it is no pattern.
    """
    simulator: RigidSimulator | None = sections.get("simulator")
    bodies: Sequence[BodySection] | None = sections.get("bodies")
    planes: Sequence[PlaneSection] | None = sections.get("planes")
    joints: Sequence[JointSection] | None = sections.get("joints")
    springs: Sequence[SpringSection] | None = sections.get("springs")
    environment: EnvironmentSection | None = sections.get("environment")
    contact: ContactSection | None = sections.get("contact")
    controller: ControllerSection | None = sections.get("controller")
    control: Any = sections.get("control")
    loss: Any = sections.get("loss")
    unknowns: Mapping[str, Any] | None = sections.get("unknowns")
    waves = control.waves if isinstance(control, PatternSection) else None
    if bodies is None:
        return []
    if not bodies:
        return [_problem(("bodies",), "there must be a body", NOTHING, "Add a section [[bodies]].")]
    dim, n = len(bodies[0].position), len(bodies)
    found: list[Problem] = []
    for place, body in enumerate(bodies):
        found += _check_body(("bodies", place), body, dim)
    for section, tables in (("bodies", bodies), ("joints", joints or []), ("springs", springs or [])):
        found += _check_names(section, [each.name for each in tables])
    for place, plane in enumerate(planes or []):
        found += _check_direction(("planes", place, "normal"), plane.normal, dim)
    for place, joint in enumerate(joints or []):
        found += _check_ends(("joints", place), joint, n)
        found += _check_joint(("joints", place), joint, dim)
    for place, spring in enumerate(springs or []):
        found += _check_ends(("springs", place), spring, n)
        for name in ("anchor_a", "anchor_b"):
            found += _check_axes(("springs", place, name), getattr(spring, name), dim)
    if environment is not None and environment.gravity is not None:
        found += _check_axes(("environment", "gravity"), environment.gravity, dim)
    if contact is not None:
        found += _check_contact(contact, simulator, n)
    if controller is not None:
        found += _check_controller(controller, joints, waves, dim)
    if found or planes is None or joints is None or contact is None or simulator is None:
        return found
    named = list(_list_named(sections))
    given = [section for _, section in named]
    started = have_starts(joints, *given)
    found += _check_starts(bodies, joints, started=started)
    found += inertia_checks.problems(bodies, named)
    if not found:
        found += _check_places(_started(bodies, joints), planes, joints, contact)
    if not found:
        found += unknown_checks.problems(bodies, joints, named, started=started)
    for key, values in [] if found else named[1:]:
        found += value_checks.problems(key, bodies, joints, values, started=started)
    moves = are_named(("position",), unknowns or {}) or are_named(("centre_of_mass",), *given)
    if not found and loss is not None and not moves:
        found += target_checks.problems(bodies, planes, loss.terms, is_hard=simulator.law == "impulse")
    return found


def _check_names(section: str, names: Sequence[str | None]) -> Iterator[Problem]:
    word = {"bodies": "body", "joints": "joint", "springs": "spring"}[section]
    for place, name in enumerate(names):
        if name is not None and name in names[:place]:
            constraint, remedy = f"must be the name of one {word} only", "Give it another name."
            yield _problem((section, place, "name"), constraint, name, remedy)


def _check_body(key: Key, body: BodySection, dim: int) -> Iterator[Problem]:
    wrong = list(_check_vectors(key, body, dim))
    yield from wrong
    if not (wrong or body.fixed):
        yield from _check_matter(key, body)


def _check_vectors(key: Key, body: BodySection, dim: int) -> Iterator[Problem]:
    yield from _check_axes((*key, "position"), body.position, dim)
    for name in ("velocity", "centre"):
        if (vector := getattr(body, name)) is not None:
            yield from _check_axes((*key, name), vector, dim)
    for place, shape in enumerate(body.shapes):
        for name in ("offset", "half"):
            if (value := getattr(shape, name, None)) is not None:
                yield from _check_axes((*key, "shapes", place, name), value, dim)
    for name, in_plane, in_space in (
        ("orientation", "an angle [rad]", "a quaternion (w, x, y, z) or a rotation vector [rad]"),
        ("angular_velocity", "a number", "a vector"),
        ("inertia", "a number", "three numbers, or the six of a tensor"),
    ):
        value = getattr(body, name)
        if value is not None and isinstance(value, list) != (dim == 3):
            wanted = in_plane if dim == 2 else in_space
            yield _problem((*key, name), f"in {dim}-D it is {wanted}", value, f"Give {wanted}.")
    if isinstance(body.orientation, list) and len(body.orientation) == 4 and not any(body.orientation):
        remedy = "Give [1.0, 0.0, 0.0, 0.0] for none."
        yield _problem((*key, "orientation"), "a quaternion must not be 0", body.orientation, remedy)


def _check_matter(key: Key, body: BodySection) -> Iterator[Problem]:
    """Check that mass and inertia follow from the given values, and that the frame's origin is the centre of mass."""
    given = [name for name in ("mass", "density") if getattr(body, name) is not None]
    if len(given) != 1:
        found = Words("both") if given else NOTHING
        yield _problem(key, "a body that moves needs one of mass and density", found, "Give exactly one.")
        return
    filled = fill_shapes(shapes_of(body), len(body.position))
    if body.centre is not None and (body.mass is None or body.inertia is None):
        remedy = "Give both: shapes do not say what is inside."
        yield _problem((*key, "centre"), "a body with a centre needs mass and inertia", body.centre, remedy)
        return
    if not filled.volume:
        if body.mass is None or body.inertia is None:
            remedy = "Give both, or add shapes."
            yield _problem(key, "a body without shapes needs mass and inertia", NOTHING, remedy)
        return
    if body.inertia is not None:
        return
    size = float(np.sqrt(np.trace(filled.inertia) / filled.volume))
    if (abs(filled.centre) > ROUNDING * size).any():
        constraint = "the shapes' centre of mass must be at the origin of the body's frame"
        remedy = "Subtract it from each offset and add it to the position, or give mass and inertia."
        yield _problem((*key, "shapes"), constraint, filled.centre.round(12).tolist(), remedy)
    elif abs(filled.inertia - np.diag(np.diag(filled.inertia))).max() > ROUNDING * np.trace(filled.inertia):
        constraint = "the shapes' principal axes must be those of the body's frame"
        remedy = "Arrange them symmetrically, rotate the body, or give its inertia."
        yield _problem((*key, "shapes"), constraint, Words("rotated axes"), remedy)


def _check_ends(key: Key, link: JointSection | SpringSection, n: int) -> Iterator[Problem]:
    for name, body in (("a", link.a), ("b", link.b)):
        if body is not None:
            yield from _check_index((*key, name), body, n)
    if link.a == link.b:
        yield _problem((*key, "b"), "must differ from a", link.b, "Name another, or omit b for the world.")


def _check_joint(key: Key, joint: JointSection, dim: int) -> Iterator[Problem]:
    if joint.anchor is None and joint.kind != "prismatic":
        yield _problem((*key, "anchor"), f"a {joint.kind} joint needs an anchor", NOTHING, "Give a point in the world.")
    elif joint.anchor is not None:
        yield from _check_axes((*key, "anchor"), joint.anchor, dim)
    if joint.motor is not None and joint.kind == "fixed":
        yield _problem((*key, "motor"), "a fixed joint has no free motion to drive", joint.motor, "Remove the motor.")
    for name in ("dry_friction", "transition_rate"):
        given = getattr(joint, name)
        if given is not None and joint.kind == "fixed":
            yield _problem((*key, name), "a fixed joint has no free motion that rubs", given, f"Remove {name}.")
    if joint.kind == "prismatic" or (joint.kind == "revolute" and dim == 3):
        if joint.axis is None:
            yield _problem((*key, "axis"), f"a {joint.kind} joint needs an axis", NOTHING, "Give a direction.")
        else:
            yield from _check_direction((*key, "axis"), joint.axis, dim)
    elif joint.axis is not None:
        yield _problem((*key, "axis"), f"a {joint.kind} joint in {dim}-D has no axis", joint.axis, "Remove the axis.")


def _list_named(sections: Mapping[str, Any]) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """List the sections of unknowns and values, with their keys; those of an experiment hold what all have."""
    yield ("unknowns",), sections.get("unknowns") or {}
    experiments = sections.get("experiments")
    if not experiments:
        yield ("values",), sections.get("values") or {}
    for place, experiment in enumerate(experiments or []):
        yield ("experiments", place, "values"), experiment.values


def _check_starts(bodies: Sequence[BodySection], joints: Sequence[JointSection], *, started: bool) -> Iterator[Problem]:
    """Check that joints that start somewhere leave bodies free to follow."""
    given = [(place, name) for place, joint in enumerate(joints) for name in START if getattr(joint, name) is not None]
    if not started:
        return
    links, closing = find_tree(build_joints(joints, bodies), len(bodies), fixed_bodies(bodies))
    for place, name in given:
        if joints[place].kind == "fixed":
            constraint = "a fixed joint has no free motion to start"
            yield _problem(("joints", place, name), constraint, getattr(joints[place], name), f"Remove {name}.")
    for place in closing if given else []:
        constraint = "joints whose start or rate is given form a tree"
        found, remedy = Words(f"joint {place} closes a loop"), "Give poses and velocities in [[bodies]] instead."
        yield _problem(("joints", given[0][0], given[0][1]), constraint, found, remedy)
    for child in [link.child for link in links]:
        for name in ("velocity", "angular_velocity"):
            if (velocity := getattr(bodies[child], name)) is not None:
                constraint = "velocities of bodies follow from the start and rate of joints"
                yield _problem(("bodies", child, name), constraint, velocity, f"Give joints.rate, or remove {name}.")


def _started(bodies: Sequence[BodySection], joints: Sequence[JointSection]) -> Sequence[BodySection]:
    """Return the bodies where their joints start."""
    if not are_started(joints):
        return bodies
    state = start_state(bodies, joints)
    changes = zip(bodies, state["position"].tolist(), state["orientation"].tolist(), strict=True)
    return [body.model_copy(update={"position": x, "orientation": q if len(q) > 1 else q[0]}) for body, x, q in changes]


def _check_contact(contact: ContactSection, simulator: RigidSimulator | None, n: int) -> Iterator[Problem]:
    for place, pair in enumerate(contact.apart):
        for side, body in enumerate(pair):
            yield from _check_index(("contact", "apart", place, side), body, n)
        if pair[0] == pair[1]:
            yield _problem(("contact", "apart", place), "must be two bodies", pair, "Name another, or drop it.")
    if simulator is not None and (simulator.law == "compliant") != (contact.stiffness is not None):
        key: Key = ("contact", "stiffness")
        if contact.stiffness is None:
            yield _problem(key, "the compliant law needs a stiffness", NOTHING, "Add stiffness = 1e4, for example.")
        else:
            remedy = 'Drop it, or set simulator.law = "compliant".'
            yield _problem(key, "belongs to the compliant law", contact.stiffness, remedy)


def _check_controller(
    controller: ControllerSection, joints: Sequence[JointSection] | None, waves: int | None, dim: int
) -> Iterator[Problem]:
    key: Key = ("controller",)
    yield from _check_axes((*key, "goal"), controller.goal, dim)
    if joints is not None and all(joint.motor is None for joint in joints):
        yield _problem(key, "needs motors to drive", NOTHING, "Add a motor to a joint, or drop this section.")
    if waves is None:
        remedy = 'Give [control] with kind = "pattern", waves and frequency.'
        yield _problem(key, "needs a pattern for its control", NOTHING, remedy)


def _check_places(
    bodies: Sequence[BodySection],
    planes: Sequence[PlaneSection],
    joints: Sequence[JointSection],
    contact: ContactSection,
) -> Iterator[Problem]:
    """Check that bodies start apart from each other and from the planes, except pairs that never touch."""
    cores = [
        [overlap.make_core(shape, place, turn) for shape in shapes_of(body)]
        for body, (place, turn) in zip(bodies, map(find_frame, bodies), strict=True)
    ]
    never = {frozenset(pair) for pair in contact.apart} | {frozenset((joint.a, joint.b)) for joint in joints}
    for body, own in enumerate(cores):
        for place, plane in enumerate(planes):
            depth = -overlap.gap_to_plane(own, plane_of(plane))
            if depth > ROUNDING * _size(own) and not bodies[body].fixed:
                constraint = "bodies start outside of planes"
                found = f"body {body}, which is {depth:.3g} deep in plane {place}"
                yield _problem(("bodies", body, "position"), constraint, Words(found), "Move it out.")
    for a, b in combinations(range(len(bodies)), 2):
        if frozenset((a, b)) in never or (bodies[a].fixed and bodies[b].fixed):
            continue
        depth = -overlap.gap(cores[a], cores[b])
        if depth > ROUNDING * max(_size(cores[a]), _size(cores[b])):
            found = f"bodies {a} and {b}, which overlap by {depth:.3g}"
            remedy = f"Move them apart, or exclude their contact: contact.apart = [[{a}, {b}]]."
            yield _problem(("bodies", b, "position"), "bodies must not overlap", Words(found), remedy)


def _size(cores: Sequence[overlap.Core]) -> float:
    return max([abs(each.centre).max() + abs(each.edges).sum() + each.radius for each in cores], default=0.0)


def _check_direction(key: Key, value: list[float], dim: int) -> Iterator[Problem]:
    yield from _check_axes(key, value, dim)
    if not any(value):
        yield _problem(key, "must be a direction", value, "Give a vector other than 0.")


def _check_axes(key: Key, value: Sequence[float], dim: int) -> Iterator[Problem]:
    if len(value) != dim:
        constraint = f"must have {dim} elements, one for each axis of the first body's position"
        yield _problem(key, constraint, value, f"It has {len(value)}: give {dim}.")


def _check_index(key: Key, body: int, n: int) -> Iterator[Problem]:
    if body >= n:
        constraint = f"must be the index of one of {n} bodies, counted from 0"
        yield _problem(key, constraint, body, f"Give an index from 0 to {n - 1}.")


def _problem(key: Key, constraint: str, found: object, remedy: str) -> Problem:
    return Problem(key=key, constraint=constraint, found=found, remedy=remedy)
