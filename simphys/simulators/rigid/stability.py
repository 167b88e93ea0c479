"""Limits of the time step of rigid bodies, and the largest distance that they may move in a step.

Contacts may come later, and the derivatives of impacts say nothing of stability: springs and joints limit the step of
the bodies without contacts (step_bound.py). Under the compliant law, spring-dampers in place of contacts are added to
them. With k the stiffness of contacts, c their damping and N the weight that rests on a feature, their own stiffness
and damping are

    rest        k, N c along the normal and 0, mu N / v_s across it: each body alone on the features that are nearest to
                a plane, and everything that touches planes at the start, together
    impacts     2 k (1 + c v), 0 along the normal: each of these features alone, all of them as one, and each pair of
                bodies

For a ball on a floor, h^2 k / m + 2 h N c / m < 4, its friction 7 h mu N / (m v_s) < 4, and h^2 k (1 + c v) / m < 2.
Beyond the limit of friction, one that should hold trembles. As friction is bounded, the amplitude of the slip is
+-((h mu N W / 2)^2 - v_s^2)^(1/2), W [1/kg] the change of the slip by a unit impulse. The limit of impacts concerns a
speed v, the initial speed plus that of the fall on a plane. A depth of h v gives an impulse h^2 k (1 + c v) v in one
step, and features separate at h^2 k (1 + c v) W - 1 times their speed. Beyond 2, bodies can rebound faster than they
came, and the more so the harder the impact: a motion with impacts eventually blows up, all the more with damping. Up to
the limit, rebounds can be 1.25 times as fast without damping, 1.06 times for half the time step, depending on when
within a step bodies meet. Harder impacts, or several contacts of one body, may need shorter steps. Motors and
networks are not considered.

Bodies that fly straight at each other must not approach by more than the sum of their half thicknesses in one step:
otherwise they may be found on each other's far sides. The impulse law looks ahead (time_of_impact.py) and finds impacts
at any speed. Source: the limits are derived here.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from simphys.autograd.errors import InputError
from simphys.numerics.orientation import matrices
from simphys.simulator import Array, Arrays, StepLimit

from .checks import COMPLIANT
from .contacts.feature import PLANE
from .joints.joint import WORLD, Spring
from .shapes import Box, Shape
from .step_bound import Link, rest

if TYPE_CHECKING:
    from .model import RigidBodies

TOUCH = 1e-9
"""Features touch a plane if they are this close [m], or closer than their weight would press them in."""


class Landing(NamedTuple):
    """Spring-dampers in place of the features of a body that are nearest to a plane."""

    at_rest: list[Link]
    """Those that act like contacts at rest, which bear the weight of the body."""
    impacts: list[Link]
    """Springs that are as stable as the impact of each feature, and of all of them as one."""
    touches: bool
    """True if the body touches the plane at the start."""


def step_limits(model: RigidBodies, params: Arrays, state: Arrays) -> tuple[StepLimit, ...]:
    """Limit the time step by springs, joints and, under the compliant law, contacts that are still to come."""
    params, state = _to_float64(params), _to_float64(state)
    if not all(np.isfinite(values).all() for values in (*params.values(), *state.values())):
        return (StepLimit(0.0, "a value that is not finite"),)
    system, remedy = rest(model, params, state), "soften or damp less what limits it"
    friction = ", or raise the transition_rate of its dry friction" if model.joint_friction else ""
    limits = [system.limit(system.name_links(), remedy + friction)]
    if model.law != COMPLIANT or not params["contact_stiffness"] > 0:
        return tuple(limits)
    slip, resting = f"{remedy}, or raise simulator.slip_speed", []
    for body, plane, features in _list_features(model):
        landing = _land(model, params, state, body, plane, features)
        limits.append(system.add(landing.at_rest).limit(f"body {body} at rest on a plane", slip))
        limits += [system.add([link]).limit(f"the impact of body {body}", remedy) for link in landing.impacts]
        resting += [landing.at_rest] if landing.touches else []
    if len(resting) > 1:
        limits.append(system.add([*itertools.chain(*resting)]).limit("bodies that rest on planes", slip))
    for a, b in model.pairs:
        links = _collide(model, params, state, a, b)
        limits += [system.add([link]).limit(f"the impact of bodies {a} and {b}", remedy) for link in links]
    return tuple(limits)


def _list_features(model: RigidBodies) -> Iterator[tuple[int, Array, Array]]:
    """Yield each body and plane (normal, offset) with the centres, half extents, signs and radii of its features."""
    found, dim, features = model.candidates, model.dim, defaultdict(list)
    for i in np.flatnonzero(found.kind == PLANE):
        own, other = np.split(found.constants[i], [3 * dim + 1])
        features[int(found.body_a[i]), (*other[:dim], other[-1])].append(own)
    for (body, plane), own_features in features.items():
        yield body, np.array(plane), np.array(own_features)


def _land(model: RigidBodies, params: Arrays, state: Arrays, body: int, plane: Array, features: Array) -> Landing:
    """Replace the features of a body that are nearest to a plane."""
    x, R, w = state["position"][body], matrices(state["orientation"])[body], state["angular_velocity"][body]
    u, offset, k, c = plane[:-1], plane[-1], float(params["contact_stiffness"]), float(params["contact_damping"])
    centre, half, signs = features[:, :-1].reshape(-1, 3, model.dim).transpose(1, 0, 2)
    own = params["centre_of_mass"][body] if model.free_anchors else 0.0
    arms = (centre - own + signs * half) @ R.T - features[:, -1:] * u
    gaps = (x + arms) @ u - offset
    pull = max(0.0, -float(params["gravity"] @ u))
    near = arms[(gaps - gaps.min() - TOUCH) * k <= params["mass"][body] * pull]
    force = float(params["mass"][body]) * pull / len(near)

    def link(arm: Array, direction: Array, stiffness: float, damping: float) -> Link:
        return Link(Spring(body, WORLD, tuple(R.T @ arm), tuple(x + arm + direction)), stiffness, damping, 1.0)

    slope = float(params["friction"][body]) * force / model.slip_speed
    ways: list[tuple[Array, float, float]] = [
        (u, k, c * force),
        *[(tangent, 0.0, slope) for tangent in np.linalg.svd(u[None])[2][1:]],
    ]
    middles = near + force / (2 * k) * u  # of the overlaps
    spin = np.cross(w, near) if model.dim == 3 else w * near[:, ::-1] * [-1, 1]
    closing = max(0.0, -float(((state["velocity"][body] + spin) @ u).min()))
    hard = _harden(params, (closing**2 + 2 * pull * max(0.0, gaps.min())) ** 0.5)
    groups = [*np.split(near, len(near)), *([near] if len(near) > 1 else [])]
    return Landing(
        [link(arm, *way) for arm in middles for way in ways],
        [link(group.mean(axis=0), u, len(group) * hard, 0.0) for group in groups],
        bool((gaps.min() - TOUCH) * k <= params["mass"][body] * pull),
    )


def _collide(model: RigidBodies, params: Arrays, state: Arrays, a: int, b: int) -> Iterator[Link]:
    """Yield a spring that is as stable as the impact of two bodies along the line of their centres."""
    line = state["position"][a] - state["position"][b]
    if model.shapes[a] and model.shapes[b] and line.any():
        distance, centre = float(np.linalg.norm(line)), (0.0,) * model.dim
        speed = float(line @ (state["velocity"][b] - state["velocity"][a])) / distance
        yield Link(Spring(a, b, centre, centre), _harden(params, speed), 0.0, distance)


def _harden(params: Arrays, speed: float) -> float:
    """Return the stiffness of a spring that is as stable as impacts at this speed."""
    return 2 * float(params["contact_stiffness"]) * (1 + max(0.0, float(params["contact_damping"]) * speed))


def require_slow(model: RigidBodies, fields: Arrays) -> None:
    """Raise InputError if bodies approach each other so fast that they could be found on each other's far sides."""
    if model.law != COMPLIANT:
        return
    state = _to_float64(fields)
    for a, b in model.pairs:
        offset, velocity = state["position"][a] - state["position"][b], state["velocity"][a] - state["velocity"][b]
        speed, thick = float(np.linalg.norm(velocity)), _half_thickness(model.shapes[a], model.shapes[b])
        if model.dt * speed <= thick or not (model.shapes[a] and model.shapes[b]):
            continue
        ahead = -float(offset @ velocity) / speed
        if ahead > 0 and float(offset @ offset) < ahead**2 + thick**2:
            constraint = f"bodies that meet approach in a step by at most both half thicknesses, here {thick:.3g}"
            found = f"{model.dt:g}, in which bodies {a} and {b} come {model.dt * speed:.3g} closer"
            raise InputError("time.dt", constraint, found, f"Set time.dt to {0.9 * thick / speed:.2g} or less.")


def _half_thickness(*bodies: Sequence[Shape]) -> float:
    """Return the sum of the bodies' half thicknesses: for each, that of its thickest shape at its thinnest [m]."""
    own = [[min(each.half) if isinstance(each, Box) else each.radius for each in shapes] for shapes in bodies]
    return sum([max(each, default=0.0) for each in own])


def _to_float64(fields: Arrays) -> dict[str, Array]:
    return {name: np.asarray(values, np.float64) for name, values in fields.items()}
