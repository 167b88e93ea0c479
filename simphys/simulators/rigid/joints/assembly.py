"""Start of jointed bodies from the rotation or slide of each joint, and its rate: forward kinematics along a tree.

The pose (x, q) and the twist (v, w) of a child c follow from those of its parent p, with the anchors r_p, r_c in their
frames, counted from their centres of mass (arms, joint_constraints.py), the axis k of the joint in the world, its start
s and its rate s', positive where the child is body a:

    revolute    q_c = q_p about k by s              w_c = w_p + s' k
                x_c = r - R_c r_c,                  v_c = v_p + w_p x (r - x_p) + w_c x (x_c - r),     r = x_p + R_p r_p
    prismatic   x_c = r + s k - R_c r_c,            v_c = v_p + w_p x (x_c - x_p) + s' k

Source: Featherstone 2008, Rigid Body Dynamics Algorithms, section 4.4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from simphys.autograd import Tensor, ops, tensor
from simphys.simulator import Record
from simphys.simulator.markers import Vector

from ..markers import cross, sweep, turn
from .joint import PRISMATIC, REVOLUTE, WORLD, Joint


@dataclass(frozen=True)
class JointStart(Record):
    """Positions and rates at which joints start."""

    joint_start: Tensor
    """Rotation [rad] or slide [m] of body a of each joint against b, counted from the poses of the scene, [J]."""
    joint_rate: Tensor
    """Its rate [rad/s] or [m/s], [J]."""


S = TypeVar("S", bound=Any)
"""The class of states."""


class Link(NamedTuple):
    """A joint of a tree, from the body that is nearer to its root."""

    joint: int
    parent: int
    child: int


Arms = tuple[Any, Any]
"""Anchors of a joint in the frames of its bodies a and b, from their centres of mass, [dim]: numbers, or a Tensor."""


class Motion(NamedTuple):
    """Pose and twist of a body."""

    x: Tensor
    q: Tensor
    v: Tensor
    w: Tensor


def find_tree(joints: Sequence[Joint], bodies: int, fixed: Collection[int]) -> tuple[list[Link], list[int]]:
    """List the joints from the roots outwards, and those that close a loop.

    Roots are the world, fixed bodies, and the first body of those that are connected to neither.
    """
    links: list[Link] = []
    reached, left = {WORLD, *fixed}, list(range(len(joints)))
    for root in (WORLD, *range(bodies)):
        reached.add(root)
        while True:
            ends = [(place, joints[place].a, joints[place].b) for place in left]
            found = next(((place, a, b) for place, a, b in ends if (a in reached) != (b in reached)), None)
            if found is None:
                break
            place, a, b = found
            links.append(Link(place, a, b) if a in reached else Link(place, b, a))
            reached |= {a, b}
            left.remove(place)
    return links, left


def find_arms(joints: Sequence[Joint], params: Any) -> list[Arms]:
    """Return the arms of the joints, which follow from the parameters where these have anchors."""
    if params is None or params.joint_anchor_a.ndim < 2:
        return [(joint.anchor_a, joint.anchor_b) for joint in joints]

    def find_arm(anchor: Tensor, body: int) -> Tensor:
        return anchor if body == WORLD else anchor - params.centre_of_mass[body]

    ends = zip(joints, params.joint_anchor_a, params.joint_anchor_b, strict=True)
    return [(find_arm(own, joint.a), find_arm(its, joint.b)) for joint, own, its in ends]


def assemble(joints: Sequence[Joint], fixed: Collection[int], state: S, start: JointStart, params: Any = None) -> S:
    """Give bodies the poses and velocities that follow from those of the root of each tree and the start of joints.

    `params` may have anchors and centres of mass; otherwise those of the joints count.
    """
    arms = find_arms(joints, params)
    bodies = len(state.position)
    motions = {body: Motion(*[field[body] for field in state.tensors()]) for body in range(bodies)}
    motions[WORLD] = _rest(state)
    links, _ = find_tree(joints, bodies, fixed)
    for link in links:
        own, rate = start.joint_start[link.joint], start.joint_rate[link.joint]
        motions[link.child] = _follow(joints[link.joint], link, motions[link.parent], own, rate, arms[link.joint])
    return type(state)(*map(ops.stack, zip(*[motions[body] for body in range(bodies)], strict=True)))


def _follow(joint: Joint, link: Link, parent: Motion, start: Tensor, rate: Tensor, arms: Arms) -> Motion:
    """Compute the motion of the child."""
    if link.child == joint.b:
        start, rate = -start, -rate
    own, its = arms if link.child == joint.a else arms[::-1]
    q = _orient(joint, link, parent.q, start)
    arm = _turn(parent.q, its)
    place = parent.x + arm
    axis = 1.0 if joint.axis is None else _turn(q if link.child == joint.a else parent.q, joint.axis)
    if joint.kind == PRISMATIC:
        x = place + axis * start - _turn(q, own)
        return Motion(x, q, parent.v + _sweep(parent.w, x - parent.x) + axis * rate, parent.w)
    x = place - _turn(q, own)
    w = parent.w + axis * rate if joint.kind == REVOLUTE else parent.w
    return Motion(x, q, parent.v + _sweep(parent.w, arm) + _sweep(w, x - place), w)


def _orient(joint: Joint, link: Link, q: Any, start: Tensor) -> Tensor:
    """Compute the orientation of the child from that of its parent: q_b = q_a relative, up to the rotation."""
    turns = joint.kind == REVOLUTE
    if len(q) == 1:
        (relative,) = joint.relative or (0.0,)
        turned = q + start if turns else q
        return turned - relative if link.child == joint.a else turned + relative
    s, *u = joint.relative or (1.0, 0.0, 0.0, 0.0)
    half = 0.5 * start
    own: Vector = [1.0, 0.0, 0.0, 0.0]
    if turns:
        own = [ops.cos(half), *[each * ops.sin(half) for each in joint.axis or ()]]
    if link.child == joint.a:
        return ops.stack(_multiply(_multiply([*q], [s, *[-each for each in u]]), own))
    return ops.stack(_multiply(_multiply([*q], own), [s, *u]))


def _rest(state: Any) -> Motion:
    """The motion of the world."""
    still = [tensor(np.zeros_like(field.data[0])) for field in state.tensors()]
    if len(still[1]) == 4:
        still[1] = tensor(np.array([1.0, 0.0, 0.0, 0.0], still[1].dtype))
    return Motion(*still)


def _turn(orientation: Any, vector: Any) -> Tensor:
    """Turn a vector [dim] from the frame of a body to that of the world."""
    return ops.stack(turn([*orientation], [*vector]))


def _multiply(p: Vector, q: Vector) -> Vector:
    """Multiply two quaternions."""
    a, *u = p
    b, *v = q
    turned = cross(u, v)
    return [
        a * b - (u[0] * v[0] + u[1] * v[1] + u[2] * v[2]),
        *[a * y + b * x + z for x, y, z in zip(u, v, turned, strict=True)],
    ]


def _sweep(spin: Any, arm: Any) -> Tensor:
    """The velocity of the end of an arm that turns."""
    return ops.stack(sweep([*spin], [*arm]))
