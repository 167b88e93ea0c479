"""Adjoint, finite difference and closed form agree for impacts of two balls, a cushion, and a ball that comes to rest.

Two methods that both take the time of impact as fixed agree and are both wrong: the closed form decides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, no_grad, ops, tensor
from simphys.autograd.compose.functional import jacobian
from simphys.rollout import rollout
from simphys.simulators.billiards import Billiards, Params, State

from ...helpers.rounding import assert_equal_but_for_rounding
from .tables import busy, leaves, move, table, unpack

Array = np.ndarray[Any, Any]
Case = tuple[Billiards, Params, State]
STEPS, DT = 7, 0.15
END = STEPS * DT


def ends(case: Case) -> Callable[..., Tensor]:
    """Return a function from the inputs of a motion to the final positions and velocities of all balls, [4 n]."""
    model = case[0]

    def end(*inputs: Tensor) -> Tensor:
        final = rollout(model, *unpack(*inputs), steps=STEPS, keep="final").final
        return ops.concatenate([ops.reshape(each, (-1,)) for each in (final.position, final.velocity)])

    return end


def differences(function: Callable[[Array], Array], at: Array) -> Array:
    """Central differences [m, p], extrapolated from three step sizes (Richardson)."""
    columns = []
    for direction in np.eye(len(at)):
        d = [(function(at + h * direction) - function(at - h * direction)) / (2 * h) for h in (4e-3, 2e-3, 1e-3)]
        once = [(4 * fine - coarse) / 3 for coarse, fine in itertools.pairwise(d)]
        columns.append((16 * once[1] - once[0]) / 15)
    return np.stack(columns, axis=1)


def assert_all_agree(case: Case, closed: Callable[[Array], Array], picked: list[tuple[str, tuple[int, ...]]]) -> None:
    """Compare the final state and its derivatives with `closed`, the same as a function of some entries of the inputs.

    Derivatives are computed in three ways: by the adjoint, by differences of the motion, and by complex steps of the
    closed form, which are exact to rounding.
    """
    inputs = dict(zip((*State.names(), *Params.names()), leaves(*case[1:]), strict=True))
    at = np.array([inputs[name].data[index] for name, index in picked])
    end = ends(case)
    with no_grad():
        found = end(*inputs.values()).data
    np.testing.assert_allclose(found, closed(at), rtol=0, atol=1e-13)

    adjoint = np.stack(
        [
            block.reshape(len(found), *inputs[name].shape)[(slice(None), *index)]
            for name, index in picked
            for block in [jacobian(end, tuple(inputs.values()))[list(inputs).index(name)]]
        ],
        axis=1,
    )
    exact = np.stack([closed(at + 1e-30j * direction).imag / 1e-30 for direction in np.eye(len(at))], axis=1)

    def simulated(values: Array) -> Array:
        changed = {name: value.data.copy() for name, value in inputs.items()}
        for (name, index), value in zip(picked, values, strict=True):
            changed[name][index] = value
        with no_grad():
            return np.array(end(*[tensor(value) for value in changed.values()]).data)

    np.testing.assert_allclose(adjoint, exact, rtol=0, atol=1e-12 * np.abs(exact).max())
    np.testing.assert_allclose(differences(simulated, at), exact, rtol=0, atol=1e-8 * np.abs(exact).max())


def test_two_balls_head_on() -> None:
    """x1 = x + v t until the impact at t = (X - x - R) / (v - V); then with v1, V1 of masses m, M and restitution c."""

    def closed(p: Array) -> Array:
        x, v, big_v, m, big_m, c, r = p
        big_x, y = 0.8, 0.3
        t = (big_x - x - r - 0.06) / (v - big_v)
        impulse = (1 + c) * (v - big_v) * m * big_m / (m + big_m)
        after, after_big = v - impulse / m, big_v + impulse / big_m
        left = END - t
        end = x + v * t + after * left, y, big_x + big_v * t + after_big * left, y, after, 0, after_big, 0
        return np.array(end)

    case = table(
        [[0.2, 0.3], [0.8, 0.3]],
        [[1.1, 0.0], [-0.2, 0.0]],
        dt=DT,
        radius=[0.05, 0.06],
        mass=[0.7, 1.3],
        restitution=0.6,
    )
    names = [("position", (0, 0)), ("velocity", (0, 0)), ("velocity", (1, 0)), ("mass", (0,)), ("mass", (1,))]
    assert_all_agree(case, closed, [*names, ("restitution", ()), ("radius", (0,))])


def test_two_balls_oblique() -> None:
    """The impact is at the smaller root of |d + w t|^2 = R^2, with d, w the relative position and velocity."""

    def closed(p: Array) -> Array:
        x, v, m, c = p[:2], p[2:4], p[4], p[5]
        big_x, big_v, big_m, reach = np.array([0.75, 0.45]), np.array([0.1, -0.05]), 1.3, 0.11
        d, w = x - big_x, v - big_v
        t = (-(d @ w) - np.sqrt((d @ w) ** 2 - (w @ w) * (d @ d - reach**2))) / (w @ w)
        n = (d + w * t) / reach
        impulse = (1 + c) * (n @ w) * m * big_m / (m + big_m)
        after, after_big = v - impulse / m * n, big_v + impulse / big_m * n
        return np.concatenate(
            [x + v * t + after * (END - t), big_x + big_v * t + after_big * (END - t), after, after_big]
        )

    case = table(
        [[0.2, 0.3], [0.75, 0.45]],
        [[1.1, 0.15], [0.1, -0.05]],
        dt=DT,
        radius=[0.05, 0.06],
        mass=[0.7, 1.3],
        restitution=0.6,
    )
    names = [("position", (0, 0)), ("position", (0, 1)), ("velocity", (0, 0)), ("velocity", (0, 1))]
    assert_all_agree(case, closed, [*names, ("mass", (0,)), ("restitution", ())])


@pytest.mark.parametrize("deceleration", [0.0, 0.4])
def test_a_ball_and_a_cushion(deceleration: float) -> None:
    """Slowed by a, it hits the cushion at X with u = sqrt(v^2 - 2 a s) after (v - u) / a, s being the distance to it.

    Then it continues with c u, slowed alike. Without a deceleration its position has d x_end / d x = -c: starting
    nearer it hits sooner. If the time of impact were fixed, that would be 1.
    """

    def closed(p: Array) -> Array:
        x, v, c, wall, r, a = p
        way = wall - r - x
        u = np.sqrt(v**2 - 2 * a * way)
        t = 2 * way / (v + u)
        left = END - t
        return np.array([wall - r - c * u * left + a * left**2 / 2, 0.5, -c * u + a * left, 0])

    case = table(
        [[0.2, 0.5]],
        [[1.3, 0.0]],
        dt=DT,
        cushion_restitution=0.8,
        deceleration=deceleration,
        corners=([0.0, 0.0], [0.9, 1.0]),
    )
    names = [("position", (0, 0)), ("velocity", (0, 0)), ("cushion_restitution", ()), ("upper", (0,)), ("radius", (0,))]
    assert_all_agree(case, closed, [*names, ("deceleration", ())])


def test_a_ball_that_rolls_until_it_rests() -> None:
    """x_stop = x + v |v| / (2 a)."""

    def closed(p: Array) -> Array:
        x, v, a = p[:2], p[2:4], p[4]
        return np.concatenate([x + v * np.sqrt(v @ v) / (2 * a), 0 * v])

    case = table([[0.2, 0.5]], [[0.5, -0.3]], dt=DT, deceleration=0.9)
    names = [("position", (0, 0)), ("position", (0, 1)), ("velocity", (0, 0)), ("velocity", (0, 1))]
    assert_all_agree(case, closed, [*names, ("deceleration", ())])


def saltation(
    before: Array, field_before: Array, after: Array, reset: Array, field_after: Array, normal: Array
) -> Array:
    """S = D + (f' - D f) n^T / (n^T f): D the reset's Jacobian, f and f' the flows before and after, n the gap's
    gradient (Bernardo et al. 2008, equation 2.72)."""
    return reset + np.outer(field_after - reset @ field_before, normal) / (normal @ field_before)


def test_the_jacobian_across_an_impact_is_the_saltation_matrix() -> None:
    """One ball hits a cushion on the cloth, and two balls collide obliquely; states are (x, v), the flow is (v, -a e).

    The motion starts 1e-6 s before the impact and ends as long after, which changes the Jacobian by about 1e-6 of its
    size.
    """
    a, c = 0.4, 0.8
    v = np.array([1.3, 0.5])
    e = v / np.linalg.norm(v)
    turned = np.array([-c * v[0], v[1]])
    after = turned / np.linalg.norm(turned)
    reset = np.diag([1.0, 1.0, -c, 1.0])
    gap = np.array([-1.0, 0, 0, 0])
    expected = saltation(v, np.r_[v, -a * e], turned, reset, np.r_[turned, -a * after], gap)
    found = across([[0.85, 0.5]], [v], deceleration=a, cushion_restitution=c, corners=([0.0, 0.0], [0.9, 1.0]))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)

    x, v = np.array([[0.0, 0.0], [0.06, 0.08]]), np.array([[1.1, 0.2], [-0.1, 0.05]])
    m, c = np.array([0.7, 1.3]), 0.6
    d, w = x[0] - x[1], v[0] - v[1]
    n, reduced = d / 0.1, m.prod() / m.sum()
    impulse = (1 + c) * reduced * (n @ w)
    by_v = (1 + c) * reduced * np.outer(n, n)
    across_n = (np.eye(2) - np.outer(n, n)) / 0.1
    by_x = (1 + c) * reduced * (np.outer(n, w) + (n @ w) * np.eye(2)) @ across_n
    pair, signs = np.array([[1, -1], [-1, 1]]), np.array([1.0, -1.0])
    weights = np.diag(1 / m) @ pair
    reset = np.block([[np.eye(4), np.zeros((4, 4))], [-np.kron(weights, by_x), np.eye(4) - np.kron(weights, by_v)]])
    end = v - np.outer(signs / m, impulse * n)
    gap = np.r_[n, -n, np.zeros(4)]
    expected = saltation(v, np.r_[v.ravel(), np.zeros(4)], end, reset, np.r_[end.ravel(), np.zeros(4)], gap)
    np.testing.assert_allclose(across(x, v, mass=m, restitution=c), expected, rtol=0, atol=2e-5)


def across(x: Any, v: Any, **options: Any) -> Array:
    """Return the Jacobian of a motion from just before an impact to just after; x is the position at impact."""
    short = 1e-6
    model, params, state = table(np.asarray(x) - short * np.asarray(v), v, dt=2 * short, **options)

    def end(position: Tensor, velocity: Tensor) -> Tensor:
        after: State = model.step(params, State(position, velocity))
        return ops.concatenate([ops.reshape(each, (-1,)) for each in after.tensors()])

    blocks = jacobian(end, state.tensors())
    return np.concatenate([block.reshape(len(block), -1) for block in blocks], axis=1)


def test_momentum_and_energy_stay_without_losses() -> None:
    random = np.random.default_rng(3)
    x = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    v, m = random.normal(size=(16, 2)), random.uniform(0.5, 2, 16)
    case = table(x, v, dt=0.5, radius=random.uniform(0.2, 0.4, 16), mass=m, restitution=1.0)
    _, after = move(case, 4.0)
    # Dozens of impacts, and sixteen terms in each sum.
    assert_equal_but_for_rounding(m @ after, m @ v, ulps=500, size=1.0)
    assert_equal_but_for_rounding(m @ (after**2).sum(axis=1), m @ (v**2).sum(axis=1), ulps=500)
    assert (np.abs(after - v).max(axis=1) > 0.1).sum() > 10  # most have collided


def test_a_motion_does_not_depend_on_the_time_step() -> None:
    """The time step changes only where a motion with impacts, cushions and rests is sampled, but for rounding."""
    coarse, fine, whole = (move(busy(dt=dt), 1.4) for dt in (0.1, 0.1 / 7, 1.4))
    for a, b, c in zip(coarse, fine, whole, strict=True):
        np.testing.assert_allclose(b, a, rtol=0, atol=2e-13)  # each impact makes differences several times larger
        np.testing.assert_allclose(c, a, rtol=0, atol=2e-13)
    resting = np.linalg.norm(coarse[1], axis=1) == 0
    assert resting.any() and not resting.all()


def test_a_reversed_motion_returns_to_its_start() -> None:
    """Without losses, reversed velocities retrace a motion with several impacts."""
    model, params, state = busy(deceleration=0.0)
    params = params.replace(restitution=tensor(1.0), cushion_restitution=tensor(1.0))
    x, v = move((model, params, state), 2.0)
    back, _ = move((model, params, State(tensor(x), tensor(-v))), 2.0)
    np.testing.assert_allclose(back, state.position.data, rtol=0, atol=1e-10)
