"""Drift: bodies follow their velocities, corrected for impulses within the step."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.rigid.motion.drift import Drift, FreeDrift

from ....helpers.rounding import assert_equal_but_for_rounding
from ..free_bodies import bodies, drift_inputs, free_drift_inputs


@pytest.mark.parametrize("dim", [2, 3])
def test_every_element_of_the_jacobian_is_right(dim: int) -> None:
    model = bodies(dim, count=2)
    gradcheck(lambda *x: Drift.apply(model, 0.3, *x), tuple(drift_inputs(model).values()), tolerance=1e-8)
    gradcheck(lambda *x: FreeDrift.apply(model, 0.3, *x), tuple(free_drift_inputs(model).values()), tolerance=1e-8)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_free_drift_is_one_without_a_shift(dim: int) -> None:
    model = bodies(dim, count=2)
    x, q, v, w, inertia = [tensor(each.data) for each in free_drift_inputs(model).values()]
    twist, no_shift = tensor(np.hstack([v.data, w.data])), tensor(np.zeros((2, model.freedoms)))
    x_new, q_new, _, w_new = Drift.apply(model, 0.3, x, q, twist, no_shift, inertia)
    for found, expected in zip(FreeDrift.apply(model, 0.3, x, q, v, w, inertia), (x_new, q_new, w_new), strict=True):
        assert_equal_but_for_rounding(found.data, expected.data, ulps=64, size=max(1.0, abs(expected.data).max()))


@pytest.mark.gpu
def test_in_the_plane_bodies_follow_their_twist_minus_the_shift() -> None:
    model = bodies(2)
    given = drift_inputs(model)
    x, q, v, w = (each.data for each in Drift.apply(model, 0.3, *given.values()))
    moved = np.hstack([x - given["position"].data, q - given["orientation"].data])
    np.testing.assert_allclose(moved, 0.3 * given["twist"].data - given["shift"].data, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(np.hstack([v, w]), given["twist"].data)


def test_a_body_rotates_about_a_principal_axis_by_its_velocity() -> None:
    """It rotates by asin(h w), which differs from h w by O(h^3)."""
    model = bodies(3, count=1)
    angle = np.arcsin(0.1)
    zeros, unit = np.zeros((1, 3)), tensor([[1.0, 0.0, 0.0, 0.0]])
    twist = tensor([[0.0, 0.0, 0.0, 0.0, 1.0, 0.0]])
    _, q, _, w = Drift.apply(
        model, 0.1, tensor(zeros), unit, twist, tensor(np.zeros((1, 6))), tensor([[1.0, 2.0, 3.0]])
    )
    assert_equal_but_for_rounding(q.data, [[np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0]])
    assert_equal_but_for_rounding(w.data, [[0.0, 1.0, 0.0]])


def test_quaternions_are_of_unit_length() -> None:
    model = bodies(3)
    _, q, _, _ = Drift.apply(model, 0.3, *drift_inputs(model).values())
    assert_equal_but_for_rounding(np.linalg.norm(q.data, axis=1), np.ones(len(q.data)))
