"""Variational steps with forces: half a kick, the drift, half a kick."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from simphys.autograd import Tensor, no_grad, tensor
from simphys.autograd.ops import concatenate
from simphys.rigid import WORLD, Spring
from simphys.rigid.drift import Drift
from simphys.rigid.kick import Kick
from simphys.rigid.spring_damper import SpringDamper

from .free_bodies import bodies

Array = np.ndarray[Any, Any]
MASS, MOMENTS, GRAVITY = 2.0, np.array([0.2, 0.3, 0.4]), np.array([0.0, -2.0, 0.0])
ANCHOR, STIFFNESS, LENGTH = np.array([0.3, 0.2, -0.1]), 40.0, 0.5
START = {"x": [0.9, 0.0, 0.1], "q": [0.5, 0.5, -0.5, 0.5], "v": [0.0, 1.0, 0.5], "w": [0.4, 2.0, -0.7]}
"""Position, orientation, velocity, angular velocity of a body that hangs on a spring from the origin."""

MODEL = bodies(3, 1, integrator="variational", springs=(Spring(0, WORLD, tuple(ANCHOR), (0.0, 0.0, 0.0)),))
State = tuple[Tensor, ...]


def start() -> State:
    return tuple([tensor([values]) for values in START.values()])


def kicked(state: State, h: float) -> State:
    """The state after the force has acted for h."""
    forces = SpringDamper.apply(MODEL, *state, tensor([STIFFNESS]), tensor([0.0]), tensor([LENGTH]))
    x, q, v, w = state
    twist = Kick.apply(MODEL, h, v, w, q, forces, tensor([MASS]), tensor(MOMENTS[None]), tensor(GRAVITY))
    return x, q, twist[:, :3], twist[:, 3:]


def drifted(state: State, h: float) -> State:
    x, q, v, w = state
    twist, no_shift = concatenate([v, w], axis=1), tensor(np.zeros((1, 6)))
    new: State = Drift.apply(MODEL, h, x, q, twist, no_shift, tensor(MOMENTS[None]))
    return new


def hanging(state: State, steps: int, h: float) -> State:
    """Its state at the end, by half a kick, a drift and half a kick a step."""
    for _ in range(steps):
        state = kicked(drifted(kicked(state, h / 2), h), h / 2)
    return state


def exact(end: float) -> tuple[Array, Array]:
    """By the equations of momentum and angular momentum."""
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


def test_between_two_half_kicks_the_step_is_of_order_2() -> None:
    expected, errors = np.concatenate(exact(1.0)), []
    for steps in (40, 80, 160):
        with no_grad():
            x, _, _, w = hanging(start(), steps, 1 / steps)
        errors.append(np.linalg.norm(np.concatenate([x.data[0], w.data[0]]) - expected))
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([4, 4], rel=0.1)
    assert errors[-1] < 5e-3


def test_behind_one_kick_it_makes_the_same_motion_but_for_half_a_kick_at_either_end() -> None:
    h, state = 0.02, start()
    with no_grad():
        for _ in range(50):
            state = drifted(kicked(state, h), h)
        between = kicked(hanging(kicked(start(), h / 2), 50, h), -h / 2)
    for found, expected in zip(state, between, strict=True):
        np.testing.assert_allclose(found.data, expected.data, rtol=0, atol=1e-11)
