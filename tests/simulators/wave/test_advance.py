"""The leapfrog step, and its adjoint."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.wave.advance import advance
from simphys.simulators.wave.model import Wave

from ...helpers.rounding import assert_equal_but_for_rounding
from .systems import tolerance

MODEL = Wave((4, 3), 0.5, 0.1)


def inputs() -> tuple[Tensor, ...]:
    """Draw height, previous, dx^2 (laplace u + f) and speed."""
    random = np.random.default_rng(0)
    dtype = tensor(0.0).dtype
    fields = [random.normal(size=MODEL.cells) for _ in range(3)]
    return tuple([tensor(x.astype(dtype), requires_grad=True) for x in (*fields, random.uniform(1, 2, MODEL.cells))])


def test_every_element_of_the_jacobian_is_right() -> None:
    gradcheck(lambda *x: advance(MODEL, *x), inputs())
    dot_product_test(lambda *x: advance(MODEL, *x), inputs(), tolerance=1e-12)


@pytest.mark.gpu
def test_it_is_newtons_law_by_central_differences() -> None:
    u, before, k, c = (x.data for x in inputs())
    new = advance(MODEL, *inputs()).data
    acceleration = (new - 2 * u + before) / MODEL.dt**2
    np.testing.assert_allclose(acceleration, c**2 * k / MODEL.spacing**2, rtol=tolerance(1e-10, 1e-2))


def test_it_can_be_run_backward_in_time() -> None:
    u, before, k, c = inputs()
    new = advance(MODEL, u, before, k, c)
    assert_equal_but_for_rounding(advance(MODEL, u, new, k, c).data, before.data, ulps=64)
