"""Momenta of a chain, the inverse map to rates, and their adjoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.pendulum.chain.momentum import Momentum, Rate

from ..chains import chain, mass_matrix, moments, numbers


@pytest.mark.parametrize("function", [Momentum, Rate])
@pytest.mark.parametrize("links", [1, 2, 5])
def test_every_element_of_the_jacobian_is_right(function: Any, links: int) -> None:
    model, params, state = chain(links)
    inputs = (*state.tensors(), params.length, *moments(model, params))
    gradcheck(lambda *x: function.apply(model, *x), inputs, tolerance=1e-6)
    dot_product_test(lambda *x: function.apply(model, *x), inputs, tolerance=1e-12)


@pytest.mark.parametrize("links", [1, 2, 5, 16])
def test_the_momentum_is_the_mass_matrix_times_the_rate_and_back(links: int) -> None:
    model, params, state = chain(links)
    given = params.length, *moments(model, params)
    p = Momentum.apply(model, *state.tensors(), *given)
    np.testing.assert_allclose(p.data, mass_matrix(params, state.angle.data) @ state.rate.data, rtol=1e-12)
    back = Rate.apply(model, state.angle, p, *given)
    np.testing.assert_allclose(back.data, state.rate.data, rtol=0, atol=1e-10)
    assert Rate.apply(model, state.angle, numbers(links), *given).shape == (links,)
