"""The time of impact is exact to rounding, and its derivative is that of the closing gap (saltation)."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.billiards import search
from simphys.simulators.billiards.time_of_impact import time_of_bounce, time_of_impact

from ...helpers.rounding import assert_equal_but_for_rounding
from .alone import make_time_of_bounce, make_time_of_impact
from .tables import leaf, table

TimeOfImpact, TimeOfBounce = make_time_of_impact(time_of_impact), make_time_of_bounce(time_of_bounce)
END = 2.0


def time_until(i: int, j: int, x: Tensor, v: Tensor, r: Tensor, a: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the time until ball i meets partner j, [1]."""
    first, options = slice(i, i + 1), (END, END / 2048, search.rounding())
    if j < len(x.data):
        other = slice(j, j + 1)
        time, _ = TimeOfImpact.apply(None, x[first], v[first], r[first], x[other], v[other], r[other], a, *options)
    else:
        corners = lower, upper, j - len(x.data)
        time, _ = TimeOfBounce.apply(None, x[first], v[first], r[first], a, *corners, *options)
    assert isinstance(time, Tensor)
    return time


CORNERS = ([0.0, 0.1], [1.0, 0.8])


@pytest.mark.parametrize("deceleration", [0.0, 0.3])
@pytest.mark.parametrize(
    ("i", "j"), [(0, 2), (0, 3), (2, 4), (2, 5), (0, 6)], ids=["balls", "left", "right", "lower", "upper"]
)
def test_every_element_of_the_jacobian_is_right(i: int, j: int, deceleration: float) -> None:
    toward = {2: [0.4, 0.3], 3: [-0.5, 0.1], 4: [0.5, 0.1], 5: [0.1, -0.6], 6: [0.1, 0.5]}[j]
    v = [[0.05, 0.01], [0.0, 0.0], [0.02, -0.05]]
    v[i] = toward
    inputs = leaf([[0.3, 0.4], [9.0, 9.0], [0.6, 0.62]]), leaf(v), leaf([0.05, 0.04, 0.06])
    rest = leaf(deceleration), *[leaf(corner) for corner in CORNERS]
    gradcheck(lambda *x: time_until(i, j, *x), (*inputs, *rest), tolerance=1e-7)


def test_a_partner_that_rests_before_the_impact_is_where_it_stopped() -> None:
    """Ball 1 stops after 0.1^2 / (2 0.5) = 0.01 m, at 0.2 s; ball 0 travels 0.29 m and is slowed all the way."""
    _, params, state = table([[0.0, 0.0], [0.38, 0.0]], [[1.0, 0.0], [0.1, 0.0]], deceleration=0.5, dt=1.0)
    p, x, v = params, state.position, state.velocity
    t = time_until(0, 1, x, v, p.radius, p.deceleration, p.lower, p.upper)[0]
    assert_equal_but_for_rounding(t.data, (1 - np.sqrt(1 - 2 * 0.5 * 0.29)) / 0.5, ulps=64, size=1 / 0.5)
    gradcheck(
        lambda x, v, a: time_until(0, 1, x, v, p.radius, a, p.lower, p.upper),
        (x, v, p.deceleration),
        tolerance=1e-7,
    )
