"""A ball rolls straight at constant deceleration until it rests; its adjoint, and the kink where it comes to rest."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from simphys.autograd import grad
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.billiards import flight

from ...helpers.rounding import assert_equal_but_for_rounding
from .tables import leaf

Flight = partial(flight.Flight.apply, None)
PLACES = [[0.3, 0.7], [1.1, -0.4], [0.2, 0.9]]


@pytest.mark.parametrize("deceleration", [0.0, 0.4])
def test_every_element_of_the_jacobian_is_right(deceleration: float) -> None:
    """Two balls move all the time; the third comes to rest meanwhile if the cloth slows it."""
    v = leaf([[1.3, 0.4], [-0.6, 0.9], [0.1, -0.2]])
    gradcheck(Flight, (leaf(PLACES), v, leaf(deceleration), leaf(0.8)), tolerance=1e-8)


def test_the_cloth_slows_a_ball_along_its_way() -> None:
    v, a, t = np.array([[3.0, 4.0]]), 2.0, 0.5
    x_new, v_new = Flight(leaf([[1.0, 1.0]]), leaf(v), leaf(a), leaf(t))
    assert_equal_but_for_rounding(v_new.data, v * (1 - a * t / 5))
    assert_equal_but_for_rounding(x_new.data, [1.0, 1.0] + v * (t - a * t**2 / 2 / 5))


@pytest.mark.parametrize("time", [2.5, 4.0])
def test_it_stops_after_v_squared_over_twice_the_deceleration(time: float) -> None:
    x_new, v_new = Flight(leaf([[1.0, 1.0]]), leaf([[3.0, 4.0]]), leaf(2.0), leaf(time))
    assert_equal_but_for_rounding(x_new.data, [[1 + 0.6 * 25 / 4, 1 + 0.8 * 25 / 4]])
    assert not v_new.data.any()


def test_at_the_moment_of_rest_the_position_is_smooth_and_the_velocity_has_the_derivative_of_rest() -> None:
    v = leaf([[3.0, 4.0]])
    x_new, v_new = Flight(leaf([[0.0, 0.0]]), v, leaf(2.0), leaf(2.5))
    (of_place,) = grad(x_new[0, 0], v, retain_graph=True)
    e = np.array([0.6, 0.8])
    assert_equal_but_for_rounding(of_place.data[0], 2.5 / 2 * (np.eye(2)[0] + e[0] * e))
    (of_velocity,) = grad(v_new.sum(), v)
    assert not of_velocity.data.any()

    def speed(start: float) -> float:
        return float(Flight(leaf([[0.0, 0.0]]), leaf([[start, 0.0]]), leaf(2.0), leaf(2.5))[1].data[0, 0])

    assert speed(5.0) == speed(5.0 - 1e-6) == 0 and speed(5.0 + 1e-6) == pytest.approx(1e-6)


@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_a_flight_of_no_time_changes_nothing_and_passes_derivatives_on(speed: float) -> None:
    gradcheck(lambda x, v, a: Flight(x, v, a, leaf(0.0)), (leaf([[0.3, 0.7]]), leaf([[speed, 0.0]]), leaf(0.4)))


def test_a_ball_at_rest_stays_and_has_finite_derivatives() -> None:
    for a, expected in ((0.0, 0.8), (0.4, 0.0)):
        v = leaf([[0.0, 0.0]])
        x_new, _ = Flight(leaf([[0.3, 0.7]]), v, leaf(a), leaf(0.8))
        assert x_new.data.tolist() == [[0.3, 0.7]]
        x_new.sum().backward()
        assert v.grad is not None and v.grad.data.tolist() == [[expected, expected]]
