"""The time of impact is exact to rounding, and its derivative is that of the closing gap (saltation)."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.billiards.model import Billiards
from simphys.simulators.billiards.time_of_impact import TimeOfImpact

from .tables import leaf, table

MODEL = Billiards(3, 1.0)
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
    gradcheck(lambda *x: TimeOfImpact.apply(MODEL, i, j, *x), (*inputs, *rest), tolerance=1e-7)


def test_a_partner_that_rests_before_the_impact_is_where_it_stopped() -> None:
    """Ball 1 stops after 0.1^2 / (2 0.5) = 0.01 m, at 0.2 s; ball 0 travels 0.29 m and is slowed all the way."""
    model, params, state = table([[0.0, 0.0], [0.38, 0.0]], [[1.0, 0.0], [0.1, 0.0]], deceleration=0.5, dt=1.0)
    p = params
    t = TimeOfImpact.apply(model, 0, 1, *state.tensors(), p.radius, p.deceleration, p.lower, p.upper)
    assert float(t) == pytest.approx((1 - np.sqrt(1 - 2 * 0.5 * 0.29)) / 0.5, rel=1e-14)
    gradcheck(
        lambda x, v, a: TimeOfImpact.apply(model, 0, 1, x, v, p.radius, a, p.lower, p.upper),
        (*state.tensors(), p.deceleration),
        tolerance=1e-7,
    )
