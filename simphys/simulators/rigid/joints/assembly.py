"""Start of jointed bodies from the rotation or slide of each joint, and its rate: forward kinematics along a tree.

The pose (x, q) and the twist (v, w) of a child c follow from those of its parent p, with the anchors r_p, r_c in their
frames, counted from their centres of mass (arms.py), the axis k of the joint in the world, its start s and its rate s',
positive where the child is body a:

    revolute    q_c = q_p about k by s              w_c = w_p + s' k
                x_c = r - R_c r_c,                  v_c = v_p + w_p x (r - x_p) + w_c x (x_c - r),     r = x_p + R_p r_p
    prismatic   x_c = r + s k - R_c r_c,            v_c = v_p + w_p x (x_c - x_p) + s' k

Source: Featherstone 2008, Rigid Body Dynamics Algorithms, section 4.4.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from simphys.autograd import Tensor, ops, tensor
from simphys.simulator import Record
from simphys.simulator.markers import Vector

from ..markers import cross, turn
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


Arms = Sequence[tuple[Vector, Vector]]
"""Anchor of each joint in the frames of its bodies a and b, from their centres of mass."""


@dataclass(frozen=True)
class Motion:
    """Pose and twist of a body, component by component."""

    x: Vector
    q: Vector
    v: Vector
    w: Vector


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


def find_arms(joints: Sequence[Joint], params: Any) -> Arms:
    """Return the arms of the joints, which follow from the parameters where these have anchors."""
    if params is None or params.joint_anchor_a.ndim < 2:
        return [(list(joint.anchor_a), list(joint.anchor_b)) for joint in joints]
    ends, centres = (params.joint_anchor_a, params.joint_anchor_b), params.centre_of_mass
    found = []
    for place, joint in enumerate(joints):
        own, its = [[anchors[place, axis] for axis in range(anchors.shape[1])] for anchors in ends]
        for anchor, body in ((own, joint.a), (its, joint.b)):
            if body != WORLD:
                anchor[:] = [each - centres[body, axis] for axis, each in enumerate(anchor)]
        found.append((own, its))
    return found


def assemble(joints: Sequence[Joint], fixed: Collection[int], state: S, start: JointStart, params: Any = None) -> S:
    """Give bodies the poses and velocities that follow from those of the root of each tree and the start of joints.

    `params` may have anchors and centres of mass; otherwise those of the joints count.
    """
    arms = find_arms(joints, params)
    bodies = len(state.position.data)
    motions = {body: _read(state, body) for body in range(bodies)}
    motions[WORLD] = _rest(state)
    links, _ = find_tree(joints, bodies, fixed)
    for link in links:
        own, rate = start.joint_start[link.joint], start.joint_rate[link.joint]
        motions[link.child] = _follow(joints[link.joint], link, motions[link.parent], own, rate, arms[link.joint])
    every = [motions[body] for body in range(bodies)]
    return type(state)(*[_stack([getattr(motion, name) for motion in every]) for name in ("x", "q", "v", "w")])


def _follow(
    joint: Joint, link: Link, parent: Motion, start: Tensor, rate: Tensor, arms: tuple[Vector, Vector]
) -> Motion:
    """Compute the motion of the child."""
    if link.child == joint.b:
        start, rate = -start, -rate
    own, its = arms if link.child == joint.a else arms[::-1]
    q = _orient(joint, link, parent.q, start)
    axis = [] if joint.axis is None else turn(q if link.child == joint.a else parent.q, list(joint.axis))
    arm = turn(parent.q, its)
    place = _add(parent.x, arm)
    if joint.kind == PRISMATIC:
        x = _subtract(_add(place, _scale(axis, start)), turn(q, own))
        v = _add(_add(parent.v, _sweep(parent.w, _subtract(x, parent.x))), _scale(axis, rate))
        return Motion(x, q, v, parent.w)
    x = _subtract(place, turn(q, own))
    w = parent.w
    if joint.kind == REVOLUTE:
        w = _add(w, _scale(axis, rate)) if axis else [w[0] + rate]
    v = _add(_add(parent.v, _sweep(parent.w, arm)), _sweep(w, _subtract(x, place)))
    return Motion(x, q, v, w)


def _orient(joint: Joint, link: Link, q: Vector, start: Tensor) -> Vector:
    """Compute the orientation of the child from that of its parent: q_b = q_a relative, up to the rotation."""
    turns = joint.kind == REVOLUTE
    if len(q) == 1:
        (relative,) = joint.relative or (0.0,)
        turned = q[0] + start if turns else q[0]
        return [turned - relative] if link.child == joint.a else [turned + relative]
    s, *u = joint.relative or (1.0, 0.0, 0.0, 0.0)
    half = 0.5 * start
    own: Vector = [ops.cos(half), *_scale(list(joint.axis or ()), ops.sin(half))] if turns else [1.0, 0.0, 0.0, 0.0]
    if link.child == joint.a:
        return _multiply(_multiply(q, [s, *[-each for each in u]]), own)
    return _multiply(_multiply(q, own), [s, *u])


def _read(state: Any, body: int) -> Motion:
    fields = (state.position, state.orientation, state.velocity, state.angular_velocity)
    return Motion(*[[field[body, k] for k in range(field.shape[1])] for field in fields])


def _rest(state: Any) -> Motion:
    """The motion of the world."""
    dtype, dim = state.position.dtype, state.position.shape[1]
    zero, one = tensor(0.0, dtype=dtype), tensor(1.0, dtype=dtype)
    q = [zero] if dim == 2 else [one, zero, zero, zero]
    return Motion([zero] * dim, q, [zero] * dim, [zero] * state.angular_velocity.shape[1])


def _stack(rows: Sequence[Vector]) -> Tensor:
    return ops.stack([ops.stack(row) for row in rows])


def _multiply(p: Vector, q: Vector) -> Vector:
    """Multiply two quaternions."""
    a, *u = p
    b, *v = q
    turned = cross(u, v)
    return [
        a * b - (u[0] * v[0] + u[1] * v[1] + u[2] * v[2]),
        *[a * y + b * x + z for x, y, z in zip(u, v, turned, strict=True)],
    ]


def _sweep(spin: Vector, arm: Vector) -> Vector:
    """The velocity of the end of an arm that turns."""
    return [-(spin[0] * arm[1]), spin[0] * arm[0]] if len(arm) == 2 else cross(spin, arm)


def _add(a: Vector, b: Vector) -> Vector:
    return [x + y for x, y in zip(a, b, strict=True)]


def _subtract(a: Vector, b: Vector) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]


def _scale(a: Vector, factor: Any) -> Vector:
    return [x * factor for x in a]
