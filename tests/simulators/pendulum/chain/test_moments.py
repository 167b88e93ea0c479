"""Moments of links about their joints, with the links beyond them."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.pendulum.chain.moments import Moments

from ..chains import chain


@pytest.mark.parametrize("links", [1, 2, 5])
def test_every_element_of_the_jacobian_is_right(links: int) -> None:
    model, params, _ = chain(links)
    inputs = params.length, params.mass, params.centre, params.inertia
    gradcheck(lambda *x: Moments.apply(model, *x), inputs, tolerance=1e-6)
    dot_product_test(lambda *x: Moments.apply(model, *x), inputs, tolerance=1e-12)


def test_links_beyond_a_link_count_as_point_masses_at_its_end() -> None:
    model, params, _ = chain(3)
    L, m, q, inertia = (each.data for each in (params.length, params.mass, params.centre, params.inertia))
    beyond = np.array([m[1] + m[2], m[2], 0.0])
    first, second = Moments.apply(model, params.length, params.mass, params.centre, params.inertia)
    np.testing.assert_allclose(first.data, m * q * L + beyond * L, rtol=1e-14)
    np.testing.assert_allclose(second.data, inertia + m * (q * L) ** 2 + beyond * L**2, rtol=1e-14)
