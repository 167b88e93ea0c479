"""Checks for unknown starts, anchors and centres of bodies that joints do not let move there, or that no motion
determines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.scenefile.fit_sections import UnknownSection
from simphys.scenefile.section import Key, Problem, Words
from simphys.scenefile.unknown_entries import flat_entries, unknown_problems
from simphys.simulators.rigid.joints.assembly import find_tree
from simphys.simulators.rigid.joints.joint import WORLD
from simphys.simulators.rigid.scene import ANCHOR_NAMES, START_NAMES, build_joints, fixed_bodies, start_state
from simphys.simulators.rigid.sections import BodySection, JointSection

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
