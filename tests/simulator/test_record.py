"""Fields of Params and State are replaced by numbers, arrays and Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Record

from ..helpers.small_scenes import soft_square


def test_a_number_fills_its_field_and_the_other_fields_stay() -> None:
    params = soft_square().params
    for value in (5, 5.0, np.float32(5.0), np.array(5)):
        other = params.replace(stiffness=value, drag=0.5)
        assert other.stiffness.dtype == runtime.real_dtype() and other.drag.shape == params.drag.shape
        np.testing.assert_array_equal(other.stiffness, np.full(params.stiffness.shape, 5.0))
        assert other.mass is params.mass
    assert np.ptp(params.stiffness.data) == 0 and params.stiffness.data[0] == 30.0


def test_lists_and_arrays_are_copied_in_the_present_shape() -> None:
    state = soft_square().state
    velocity = np.arange(12.0).reshape(6, 2)
    for value in (velocity, velocity.tolist(), velocity.astype(np.int32)):
        np.testing.assert_array_equal(state.replace(velocity=value).velocity, velocity)
    other = state.replace(velocity=velocity)
    velocity[:] = 0.0
    assert other.velocity.data[5, 1] == 11.0


def test_gradients_flow_to_a_tensor_of_any_shape() -> None:
    scene = soft_square()
    stiffness = tensor(np.full((3, *scene.params.stiffness.shape), 30.0), requires_grad=True)  # a batch of three
    scene.rollout(params=scene.params.replace(stiffness=stiffness)).final.position.sum().backward()
    assert stiffness.grad is not None and stiffness.grad.shape == stiffness.shape


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"velocity": [1.0, 0.0]},
            r"State.replace, velocity: must be of shape \[6, 2\]; found shape \[2\]\. ",
        ),
        ({"velocity": np.zeros((6, 2, 1))}, r"must be of shape \[6, 2\]; found shape \[6, 2, 1\]"),
        ({"velocity": [[1.0], [2.0, 3.0]]}, r"must be numbers, of shape \[6, 2\]; found \[\[1.0\], \[2.0, 3.0\]\]"),
        ({"velocity": "fast"}, r"must be numbers, of shape \[6, 2\]; found 'fast'"),
        ({"velocity": None}, r"must be numbers, of shape \[6, 2\]; found None"),
        ({"speed": 1.0}, r"State.replace: the fields are position, velocity; found speed\. Name one of these\."),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        soft_square().state.replace(**changes)


@pytest.mark.parametrize("name", ["names", "tensors", "arrays", "replace"])
def test_a_field_called_like_a_method_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"Odd.{name}: a field has another name than names, tensors, arrays, replace"):
        type("Odd", (Record,), {"__annotations__": {name: Tensor}})
