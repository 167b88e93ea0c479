"""Two balls exchange an impulse along the line of centres; a cushion reverses the normal velocity."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.billiards.bounce import bounce
from simphys.simulators.billiards.impact import impact

from ...helpers.rounding import assert_equal_but_for_rounding
from .alone import make_bounce, make_impact
from .tables import leaf

Impact = partial(make_impact(impact).apply, None)
Bounce = partial(make_bounce(bounce).apply, None)

POSITION = [[0.3, 0.7], [9.0, 9.0], [0.36, 0.62]]
VELOCITY = [[1.3, 0.4], [0.5, 0.5], [-0.2, 1.1]]
MASS = [1.2, 3.0, 0.7]


def test_every_element_of_the_jacobian_of_an_impact_is_right() -> None:
    x, v, m = (np.array(each) for each in (POSITION, VELOCITY, MASS))
    inputs = [leaf(each) for each in (x[:1], v[:1], x[2:], v[2:], m[:1], m[2:], 0.8)]
    gradcheck(Impact, inputs, tolerance=1e-8)


@pytest.mark.parametrize("side", range(4))
def test_every_element_of_the_jacobian_of_a_bounce_is_right(side: int) -> None:
    gradcheck(lambda *x: Bounce(*x, side), (leaf(VELOCITY), leaf(0.7)), tolerance=1e-8)


@pytest.mark.parametrize("restitution", [0.0, 0.6, 1.0])
def test_momentum_is_conserved_and_the_normal_speed_is_scaled_by_the_restitution(
    restitution: float,
) -> None:
    x, v, m = (np.array(each) for each in (POSITION, VELOCITY, MASS))
    inputs = [leaf(each) for each in (x[:1], v[:1], x[2:], v[2:], m[:1], m[2:], restitution)]
    after = v.copy()
    after[0], after[2] = (each.data[0] for each in Impact(*inputs))
    assert_equal_but_for_rounding(m @ after, m @ v)
    n = (x[0] - x[2]) / np.linalg.norm(x[0] - x[2])
    across = np.array([-n[1], n[0]])
    speed = n @ (v[0] - v[2])
    assert_equal_but_for_rounding(n @ (after[0] - after[2]), -restitution * speed, ulps=32, size=2.0)
    assert_equal_but_for_rounding((after - v) @ across, np.zeros(3), size=2.0)
    lost = 0.5 * (m @ (v**2).sum(axis=1) - m @ (after**2).sum(axis=1))
    reduced = m[0] * m[2] / (m[0] + m[2])
    assert_equal_but_for_rounding(lost, 0.5 * reduced * (1 - restitution**2) * speed**2, ulps=32, size=2.0)


def test_a_bounce_reverses_only_the_normal_velocity() -> None:
    after = Bounce(leaf([[0.3, -0.8]]), leaf(0.5), 2).data
    np.testing.assert_array_equal(after, [[0.3, 0.4]])
