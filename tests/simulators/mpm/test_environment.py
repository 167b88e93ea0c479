"""The environment of the grid in a step, as one array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.simulators.mpm import environment, grid
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.environment import FIELDS

from .systems import Case, system

DIMS = pytest.mark.parametrize("dim", [2, 3])


def driven(dim: int) -> Case:
    colliders = Collider("sphere", (0.1,)), Collider("box", (0.1, 0.2, 0.1)[:dim]), Collider("plane")
    return system(dim, laws=("fluid",), colliders=colliders, steps=1)


def environment_of(case: Case, control: Tensor | None) -> Any:
    return environment.build_environment(case.model, case.params, case.state, control)


@DIMS
def test_the_fields_lie_one_after_another_and_controls_add_to_velocity_and_spin(dim: int) -> None:
    case = driven(dim)
    assert case.control is not None
    control, (A, K, S) = case.control.data[0], (2, 3, case.model.spins)
    found = environment_of(case, case.control[0]).data
    inputs = {name: x.data.copy() for name, x in case.inputs().items()}
    inputs["collider_velocity"] += control[A : A + K * dim].reshape(K, dim)
    inputs["collider_spin"] += control[A + K * dim :].reshape(K, S)
    np.testing.assert_array_equal(found, np.concatenate([inputs[name].ravel() for name in FIELDS]))
    assert found.shape == (environment.environment_size(case.model),)
    for name, place in environment.field_slices(case.model).items():
        np.testing.assert_array_equal(found[place], inputs[name].ravel())


@DIMS
def test_without_a_control_the_colliders_move_as_their_parameters_say(dim: int) -> None:
    case = driven(dim)
    places = environment.field_slices(case.model)
    found = environment_of(case, None).data
    np.testing.assert_array_equal(found[places["collider_velocity"]], case.params.collider_velocity.data.ravel())
    np.testing.assert_array_equal(found[places["collider_spin"]], case.params.collider_spin.data.ravel())


@DIMS
def test_the_parts_of_a_control_are_all_of_it(dim: int) -> None:
    model = driven(dim).model
    places = environment.control_slices(model)
    assert [place.start for place in places.values()] == [0, *[place.stop for place in places.values()]][:-1]
    assert (list(places.values())[-1].stop,) == model.control_shape()


def test_every_element_of_the_jacobian_is_right() -> None:
    case = driven(2)
    names = (*FIELDS, "control")

    def of(*inputs: Tensor) -> Any:
        given = case.using(dict(zip(names, inputs, strict=True)))
        assert given.control is not None
        return environment_of(given, given.control[0])

    gradcheck(of, [case.inputs()[name] for name in names], mode="projected", tolerance=1e-9)


def test_without_colliders_there_are_gravity_and_friction_alone() -> None:
    case = system(3, laws=("fluid",))
    np.testing.assert_array_equal(environment_of(case, None).data[:3], case.params.gravity.data)
    assert environment_of(case, None).shape == (4,) and grid.collider_sizes(case.model).shape == (3,)


def test_the_lengths_of_colliders_have_a_row_each() -> None:
    sizes = grid.collider_sizes(driven(2).model).reshape(-1, 3)
    np.testing.assert_array_equal(sizes, [[0.1, 0, 0], [0.1, 0.2, 0], [0, 0, 0]])
