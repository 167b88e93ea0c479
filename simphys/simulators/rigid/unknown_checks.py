"""Checks for unknown starts, anchors and centres of bodies that joints or contacts do not let move there, or that no
motion determines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from simphys.scenefile.fit_sections import UnknownSection
from simphys.scenefile.section import Key, Problem, Words
from simphys.scenefile.unknown_entries import flat_entries, unknown_problems
from simphys.simulators.rigid.joints.assembly import find_tree
from simphys.simulators.rigid.joints.joint import WORLD
from simphys.simulators.rigid.scene import ANCHOR_NAMES, START_NAMES, build_joints, fixed_bodies, start_state
from simphys.simulators.rigid.sections import BodySection, ContactSection, JointSection, PlaneSection

INSTEAD = {
    "position": "joint_start",
    "orientation": "joint_start",
    "velocity": "joint_rate",
    "angular_velocity": "joint_rate",
}


Named = Sequence[tuple[Key, Mapping[str, Any]]]
"""Keys of sections of unknowns and values, with what they hold by label."""


def problems(
    bodies: Sequence[BodySection], joints: Sequence[JointSection], named: Named, *, started: bool
) -> Iterator[Problem]:
    """Yield the problems of unknown starts; other checks report entries and values that do not fit their field.

    Args:
        started: True if joints say where bodies start, so that what hangs on a joint moves along.
    """
    unknowns: Mapping[str, UnknownSection] = named[0][1]
    state = start_state(bodies, joints)
    links, closing = find_tree(build_joints(joints, bodies), len(bodies), fixed_bodies(bodies))
    hanging = {link.child: link.joint for link in links}
    jointed = {body for joint in joints for body in (joint.a, WORLD if joint.b is None else joint.b)} - {WORLD}
    sought = np.zeros(state["orientation"].shape, bool)
    if closing:
        yield from _check_loops(named, closing[0])
    for label, unknown in unknowns.items():
        key, name = ("unknowns", label, "parameter"), unknown.parameter
        if name not in INSTEAD or unknown_problems({label: unknown}, state):
            continue
        entries = flat_entries(unknown, state[name].shape)
        if name == "orientation":
            sought.reshape(-1)[entries] = True
        for body in np.unique(entries // state[name].shape[1]).tolist():
            if problem := _check_jointed(key, name, body, hanging, stays=body in jointed and not started):
                yield problem
                break
    if len(bodies[0].position) == 3:
        yield from _check_lengths(unknowns, state["orientation"], sought)


def _check_loops(named: Named, closing: int) -> Iterator[Problem]:
    """Check that nothing moves joints where one of them closes a loop: their bodies cannot follow."""
    for section, each in named:
        for label, one in each.items():
            if one.parameter not in (*START_NAMES, *ANCHOR_NAMES):
                continue
            what = "start or rate" if one.parameter in START_NAMES else "anchors or centres of mass"
            has = "is" if one.parameter in START_NAMES else "are"
            state = "unknown" if section == ("unknowns",) else "given by a value"
            yield Problem(
                key=(*section, label, "parameter"),
                constraint=f"joints whose {what} {has} {state} form a tree",
                found=Words(f"joint {closing} closes a loop"),
                remedy="Give poses and velocities in [[bodies]], and leave this out.",
            )


def check_centres(
    bodies: Sequence[BodySection],
    planes: Sequence[PlaneSection],
    joints: Sequence[JointSection],
    contact: ContactSection,
    named: Named,
) -> Iterator[Problem]:
    """Check that bodies whose centre of mass is not the origin of their frame touch nothing: contacts count from it."""
    touching = _touching(bodies, planes, joints, contact)
    constraint, remedy = (
        "contacts count from the centre of mass, so it is the origin of the frame",
        "Leave it out, remove the shapes, or exclude the contacts (contact.apart).",
    )
    for place in sorted(touching):
        if bodies[place].centre is not None:
            found = Words(f"a centre of body {place}, which may touch others")
            yield Problem(key=("bodies", place, "centre"), constraint=constraint, found=found, remedy=remedy)
    shape = (len(bodies), len(bodies[0].position))
    for section, each in named:
        for label, one in each.items():
            if one.parameter != "centre_of_mass":
                continue
            moved = {entry // shape[1] for entry in _entries(one, shape)} & touching
            if moved:
                found = Words(f"the centre of mass of body {min(moved)}, which may touch others")
                yield Problem(key=(*section, label, "parameter"), constraint=constraint, found=found, remedy=remedy)


def _entries(one: Any, shape: tuple[int, int]) -> list[int]:
    """List the entries of an unknown or a value; none if they do not exist, which other checks report."""
    try:
        return [int(entry) for entry in flat_entries(one, shape)]
    except (IndexError, TypeError):
        return []


def _touching(
    bodies: Sequence[BodySection],
    planes: Sequence[PlaneSection],
    joints: Sequence[JointSection],
    contact: ContactSection,
) -> set[int]:
    """Return the bodies that may touch a plane or another body."""
    never = {frozenset(pair) for pair in contact.apart} | {frozenset((joint.a, joint.b)) for joint in joints}
    shaped = [place for place, body in enumerate(bodies) if body.shapes]
    found = {place for place in shaped if planes and not bodies[place].fixed}
    for pair in combinations(shaped, 2):
        if frozenset(pair) not in never and not all(bodies[place].fixed for place in pair):
            found.update(pair)
    return found


def _check_jointed(key: Key, name: str, body: int, hanging: Mapping[int, int], *, stays: bool) -> Problem | None:
    """Check that a body may start elsewhere: `hanging` has the joint by which a body hangs on another, or the world."""
    if body in hanging:
        constraint = "bodies that hang on a joint start where it lets them"
        found, remedy = Words(f"{name} of body {body}, on joint {hanging[body]}"), f"Seek {INSTEAD[name]} instead."
    elif stays:
        constraint = "what hangs on a body moves along only where joints have starts"
        found = Words(f"{name} of body {body}, to which others are joined")
        remedy = "Give one of the joints start = 0.0: then all bodies follow their joints."
    else:
        return None
    return Problem(key=key, constraint=constraint, found=found, remedy=remedy)


def _check_lengths(
    unknowns: Mapping[str, UnknownSection], orientation: np.ndarray, sought: np.ndarray
) -> Iterator[Problem]:
    """Check that known numbers of a quaternion give it a length: a motion depends on its direction alone."""
    for body in np.flatnonzero(sought.any(axis=1) & ~(orientation * ~sought).any(axis=1)).tolist():
        label = next(label for label, unknown in unknowns.items() if unknown.parameter == "orientation")
        known = int(abs(orientation[body]).argmax())
        remedy = f"Seek three of them: entries = {[[body, k] for k in range(4) if k != known]}."
        yield Problem(
            key=("unknowns", label, "parameter"),
            constraint="the length of a quaternion is not determined, so one of its numbers is known, and not 0",
            found=Words(f"an unknown orientation of body {body}"),
            remedy=remedy,
        )
