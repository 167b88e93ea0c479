"""Conservation laws of a free top without symmetry, which turns over about its middle axis (Dzhanibekov)."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from simphys.autograd import no_grad, tensor
from simphys.simulators.rigid import RigidBodies
from simphys.simulators.rigid.motion.drift import FreeDrift

MOMENTS = np.array([1.0, 2.0, 3.0])
START = np.array([0.01, 2.0, 0.02])
"""Angular velocity [rad/s], almost about the middle axis; body frame and world frame coincide."""
UNTURNED = np.array([1.0, 0.0, 0.0, 0.0])
ENERGY, MOMENTUM = START @ (MOMENTS * START) / 2, MOMENTS * START

Motion = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def turn(h: float, steps: int, start: Motion = (UNTURNED, START)) -> Motion:
    """Return orientations [steps + 1, 4] and angular velocities [steps + 1, 3]."""
    model, q, w = RigidBodies(3, h, ((),)), np.zeros((steps + 1, 4)), np.zeros((steps + 1, 3))
    still, moments = tensor(np.zeros((1, 3))), tensor(MOMENTS[None])
    q[0], w[0] = start
    with no_grad():
        for k in range(steps):
            _, rotated, spin = FreeDrift.apply(
                model, h, still, tensor(q[k : k + 1]), still, tensor(w[k : k + 1]), moments
            )
            q[k + 1], w[k + 1] = rotated.data, spin.data
    return q, w


def in_body(q: np.ndarray[Any, Any], r: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return q* r q for each orientation: vectors in the body frame."""
    t = 2 * np.cross(-q[..., 1:], r)
    return r + q[..., :1] * t + np.cross(-q[..., 1:], t)


def energies(motion: Motion) -> np.ndarray[Any, Any]:
    return (MOMENTS * in_body(*motion) ** 2).sum(axis=-1) / 2


def momenta(motion: Motion) -> np.ndarray[Any, Any]:
    """Return the angular momenta in the world frame."""
    q, _ = motion
    return in_body(q * [1, -1, -1, -1], MOMENTS * in_body(*motion))


@functools.cache
def exact(end: float) -> Motion:
    """Integrate Euler's equations in the body frame and dq/dt = q w / 2 by a method of order 8."""

    def rate(_: float, state: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        q, w = state[:4], state[4:]
        dq = [-q[1:] @ w, *(q[0] * w + np.cross(q[1:], w))]
        return np.array([*(np.array(dq) / 2), *(-np.cross(w, MOMENTS * w) / MOMENTS)])

    state = solve_ivp(rate, (0, end), [*UNTURNED, *START], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    q = state[:4] / np.linalg.norm(state[:4])
    return q, in_body(q * [1, -1, -1, -1], state[4:])


def test_a_free_rotation_keeps_momentum_and_energy_to_rounding() -> None:
    """The motion has 10^4 steps of h |w| = 0.1, in which the top turns over 53 times."""
    motion = turn(0.05, 10_000)  # roundings add up, if all are of one sign
    np.testing.assert_allclose(momenta(motion), np.broadcast_to(MOMENTUM, (10_001, 3)), rtol=0, atol=1e-10)
    np.testing.assert_allclose(energies(motion), ENERGY, rtol=1e-10)
    assert (np.diff(np.sign(in_body(*motion)[:, 1])) != 0).sum() == 53


def test_the_error_is_of_second_order() -> None:
    q, w = exact(4.0)
    errors = []
    for steps in (800, 1600, 3200):
        found_q, found_w = turn(4.0 / steps, steps)
        errors.append(np.linalg.norm([*(found_q[-1] * np.sign(found_q[-1] @ q) - q), *(found_w[-1] - w)]))
    assert [a / b for a, b in itertools.pairwise(errors)] == pytest.approx([4.0] * 2, rel=0.1)


def test_a_free_rotation_is_its_own_reverse() -> None:
    q, w = turn(0.1, 20)
    back_q, back_w = turn(0.1, 20, (q[-1], -w[-1]))
    np.testing.assert_allclose(back_q[-1], q[0], rtol=0, atol=1e-12)  # the middle axis is unstable: roundings grow
    np.testing.assert_allclose(-back_w[-1], w[0], rtol=0, atol=1e-12)
