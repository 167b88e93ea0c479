"""Checks inside and between the sections that describe rigid bodies, and between them and the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.scenefile.controller import check_controller
from simphys.scenefile.section import NOTHING, Key, Problem, Words
from simphys.scenefile.shared import check_given, check_turn, check_unused

from . import inertia_checks, target_checks
from .contacts import overlap
from .contacts.candidates import list_pairs
from .scene import are_started, find_frame, fixed_bodies, have_starts, plane_of, shapes_of, start_state
from .sections import BodySection, ContactSection, JointSection, PlaneSection
from .shapes import fill_shapes
from .start_checks import Start

ROUNDING = 1e-9
"""Relative tolerance of overlaps and centres of mass: shapes that touch only because of rounded decimals are valid."""


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Return all problems. An invalid section is absent, and checks that need it are skipped."""
    bodies: Sequence[BodySection] | None = sections.get("bodies")
    if bodies is None:
        return []
    found = list(_check_sections(sections, len(bodies[0].position)))
    if found or any(sections.get(name) is None for name in ("planes", "joints", "contact", "simulator")):
        return found
    planes, joints, law = sections["planes"], sections["joints"], sections["simulator"].law
    named = list(_list_named(sections))
    sought, *given = [{each.parameter for each in section.values()} for _, section in named]
    names = sought.union(*given)
    start = Start(bodies, joints, started=have_starts(joints, names))
    found = [*start.check_joints(), *inertia_checks.problems(bodies, named)]
    found = found or list(_check_places(_started(bodies, joints), planes, joints, sections["contact"]))
    found = found or list(start.check_named(named))
    loss = sections.get("loss")
    if not found and loss is not None and "position" not in sought and "centre_of_mass" not in names:
        found = list(target_checks.problems(bodies, planes, loss.terms, is_hard=law == "impulse"))
    return found


def _check_sections(sections: Mapping[str, Any], dim: int) -> Iterator[Problem]:
    """Check each section by itself, in a space of `dim` dimensions."""
    for name in ("bodies", "joints", "springs"):
        yield from _check_names(name, [each.name for each in sections.get(name) or []])
    for place, body in enumerate(sections["bodies"]):
        yield from _check_body(("bodies", place), body, dim)
    for name in ("joints", "springs"):
        for place, link in enumerate(sections.get(name) or []):
            if link.a == link.b:
                yield Problem(
                    (name, place, "b"), "must differ from a", link.b, "Name another, or omit b for the world."
                )
    for place, joint in enumerate(sections.get("joints") or []):
        yield from _check_joint(("joints", place), joint, dim)
    simulator, contact, controller = map(sections.get, ("simulator", "contact", "controller"))
    if contact is not None and simulator is not None:
        compliant, given = simulator.law == "compliant", contact.stiffness
        what = "the compliant law"
        yield from check_given(("contact", "stiffness"), given, what, needed=compliant, example="1e4")
    if controller is not None:
        drives = any([joint.motor is not None for joint in sections.get("joints") or []])
        remedy = "Add a motor to a joint, or drop this section."
        yield from check_controller(sections.get("control"), drives=drives, remedy=remedy)


def _check_names(section: str, names: Sequence[str | None]) -> Iterator[Problem]:
    word = {"bodies": "body", "joints": "joint", "springs": "spring"}[section]
    for place, name in enumerate(names):
        if name is not None and name in names[:place]:
            constraint, remedy = f"must be the name of one {word} only", "Give it another name."
            yield Problem((section, place, "name"), constraint, name, remedy)


def _check_body(key: Key, body: BodySection, dim: int) -> Iterator[Problem]:
    turn = "a quaternion (w, x, y, z) or a rotation vector [rad]"
    yield from check_turn((*key, "orientation"), body.orientation, dim, "an angle [rad]", turn)
    yield from check_turn((*key, "angular_velocity"), body.angular_velocity, dim, "a number", "a vector")
    inertia = "three numbers, or the six of a tensor"
    yield from check_turn((*key, "inertia"), body.inertia, dim, "a number", inertia)
    if isinstance(body.orientation, list) and len(body.orientation) == 4 and not any(body.orientation):
        remedy = "Give [1.0, 0.0, 0.0, 0.0] for none."
        yield Problem((*key, "orientation"), "a quaternion must not be 0", body.orientation, remedy)
    if not body.fixed:
        yield from _check_matter(key, body)


def _check_matter(key: Key, body: BodySection) -> Iterator[Problem]:
    """Check that mass and inertia follow from the given values, and that the frame's origin is the centre of mass."""
    given = [name for name in ("mass", "density") if getattr(body, name) is not None]
    if len(given) != 1:
        found = Words("both") if given else NOTHING
        yield Problem(key, "a body that moves needs one of mass and density", found, "Give exactly one.")
        return
    filled = fill_shapes(shapes_of(body), len(body.position))
    if body.centre is not None and (body.mass is None or body.inertia is None):
        remedy = "Give both: shapes do not say what is inside."
        yield Problem((*key, "centre"), "a body with a centre needs mass and inertia", body.centre, remedy)
        return
    if not filled.volume:
        if body.mass is None or body.inertia is None:
            remedy = "Give both, or add shapes."
            yield Problem(key, "a body without shapes needs mass and inertia", NOTHING, remedy)
        return
    if body.inertia is not None:
        return
    size = float(np.sqrt(np.trace(filled.inertia) / filled.volume))
    if (abs(filled.centre) > ROUNDING * size).any():
        constraint = "the shapes' centre of mass must be at the origin of the body's frame"
        remedy = "Subtract it from each offset and add it to the position, or give mass and inertia."
        yield Problem((*key, "shapes"), constraint, filled.centre.round(12).tolist(), remedy)
    elif abs(filled.inertia - np.diag(np.diag(filled.inertia))).max() > ROUNDING * np.trace(filled.inertia):
        constraint = "the shapes' principal axes must be those of the body's frame"
        remedy = "Arrange them symmetrically, rotate the body, or give its inertia."
        yield Problem((*key, "shapes"), constraint, Words("rotated axes"), remedy)


def _check_joint(key: Key, joint: JointSection, dim: int) -> Iterator[Problem]:
    kind = f"a {joint.kind} joint"
    if joint.kind != "prismatic":
        yield from check_given((*key, "anchor"), joint.anchor, kind, needed=True)
    for name in ("motor", "dry_friction", "transition_rate", "start", "rate") if joint.kind == "fixed" else ():
        yield from check_unused((*key, name), getattr(joint, name), "a fixed joint has no free motion")
    if joint.kind == "prismatic" or (joint.kind == "revolute" and dim == 3):
        yield from check_given((*key, "axis"), joint.axis, kind, needed=True)
    else:
        yield from check_unused((*key, "axis"), joint.axis, f"{kind} in {dim}-D has no axis")


def _list_named(sections: Mapping[str, Any]) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """List the sections of unknowns and values, with their keys; those of an experiment hold what all have."""
    yield ("unknowns",), sections.get("unknowns") or {}
    experiments = sections.get("experiments")
    if not experiments:
        yield ("values",), sections.get("values") or {}
    for place, experiment in enumerate(experiments or []):
        yield ("experiments", place, "values"), experiment.values


def _started(bodies: Sequence[BodySection], joints: Sequence[JointSection]) -> Sequence[BodySection]:
    """Return the bodies where their joints start."""
    if not are_started(joints):
        return bodies
    state = start_state(bodies, joints)
    changes = zip(bodies, state["position"].tolist(), state["orientation"].tolist(), strict=True)
    return [body.model_copy(update={"position": x, "orientation": q if len(q) > 1 else q[0]}) for body, x, q in changes]


def _check_places(
    bodies: Sequence[BodySection],
    planes: Sequence[PlaneSection],
    joints: Sequence[JointSection],
    contact: ContactSection,
) -> Iterator[Problem]:
    """Check that bodies start apart from each other and from the planes, except pairs that never touch."""
    cores = [
        [overlap.place_core(shape, place, turn) for shape in shapes_of(body)]
        for body, (place, turn) in zip(bodies, map(find_frame, bodies), strict=True)
    ]
    for body, own in enumerate(cores):
        for place, plane in enumerate(planes):
            depth = -overlap.gap_to_plane(own, plane_of(plane))
            if depth > ROUNDING * _size(own) and not bodies[body].fixed:
                constraint = "bodies start outside of planes"
                found = f"body {body}, which is {depth:.3g} deep in plane {place}"
                yield Problem(("bodies", body, "position"), constraint, Words(found), "Move it out.")
    apart = [*contact.apart, *[(joint.a, joint.b) for joint in joints]]
    for a, b in list_pairs(len(bodies), fixed_bodies(bodies), apart):
        depth = -overlap.gap(cores[a], cores[b])
        if depth > ROUNDING * max(_size(cores[a]), _size(cores[b])):
            found = f"bodies {a} and {b}, which overlap by {depth:.3g}"
            remedy = f"Move them apart, or exclude their contact: contact.apart = [[{a}, {b}]]."
            yield Problem(("bodies", b, "position"), "bodies must not overlap", Words(found), remedy)


def _size(cores: Sequence[overlap.Placed]) -> float:
    return max([abs(each.centre).max() + abs(each.edges).sum() + each.radius for each in cores], default=0.0)
