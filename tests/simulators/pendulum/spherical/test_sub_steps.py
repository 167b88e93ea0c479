"""The sub-steps of the spherical pendulum, and their adjoints."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.pendulum.integrators import make_zeros
from simphys.simulators.pendulum.spherical.acceleration import Acceleration
from simphys.simulators.pendulum.spherical.damp import Damp
from simphys.simulators.pendulum.spherical.drift import Drift
from simphys.simulators.pendulum.spherical.sphere import ProjectToSphere
from simphys.simulators.pendulum.spherical.turn import Turn

from ....helpers.rounding import assert_equal_but_for_rounding
from ..sphericals import spherical, vector


def assert_right(function: Callable[..., Any], *inputs: Tensor) -> None:
    """Check the gradient, also off the sphere, where the formulas hold as they stand."""
    gradcheck(function, inputs, tolerance=1e-7)
    dot_product_test(function, inputs, tolerance=1e-12)


def test_every_element_of_each_jacobian_is_right() -> None:
    model, params, _ = spherical()
    apply = functools.partial(Acceleration.apply, model)
    assert_right(apply, vector(1), vector(2), vector(3), *params.tensors())
    assert_right(lambda *x: apply(*x[:2], make_zeros(3), *x[2:]), vector(1), vector(2), *params.tensors())
    assert_right(functools.partial(ProjectToSphere.apply, model), vector(1), vector(2))
    assert_right(lambda d, w: Drift.apply(model, d, w, 0.3), vector(1), vector(2))
    assert_right(lambda *x: Damp.apply(model, *x, 0.3), vector(1), params.length, params.mass, params.damping)
    assert_right(functools.partial(Turn.apply, model), vector(1), vector(2))


def test_the_acceleration_is_that_of_newtons_law() -> None:
    """Check m L (d'' + |d'|^2 d) = force across the link, with d'' = alpha x d + w x d'."""
    model, params, state = spherical()
    L, m, c, G = (each.data for each in params.tensors())
    d, w, t = state.direction.data, state.rate.data, vector(3).data
    alpha = Acceleration.apply(model, state.direction, state.rate, tensor(t), *params.tensors()).data
    assert_equal_but_for_rounding(alpha @ d, 0.0, size=abs(alpha).max())
    velocity = np.cross(w, d)
    acceleration = np.cross(alpha, d) + np.cross(w, velocity)
    force = m * G + np.cross(t - c * w, d) / L
    across = force - (force @ d) * d
    np.testing.assert_allclose(m * L * (acceleration + velocity @ velocity * d), across, rtol=0, atol=1e-13)


def test_a_drift_turns_about_the_rate_and_the_return_to_the_sphere_is_one() -> None:
    model, _, state = spherical()
    d, w = state.direction.data, state.rate.data
    new = Drift.apply(model, state.direction, state.rate, 0.2).data
    assert_equal_but_for_rounding(np.cross(d, new), 0.2 * w, size=1.0)
    assert_equal_but_for_rounding(np.linalg.norm(new), 1.0)
    unit, across = (each.data for each in ProjectToSphere.apply(model, vector(1), vector(2)))
    assert_equal_but_for_rounding([unit @ unit, unit @ across], [1.0, 0.0])
    again = [each.data for each in ProjectToSphere.apply(model, tensor(unit), tensor(across))]
    assert_equal_but_for_rounding(again, [unit, across])


def test_a_turn_of_a_right_angle_in_a_step_has_no_result() -> None:
    model, _, state = spherical()
    far = 1.01 / np.linalg.norm(state.rate.data)
    assert np.isnan(Drift.apply(model, state.direction, state.rate, far).data).all()
