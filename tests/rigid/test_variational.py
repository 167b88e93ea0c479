"""Variational steps with forces: half a kick, the drift, half a kick."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from simphys.autograd import Tensor, no_grad, tensor
from simphys.rigid import WORLD, Spring
from simphys.rigid.drift import Drift
from simphys.rigid.kick import Kick
from simphys.rigid.spring_damper import SpringDamper

from .free_bodies import bodies

Array = np.ndarray[Any, Any]
MASS, MOMENTS, GRAVITY = 2.0, np.array([0.2, 0.3, 0.4]), np.array([0.0, -2.0, 0.0])
ANCHOR, STIFFNESS, LENGTH = np.array([0.3, 0.2, -0.1]), 40.0, 0.5
START = (
    np.array([0.9, 0.0, 0.1]),
    np.array([0.5, 0.5, -0.5, 0.5]),
    np.array([0.0, 1.0, 0.5]),
    np.array([0.4, 2.0, -0.7]),
)
"""Position, orientation, velocity, angular velocity of a body that hangs on a spring from the origin."""


def hanging(steps: int, end: float) -> tuple[Array, Array]:
    """Its position and angular velocity at the end, by kicks and drifts."""
    h = end / steps
    model = bodies(3, 1, integrator="variational", springs=(Spring(0, WORLD, tuple(ANCHOR), (0.0, 0.0, 0.0)),))
    spring = tensor([STIFFNESS]), tensor([0.0]), tensor([LENGTH])
    params = tensor([MASS]), tensor(MOMENTS[None]), tensor(GRAVITY)
    no_shift = tensor(np.zeros((1, 6)))

    def kicked(x: Tensor, q: Tensor, v: Tensor, w: Tensor) -> Tensor:
        twist: Tensor = Kick.apply(model, h / 2, v, w, q, SpringDamper.apply(model, x, q, v, w, *spring), *params)
        return twist

    state = tuple([tensor(each[None]) for each in START])
    with no_grad():
        for _ in range(steps):
            state = Drift.apply(model, h, state[0], state[1], kicked(*state), no_shift, params[1])
            twist = kicked(*state)
            state = *state[:2], twist[:, :3], twist[:, 3:]
    return state[0].data[0], state[3].data[0]


def exact(end: float) -> tuple[Array, Array]:
    """By the equations of momentum and angular momentum."""
    x, q, v, w = START

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
    expected = np.concatenate(exact(1.0))
    errors = [np.linalg.norm(np.concatenate(hanging(steps, 1.0)) - expected) for steps in (40, 80, 160)]
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([4, 4], rel=0.1)
    assert errors[-1] < 5e-3
