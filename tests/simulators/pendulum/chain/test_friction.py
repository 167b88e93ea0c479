"""Dry friction of joints and drag of the air, as loads and as a brake that solves for the rate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.pendulum.chain.friction import BrakedRate, SlowDown

from ....helpers.rounding import assert_equal_but_for_rounding
from ..chains import chain, friction_of, mass_matrix, moments, numbers


def check(function: Any, *inputs: Tensor) -> None:
    gradcheck(function, inputs, tolerance=1e-6)
    dot_product_test(function, inputs, tolerance=1e-12)


@pytest.mark.parametrize("links", [1, 2, 5])
def test_every_element_of_the_jacobian_is_right(links: int) -> None:
    model, params, state = chain(links, friction=True)
    check(lambda *x: SlowDown.apply(model, *x), state.rate, *friction_of(params))
    given = state.angle, numbers(links), params.length, *moments(model, params), *friction_of(params)
    check(lambda *x: BrakedRate.apply(model, *x, 0.05, math.nan), *given)


def test_the_loads_turn_two_links_against_each_other_and_each_against_the_air() -> None:
    model, params, state = chain(4, friction=True)
    v, (F, w, a) = state.rate.data, [each.data for each in friction_of(params)]
    torque = -2 / np.pi * F * np.arctan(np.diff(v, prepend=0.0) / w)
    expected = torque - np.append(torque[1:], 0.0) - a * abs(v) * v
    assert_equal_but_for_rounding(SlowDown.apply(model, state.rate, *friction_of(params)).data, expected, ulps=64)


def test_without_a_transition_dry_friction_is_that_of_coulomb() -> None:
    model, params, _ = chain(1, friction=True, dry_friction=0.3, transition_rate=1e-9, drag=0.0)
    for rate in (-2.0, -1e-6, 1e-6, 2.0):
        found = SlowDown.apply(model, tensor([rate]), *friction_of(params)).data
        assert found == pytest.approx(-0.3 * np.sign(rate), rel=1e-3)


def test_the_published_friction_of_a_test_bench_is_one_of_these() -> None:
    """A torque F atan(100 rate) has the dry friction F pi / 2 and the transition rate 0.01 rad/s."""
    model, params, state = chain(1, friction=True, dry_friction=0.1839 * np.pi / 2, transition_rate=0.01, drag=0.0)
    found = SlowDown.apply(model, state.rate, *friction_of(params)).data
    assert_equal_but_for_rounding(found, -0.1839 * np.arctan(100 * state.rate.data), ulps=16)


@pytest.mark.parametrize("links", [1, 2, 5])
def test_the_braked_rate_has_the_momentum_that_is_left(links: int) -> None:
    """Check M v = p + k f(v)."""
    model, params, state = chain(links, friction=True)
    k, p = 0.05, numbers(links)
    given = state.angle, p, params.length, *moments(model, params), *friction_of(params), k, math.nan
    v = BrakedRate.apply(model, *given)
    left = p.data + k * SlowDown.apply(model, v, *friction_of(params)).data
    np.testing.assert_allclose(mass_matrix(params, state.angle.data) @ v.data, left, rtol=0, atol=1e-12)


def test_a_step_too_long_for_its_friction_has_no_result() -> None:
    """Newton's method goes to and fro over a sign that changes within a thousandth of the rate."""
    model, params, state = chain(1, friction=True, dry_friction=50.0, transition_rate=1e-3)
    given = state.angle, numbers(1), params.length, *moments(model, params), *friction_of(params)
    assert np.isnan(BrakedRate.apply(model, *given, 0.05, math.nan).data).all()
