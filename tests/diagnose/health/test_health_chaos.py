"""Health of a chaotic motion: a double pendulum on springs, compared with tangent equations integrated by scipy.

Unit masses hang on springs, the first on the origin, the second on the first; they fall from almost above.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from simphys.autograd import tensor
from simphys.diagnose.health import health
from simphys.rollout import rollout

from ...simulators.mass_spring.systems import springs_only

STIFFNESS, LENGTH, GRAVITY = 100.0, 1.0, 9.81
START = np.array([[0.0, 1.2], [0.3, 2.3]])


def simulated(position: np.ndarray, *, dt: float) -> tuple[Any, ...]:
    """Make the masses at rest at position [2, 2], with velocity Verlet."""
    nodes = [*position.tolist(), [0.0, 0.0]]
    return springs_only(
        [[2, 0], [0, 1]],
        nodes,
        pinned=[2],
        stiffness=STIFFNESS,
        rest_length=LENGTH,
        gravity=[0.0, -GRAVITY],
        dt=dt,
        integrator="velocity_verlet",
    )


def equations(_: float, flat: np.ndarray, members: int, tangents: int) -> np.ndarray:
    """Derivative of motion and tangents: position, velocity [members, 1, 2, 2], then `tangents` of each."""
    y = flat.reshape(2, members, 1 + tangents, 2, 2)
    x, dx = y[0][:, :1], y[0][:, 1:]
    d, dd = x.copy(), dx.copy()  # along the two springs
    d[:, :, 1] -= x[:, :, 0]
    dd[:, :, 1] -= dx[:, :, 0]
    r = np.linalg.norm(d, axis=-1, keepdims=True)
    n = d / r
    along = n * (n * dd).sum(axis=-1, keepdims=True)
    pull = STIFFNESS * (1 - LENGTH / r) * d
    dpull = STIFFNESS * (along + (1 - LENGTH / r) * (dd - along))
    a, da = -pull, -dpull
    a[:, :, 0] += pull[:, :, 1]
    da[:, :, 0] += dpull[:, :, 1]
    a[..., 1] -= GRAVITY
    return np.stack([y[1], np.concatenate([a, da], axis=1)]).ravel()


def integrated(y: np.ndarray, duration: float, tolerance: float) -> np.ndarray:
    """Integrate y [2, members, 1 + tangents, 2, 2] over a time."""
    sizes = (y.shape[1], y.shape[2] - 1)
    found = solve_ivp(
        equations,
        (0, duration),
        y.ravel(),
        args=sizes,
        method="DOP853",
        rtol=tolerance,
        atol=tolerance,
        t_eval=[duration],
    )
    return found.y[:, -1].reshape(y.shape)


def growth_of_adjoint(seed: np.ndarray, *, duration: float, tolerance: float) -> float:
    """Compute log |adj(0)| / |adj(end)| for a seed [8] at the end: all tangents, renormalized by QR each half second.

    The derivative of the end by the start is Q R_n ... R_1; its transpose takes the seed through Q^T, R_n^T ... R_1^T.
    """
    y = np.zeros((2, 1, 9, 2, 2))
    y[0, 0, 0] = START
    y[:, 0, 1:] = np.eye(8).reshape(8, 2, 2, 2).swapaxes(0, 1)
    factors = []
    for _ in range(round(duration / 0.5)):
        y = integrated(y, 0.5, tolerance)
        q, r = np.linalg.qr(y[:, 0, 1:].swapaxes(0, 1).reshape(8, 8).T)
        y[:, 0, 1:] = q.T.reshape(8, 2, 2, 2).swapaxes(0, 1)
        factors.append(r)
    adj, grown = q.T @ seed, 0.0
    for r in reversed(factors):
        adj = r.T @ adj
        grown += np.log(np.linalg.norm(adj))
        adj /= np.linalg.norm(adj)
    return grown - float(np.log(np.linalg.norm(seed)))


def test_the_adjoint_grows_as_the_tangent_equations_of_the_same_motion_say() -> None:
    """Compare over 4 s, a ten-thousandfold growth, in which the simulated motion still follows the exact one."""
    weights = np.random.default_rng(5).normal(size=(2, 2, 2))  # for position and velocity

    def loss(trajectory: Any) -> Any:
        final = trajectory.final
        return (final.position[:2] * weights[0]).sum() + (final.velocity[:2] * weights[1]).sum()

    known, rougher = (growth_of_adjoint(weights.ravel(), duration=4.0, tolerance=t) for t in (1e-11, 1e-9))
    assert abs(known - rougher) < 1e-5
    assert known > 9
    errors = []
    for dt in (4e-4, 2e-4):
        found = health(*simulated(START, dt=dt), steps=round(4 / dt), loss=loss)
        sizes = [np.sqrt(sum((each[row, :2] ** 2).sum() for each in found.adjoint.values())) for row in (0, -1)]
        errors.append(np.log(sizes[0] / sizes[1]) - known)
    assert abs(errors[1]) < 1e-4
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)  # velocity Verlet is of second order


def known_exponent(*, members: int = 32, seconds: int = 50, transient: int = 15) -> float:
    """Estimate the largest Lyapunov exponent to some 3 %, from members with close starts [1/s]."""
    random = np.random.default_rng(0)
    y = np.zeros((2, members, 2, 2, 2))
    y[0, :, 0] = START + 0.02 * random.normal(size=(members, 2, 2))
    y[:, :, 1] = random.normal(size=(2, members, 2, 2))
    logs = []
    for _ in range(seconds):
        y = integrated(y, 1.0, 1e-7)
        size = np.sqrt((y[:, :, 1] ** 2).sum(axis=(0, 2, 3)))
        y[:, :, 1] /= size[:, None, None]
        logs.append(np.log(size))
    return float(np.mean(logs[transient:]))


def test_rates_and_usable_horizons_are_those_of_the_known_exponent() -> None:
    """Any rounding leads to other motions, whose rates scatter by a tenth: bounds are five errors of a mean of four."""
    exponent = known_exponent()
    random = np.random.default_rng(1)
    rates, usable = [], []
    for _ in range(4):
        start = START + 0.02 * random.normal(size=(2, 2))
        found = health(*simulated(start, dt=2e-3), steps=60_000)
        assert found.rate is not None and found.tangent_rate is not None
        assert found.rate.exponential and found.tangent_rate.exponential
        rates += [found.rate.value, found.tangent_rate.value]
        usable.append(found.usable_steps * found.dt)
    assert np.mean(rates) == pytest.approx(exponent, rel=0.3)
    assert np.mean(usable) == pytest.approx(52 * np.log(2) / exponent, rel=0.3)  # until exp(exponent t) is 1/eps


def test_beyond_the_usable_horizon_the_rounding_of_the_start_changes_the_end() -> None:
    model, params, state = simulated(START, dt=2e-3)
    usable = health(model, params, state, steps=30_000).usable_steps
    shifted = state.position.data.copy()
    shifted[1, 0] = np.nextafter(shifted[1, 0], 3.0)
    twin = state.replace(position=tensor(shifted))
    one, other = (rollout(model, params, start, steps=30_000).position.data for start in (state, twin))
    apart = np.linalg.norm(one - other, axis=(1, 2))
    assert apart[: usable // 2].max() < 1e-2
    assert apart[round(1.25 * usable) :].max() > 1.0
