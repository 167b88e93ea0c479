"""The control of a step: what it adds to the motion of colliders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.control import control_slices, controlled_motion

from .systems import Case, system

DIMS = pytest.mark.parametrize("dim", [2, 3])


def driven(dim: int) -> Case:
    colliders = Collider("sphere", (0.1,)), Collider("box", (0.1, 0.2, 0.1)[:dim]), Collider("plane")
    return system(dim, laws=("fluid",), colliders=colliders, steps=1)


@DIMS
def test_controls_add_to_velocity_and_spin(dim: int) -> None:
    case = driven(dim)
    assert case.control is not None
    control, (A, K, S) = case.control.data[0], (2, 3, case.model.spins)
    velocity, spin = controlled_motion(case.model, case.params, case.control[0])
    added = control[A : A + K * dim].reshape(K, dim), control[A + K * dim :].reshape(K, S)
    np.testing.assert_array_equal(velocity.data, case.params.collider_velocity.data + added[0])
    np.testing.assert_array_equal(spin.data, case.params.collider_spin.data + added[1])


@DIMS
def test_without_a_control_the_colliders_move_as_their_parameters_say(dim: int) -> None:
    case = driven(dim)
    velocity, spin = controlled_motion(case.model, case.params, None)
    assert velocity is case.params.collider_velocity and spin is case.params.collider_spin


@DIMS
def test_the_parts_of_a_control_are_all_of_it(dim: int) -> None:
    model = driven(dim).model
    places = control_slices(model)
    assert [place.start for place in places.values()] == [0, *[place.stop for place in places.values()]][:-1]
    assert (list(places.values())[-1].stop,) == model.control_shape()


def test_every_element_of_the_jacobian_is_right() -> None:
    case = driven(2)
    names = ("collider_velocity", "collider_spin", "control")

    def motion(*inputs: Tensor) -> Any:
        given = case.using(dict(zip(names, inputs, strict=True)))
        assert given.control is not None
        return controlled_motion(given.model, given.params, given.control[0])

    inputs = [case.inputs()[name] for name in names]
    gradcheck(motion, inputs, mode="projected", tolerance=1e-9)
    dot_product_test(motion, inputs, tolerance=1e-12)
