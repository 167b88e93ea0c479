"""Whole steps: half a drift, a kick, half a drift."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from simphys.autograd import tensor
from simphys.rollout import rollout
from simphys.simulators.rigid import WORLD, Box, Params, Plane, RigidBodies, Sphere, Spring, State

from ....helpers.rounding import assert_equal_but_for_rounding
from ..free_bodies import bodies
from ..systems import GRAVITY as G
from ..systems import system

Array = np.ndarray[Any, Any]
MASS, MOMENTS, GRAVITY = 2.0, np.array([0.2, 0.3, 0.4]), np.array([0.0, -2.0, 0.0])
ANCHOR, STIFFNESS, LENGTH = np.array([0.3, 0.2, -0.1]), 40.0, 0.5
START = {"x": [0.9, 0.0, 0.1], "q": [0.5, 0.5, -0.5, 0.5], "v": [0.0, 1.0, 0.5], "w": [0.4, 2.0, -0.7]}
"""Position, orientation, velocity, angular velocity of a body that hangs on a spring from the origin."""

MODEL = bodies(3, 1, springs=(Spring(0, WORLD, tuple(ANCHOR), (0.0, 0.0, 0.0)),))


def exact(end: float) -> tuple[Array, Array]:
    """Integrate the equations of momentum and angular momentum."""
    x, q, v, w = (np.array(values) for values in START.values())

    def rate(_: float, state: Array) -> Array:
        x, q, p, L = np.split(state, [3, 7, 10])
        turn = Rotation.from_quat(np.roll(q, -1))
        r, w = turn.apply(ANCHOR), turn.apply(turn.inv().apply(L) / MOMENTS)
        d = -(x + r)
        f = STIFFNESS * (1 - LENGTH / np.linalg.norm(d)) * d
        dq = [-w @ q[1:], *(q[0] * w + np.cross(w, q[1:]))]
        return np.array([*(p / MASS), *(np.array(dq) / 2), *(f + MASS * GRAVITY), *np.cross(r, f)])

    turn = Rotation.from_quat(np.roll(q, -1))
    start = [*x, *q, *(MASS * v), *turn.apply(MOMENTS * turn.inv().apply(w))]
    x, q, _, L = np.split(solve_ivp(rate, (0, end), start, rtol=1e-10, atol=1e-10).y[:, -1], [3, 7, 10])
    turn = Rotation.from_quat(np.roll(q, -1))
    return x, turn.apply(turn.inv().apply(L) / MOMENTS)


def roll_out(steps: int, end: float) -> Array:
    """Return position and angular velocity at the end, by whole steps."""
    model = replace(MODEL, dt=end / steps)
    given: dict[str, Any] = {name: np.zeros(shape) for name, shape in model.param_shapes().items()}
    given |= {"mass": [MASS], "inertia": MOMENTS[None], "gravity": GRAVITY}
    given |= {"spring_stiffness": [STIFFNESS], "spring_length": [LENGTH]}
    params = Params(**{name: tensor(np.array(value, float)) for name, value in given.items()})
    final = rollout(
        model, params, State(*[tensor([values]) for values in START.values()]), steps=steps, keep="final"
    ).final
    return np.concatenate([final.position.data[0], final.angular_velocity.data[0]])


def test_a_step_is_of_second_order() -> None:
    expected = np.concatenate(exact(1.0))
    errors = [float(np.linalg.norm(roll_out(steps, 1.0) - expected)) for steps in (80, 160, 320)]
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([4] * 2, rel=0.12)


def test_a_body_falls_by_the_law_of_free_fall() -> None:
    model = RigidBodies(2, 0.1, ((Sphere(0.1),),), (Plane((0.0, 1.0)),))
    state = {"position": [[0.0, 9.0]], "velocity": [[1.0, 2.0]], "angular_velocity": [[3.0]]}
    final = rollout(*system(model, state=state), steps=10).final
    assert_equal_but_for_rounding(final.position.data, [[1.0, 9.0 + 2.0 - G / 2]], ulps=64, size=10.0)
    assert_equal_but_for_rounding(final.velocity.data, [[1.0, 2.0 - G]], ulps=64, size=10.0)


def test_a_bouncing_body_comes_to_rest() -> None:
    """A gap, or an overlap, is corrected in one step and leaves no speed."""
    model = RigidBodies(2, 0.01, ((Sphere(0.1),),), (Plane((0.0, 1.0)),))
    state = {"position": [[0.0, 0.4]], "velocity": 0.0, "angular_velocity": 0.0}
    final = rollout(*system(model, state=state, restitution=0.5), steps=300).final
    np.testing.assert_allclose(final.position.data[0, 1], 0.1, rtol=1e-12)
    np.testing.assert_allclose(final.velocity.data[0], 0.0, atol=1e-12)  # a rounding of the place, divided by dt


def test_an_impact_adds_the_moment_of_its_impulse_to_the_angular_momentum() -> None:
    """A box tumbles without gravity: its corner's arm is exact at the time of the impact."""
    half, J, T = (0.3, 0.1, 0.2), np.array([[0.12, 0.2, 0.08]]), 0.25
    model = RigidBodies(3, 0.01, ((Box(half),),), (Plane((0.0, 0.0, 1.0)),))
    start = {
        "position": [[0.0, 0.0, 0.45]],
        "orientation": np.array([[0.9, 0.25, -0.3, 0.2]]) / np.sqrt(1.0025),
        "velocity": [[0.6, 0.3, -1.5]],
        "angular_velocity": [[3.0, -4.0, 2.0]],
    }
    case = system(model, state=start, mass=1.0, inertia=J, friction=0.0, restitution=0.7, gravity=0.0)
    final = rollout(*case, steps=round(T / model.dt)).final

    def momentum(state: State) -> Array:
        turn = Rotation.from_quat(np.roll(np.array(state.orientation.data[0]), -1))
        return np.asarray(turn.apply(J[0] * turn.inv().apply(np.array(state.angular_velocity.data[0]))))

    z, v = [state.position.data[0, 2] for state in (case[2], final)], [-1.5, final.velocity.data[0, 2]]
    time = (z[1] - z[0] - v[1] * T) / (v[0] - v[1])
    across = (momentum(final) - momentum(case[2])) / (v[1] - v[0])
    assert v[1] > 0 and 0 < time < T
    np.testing.assert_allclose(across @ across + (z[0] + v[0] * time) ** 2, np.dot(half, half), rtol=1e-6)
    assert abs(across[2]) < 1e-12
