"""Checks for the section [values] of a scene: bodies on joints cannot start anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from simphys.autograd import tensor
from simphys.scenefile.fit_sections import ValueSection
from simphys.scenefile.section import Key, Problem, Words
from simphys.scenefile.unknown_entries import flat_entries, value_problems, with_values
from simphys.simulator import Array
from simphys.simulators.rigid.joints.assembly import JointStart, assemble
from simphys.simulators.rigid.joints.gap import find_gap
from simphys.simulators.rigid.joints.joint import WORLD, Joint
from simphys.simulators.rigid.model import State
from simphys.simulators.rigid.scene import (
    START_NAMES,
    build_joints,
    find_anchors,
    fixed_bodies,
    start_joints,
    start_state,
)
from simphys.simulators.rigid.sections import BodySection, JointSection
from simphys.simulators.rigid.unknown_checks import INSTEAD

ROUNDING = 1e-4
"""Relative gap of a joint, and its angle [rad], that count for nothing: values may have few digits."""


def problems(
    key: Key,
    bodies: Sequence[BodySection],
    joints: Sequence[JointSection],
    sections: Mapping[str, ValueSection],
    *,
    started: bool,
) -> Iterator[Problem]:
    """Yield values that would tear a joint, or that no body takes; other checks report those that fit no field.

    Args:
        key: place of `sections`, by label, in the scene file.
        started: True if joints say where bodies start, so that what hangs on a joint moves along.
    """
    if not joints:
        return
    told = start_state(bodies, joints) | start_joints(joints) | find_anchors(joints, bodies)
    sections = {label: section for label, section in sections.items() if section.parameter in told}
    if not sections or any(True for _ in value_problems(sections, told)):
        return
    given = with_values(sections, told)
    if not np.all(np.linalg.norm(given["orientation"], axis=1) > 0) and given["orientation"].shape[1] == 4:
        return
    built = _at_anchors(build_joints(joints, bodies), given)
    taken = _assembled(built, fixed_bodies(bodies), given) if started else given
    found = list(_untaken(key, sections, given, taken)) if started else []
    yield from found or _torn(key, sections, built, taken, started=started)


def _at_anchors(joints: Sequence[Joint], given: Mapping[str, Array]) -> list[Joint]:
    """Return the joints with arms that follow from anchors and centres of mass."""
    centres = np.vstack([given["centre_of_mass"], np.zeros((1, given["position"].shape[1]))])  # the world's is last
    moved = []
    for place, joint in enumerate(joints):
        own, its = (given[f"joint_anchor_{end}"][place] - centres[getattr(joint, end)] for end in "ab")
        moved.append(replace(joint, anchor_a=tuple(own.tolist()), anchor_b=tuple(its.tolist())))
    return moved


def _assembled(joints: Sequence[Joint], fixed: Sequence[int], given: Mapping[str, Array]) -> dict[str, Array]:
    """Return where bodies are once they have followed their joints."""
    state = State(**{name: tensor(given[name], dtype=np.float64) for name in INSTEAD})
    start = JointStart(**{name: tensor(given[name], dtype=np.float64) for name in START_NAMES})
    return {**given, **assemble(joints, fixed, state, start).arrays()}


def _untaken(
    key: Key, sections: Mapping[str, ValueSection], given: Mapping[str, Array], taken: Mapping[str, Array]
) -> Iterator[Problem]:
    """Find values of bodies whose joints take them elsewhere."""
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
            body = int(wrong[0]) // off.shape[1]
            yield Problem(
                key=(*key, label, "value"),
                constraint="bodies that hang on a joint start where it lets them",
                found=Words(f"another {name} of body {body}"),
                remedy=f"Give {INSTEAD[name]} instead.",
            )


def _torn(
    key: Key,
    sections: Mapping[str, ValueSection],
    joints: Sequence[Joint],
    state: Mapping[str, Array],
    *,
    started: bool,
) -> Iterator[Problem]:
    """Find the first joint whose bodies the values take apart."""
    label = next(iter(sections))
    for place, joint in enumerate(joints):
        apart, angle = find_gap(joint, state)
        arms = [np.linalg.norm(joint.anchor_a), np.linalg.norm(joint.anchor_b)]
        is_apart = apart > ROUNDING * max(*arms, abs(state["position"][joint.a]).max())
        if not is_apart and angle <= ROUNDING:
            continue
        to = "the world" if joint.b == WORLD else f"body {joint.b}"
        by = f"{apart:.3g} apart" if is_apart else f"turned by {angle:.3g} rad"
        yield Problem(
            key=(*key, label, "value"),
            constraint="bodies that a joint connects start together",
            found=Words(f"body {joint.a} and {to} of joint {place}, {by}"),
            remedy="Give poses and velocities in [[bodies]] instead."
            if started
            else "Give the joint start = 0.0, so that bodies follow their joints, and joint_start in [values].",
        )
        return
