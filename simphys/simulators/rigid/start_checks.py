"""Checks of where jointed bodies start: of the joints' own starts, of unknowns and of values of fields.

Bodies on joints cannot start anywhere, some starts are determined by no motion, and a loop of joints follows none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simphys.numerics.orientation import matrices
from simphys.scenefile.fit_sections import UnknownSection, ValueSection
from simphys.scenefile.section import Key, Problem, Words
from simphys.scenefile.unknown_entries import flat_entries, unknown_problems, value_problems, with_values
from simphys.simulator import Array

from .joints.assembly import find_tree
from .joints.joint import PRISMATIC, REVOLUTE, WORLD, Joint
from .scene import (
    ANCHOR_NAMES,
    START_NAMES,
    build_joints,
    find_anchors,
    fixed_bodies,
    follow_joints,
    start_joints,
    start_state,
)
from .sections import BodySection, JointSection

INSTEAD = {
    "position": "joint_start",
    "orientation": "joint_start",
    "velocity": "joint_rate",
    "angular_velocity": "joint_rate",
}
"""Names of what places bodies on joints, by those of what they take from it."""
TREE = {
    **dict.fromkeys(START_NAMES, "joints whose start or rate is {} form a tree"),
    **dict.fromkeys(ANCHOR_NAMES, "joints whose anchors or centres of mass are {} form a tree"),
}
"""Constraints on joints, by the names of fields that their bodies follow."""
HANGING = "bodies that hang on a joint start where it lets them"
ROUNDING = 1e-4
"""Relative gap of a joint, and its angle [rad], that count for nothing: values may have few digits."""

Named = Sequence[tuple[Key, Mapping[str, Any]]]
"""Keys of sections of unknowns and values, with what they hold by label; unknowns come first."""


class Start:
    """Start of bodies and joints; `started`: joints say where it is, so that what hangs on a joint moves along."""

    def __init__(self, bodies: Sequence[BodySection], joints: Sequence[JointSection], *, started: bool) -> None:
        self.bodies, self.sections, self.started = bodies, joints, started
        self.fixed, self.joints = fixed_bodies(bodies), build_joints(joints, bodies)
        self.links, self.closing = find_tree(self.joints, len(bodies), self.fixed)

    def check_joints(self) -> Iterator[Problem]:
        """Check that joints that start somewhere leave bodies free to follow."""
        given = [
            (place, name)
            for place, joint in enumerate(self.sections)
            for name in ("start", "rate")
            if getattr(joint, name) is not None
        ]
        for closing in self.closing if given else []:
            constraint, remedy = TREE["joint_start"].format("given"), "Give poses and velocities in [[bodies]] instead."
            yield Problem(("joints", *given[0]), constraint, Words(f"joint {closing} closes a loop"), remedy)
        for child in [link.child for link in self.links if self.started]:
            for name in ("velocity", "angular_velocity"):
                if (velocity := getattr(self.bodies[child], name)) is not None:
                    constraint = "velocities of bodies follow from the start and rate of joints"
                    yield Problem(("bodies", child, name), constraint, velocity, f"Give joints.rate, or remove {name}.")

    def check_named(self, named: Named) -> Iterator[Problem]:
        """Check unknowns and then values; other checks report those that fit no field."""
        fields = start_state(self.bodies, self.sections)
        wrong = [*(self._check_loops(named) if self.closing else ()), *self._check_unknowns(named[0][1], fields)]
        yield from wrong
        if self.joints and not wrong:
            fields |= start_joints(self.sections) | find_anchors("joint", self.joints, self.bodies)
            for key, values in named[1:]:
                yield from self._check_values(key, values, fields)

    def _check_loops(self, named: Named) -> Iterator[Problem]:
        """Check that nothing moves joints where one of them closes a loop: their bodies cannot follow."""
        for section, each in named:
            state = "unknown" if section == ("unknowns",) else "given by a value"
            for label in [label for label, one in each.items() if one.parameter in TREE]:
                constraint = TREE[each[label].parameter].format(state)
                found, remedy = (
                    Words(f"joint {self.closing[0]} closes a loop"),
                    "Give poses and velocities in [[bodies]], and leave this out.",
                )
                yield Problem((*section, label, "parameter"), constraint, found, remedy)

    def _check_unknowns(self, unknowns: Mapping[str, UnknownSection], fields: Mapping[str, Array]) -> Iterator[Problem]:
        """Check that bodies may start elsewhere, and that a motion determines their orientations."""
        hanging = {link.child: link.joint for link in self.links}
        jointed = {body for joint in self.joints for body in (joint.a, joint.b)}
        sought = np.zeros(fields["orientation"].shape, bool)
        for label, unknown in unknowns.items():
            key, name = ("unknowns", label, "parameter"), unknown.parameter
            if name not in INSTEAD or unknown_problems({label: unknown}, fields):
                continue
            entries = flat_entries(unknown, fields[name].shape)
            if name == "orientation":
                sought.reshape(-1)[entries] = True
            for body in np.unique(entries // fields[name].shape[1]).tolist():
                if body in hanging:
                    found = Words(f"{name} of body {body}, on joint {hanging[body]}")
                    yield Problem(key, HANGING, found, f"Seek {INSTEAD[name]} instead.")
                    break
                if body in jointed and not self.started:
                    constraint = "what hangs on a body moves along only where joints have starts"
                    found = Words(f"{name} of body {body}, to which others are joined")
                    remedy = "Give one of the joints start = 0.0: then all bodies follow their joints."
                    yield Problem(key, constraint, found, remedy)
                    break
        if len(self.bodies[0].position) == 3:
            yield from _check_lengths(unknowns, fields["orientation"], sought)

    def _check_values(
        self, key: Key, sections: Mapping[str, ValueSection], fields: Mapping[str, Array]
    ) -> Iterator[Problem]:
        """Check that values tear no joint, and that bodies take them."""
        sections = {label: section for label, section in sections.items() if section.parameter in fields}
        if not sections or any(True for _ in value_problems(sections, fields)):
            return
        given = with_values(sections, fields)
        if given["orientation"].shape[1] == 4 and not given["orientation"].any(axis=1).all():
            return
        joints, taken = _at_anchors(self.joints, given), given
        if self.started:
            taken = given | follow_joints(joints, self.fixed, given)
            wrong = list(_check_taken(key, sections, given, taken))
            yield from wrong
            if wrong:
                return
        if torn := _find_torn(joints, taken):
            remedy = "Give poses and velocities in [[bodies]] instead."
            if not self.started:
                remedy = "Give the joint start = 0.0, so that bodies follow their joints, and joint_start in [values]."
            constraint = "bodies that a joint connects start together"
            yield Problem((*key, next(iter(sections)), "value"), constraint, Words(torn), remedy)


def _check_lengths(unknowns: Mapping[str, UnknownSection], orientation: Array, sought: Array) -> Iterator[Problem]:
    """Check that known numbers of a quaternion give it a length: a motion depends on its direction alone."""
    for body in np.flatnonzero(sought.any(axis=1) & ~(orientation * ~sought).any(axis=1)).tolist():
        label = next(label for label, unknown in unknowns.items() if unknown.parameter == "orientation")
        known = int(abs(orientation[body]).argmax())
        remedy = f"Seek three of them: entries = {[[body, k] for k in range(4) if k != known]}."
        constraint = "the length of a quaternion is not determined, so one of its numbers is known, and not 0"
        found = Words(f"an unknown orientation of body {body}")
        yield Problem(("unknowns", label, "parameter"), constraint, found, remedy)


def _at_anchors(joints: Sequence[Joint], given: Mapping[str, Array]) -> list[Joint]:
    """Return the joints with arms that follow from anchors and centres of mass."""
    centres = np.vstack([given["centre_of_mass"], np.zeros((1, given["position"].shape[1]))])  # the world's is last
    moved = []
    for place, joint in enumerate(joints):
        own, its = (given[f"joint_anchor_{end}"][place] - centres[getattr(joint, end)] for end in "ab")
        moved.append(replace(joint, anchor_a=tuple(own.tolist()), anchor_b=tuple(its.tolist())))
    return moved


def _check_taken(
    key: Key, sections: Mapping[str, ValueSection], given: Mapping[str, Array], taken: Mapping[str, Array]
) -> Iterator[Problem]:
    """Check that joints take no body elsewhere than its values."""
    for label, section in sections.items():
        name = section.parameter
        if name not in INSTEAD:
            continue
        off = abs(taken[name] - given[name])
        if name == "orientation" and off.shape[1] == 4:
            unit = given[name] / np.linalg.norm(given[name], axis=1, keepdims=True)
            off = np.minimum(abs(taken[name] - unit), abs(taken[name] + unit))
        entries = flat_entries(section.as_unknown(), off.shape)
        wrong = entries[off.reshape(-1)[entries] > ROUNDING * max(1.0, abs(taken[name]).max())]
        if wrong.size:
            found = Words(f"another {name} of body {int(wrong[0]) // off.shape[1]}")
            yield Problem((*key, label, "value"), HANGING, found, f"Give {INSTEAD[name]} instead.")


def _find_torn(joints: Sequence[Joint], state: Mapping[str, Array]) -> str:
    """Describe the first joint whose bodies do not start together; '' if all do."""
    for place, joint in enumerate(joints):
        apart, angle = _find_gap(joint, state)
        arms = [np.linalg.norm(joint.anchor_a), np.linalg.norm(joint.anchor_b)]
        is_apart = apart > ROUNDING * max(*arms, abs(state["position"][joint.a]).max())
        if is_apart or angle > ROUNDING:
            to = "the world" if joint.b == WORLD else f"body {joint.b}"
            by = f"{apart:.3g} apart" if is_apart else f"turned by {angle:.3g} rad"
            return f"body {joint.a} and {to} of joint {place}, {by}"
    return ""


def _find_gap(joint: Joint, state: Mapping[str, Array]) -> tuple[float, float]:
    """Return the distance of the anchors [m] and the angle between the frames [rad].

    The distance along a slide, and the angle about an axis, count for nothing. `state` has the position [n, dim] and
    the orientation [n, R] of all bodies.
    """
    (x_a, R_a), (x_b, R_b) = (_pose(body, state) for body in (joint.a, joint.b))
    apart = x_a + R_a @ np.array(joint.anchor_a) - x_b - R_b @ np.array(joint.anchor_b)
    axis = None if joint.axis is None else np.array(joint.axis)
    if joint.kind == PRISMATIC and axis is not None:
        apart = apart - (apart @ (R_a @ axis)) * (R_a @ axis)
    wanted = R_a if joint.relative is None else R_a @ matrices(np.array(joint.relative))
    if joint.kind == REVOLUTE:
        turned = 0.0 if axis is None else _angle(R_a @ axis, R_b @ wanted.T @ R_a @ axis)
    else:
        turned = max([_angle(column, other) for column, other in zip(wanted.T, R_b.T, strict=True)])
    return float(np.linalg.norm(apart)), turned


def _pose(body: int, state: Mapping[str, Array]) -> tuple[Array, Array]:
    if body == WORLD:
        dim = state["position"].shape[1]
        return np.zeros(dim), np.eye(dim)
    return state["position"][body], matrices(state["orientation"][body])


def _angle(a: Array, b: Array) -> float:
    """Return the angle between two unit vectors."""
    return float(2 * np.arcsin(np.clip(np.linalg.norm(a - b) / 2, 0.0, 1.0)))
