"""From the optimizer's vector to parameters and back: transforms, ties, entries, bounds, and their derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment.unknowns import Unknowns
from simphys.scenefile import UnknownSection

VALUES = {
    "stiffness": np.array([10.0, 20.0, 30.0]),
    "drag": np.zeros(4),
    "gravity": np.array([0.0, -9.81]),
    "position": np.arange(8.0).reshape(4, 2),
    "ground_height": np.array(0.25),
}


def unknowns(**given: dict[str, Any]) -> Unknowns:
    return Unknowns({label: UnknownSection(**each) for label, each in given.items()}, VALUES)


def test_by_default_everything_is_unknown_from_its_value_in_units_of_its_size() -> None:
    made = unknowns(stiffness={"parameter": "stiffness"}, drag={"parameter": "drag", "entries": [1]})
    np.testing.assert_allclose(made.start, [1, 1, 1, 0])  # a start at 0 has no size: the unit is 1
    np.testing.assert_allclose(made.natural(made.start), [10, 20, 30, 0])
    assert made.labels == ["stiffness[0]", "stiffness[1]", "stiffness[2]", "drag"]


def test_a_logarithm_starts_at_0_and_moves_by_factors() -> None:
    made = unknowns(
        k={"parameter": "stiffness", "entries": [1], "transform": "log", "bounds": [5.0, 80.0], "unit": "N/m"}
    )
    np.testing.assert_allclose(made.start, [0])
    np.testing.assert_allclose(made.natural(np.log([2.0])), [40])
    np.testing.assert_allclose([made.lower[0], made.upper[0]], np.log([0.25, 4.0]))
    np.testing.assert_allclose(made.natural_derivative(np.log([2.0])), [40])
    assert made.units == ["N/m"]


def test_bounds_are_scaled_and_open_ones_stay_open() -> None:
    made = unknowns(
        k={"parameter": "stiffness", "entries": [0], "bounds": [0.0, float("inf")], "scale": 2.0, "start": 3.0},
        log={"parameter": "stiffness", "entries": [1], "bounds": [0.0, 40.0], "transform": "log"},
    )
    np.testing.assert_allclose(made.start, [1.5, 0.0])
    np.testing.assert_array_equal(made.lower, [0.0, -np.inf])
    np.testing.assert_allclose(made.upper, [np.inf, np.log(2)])


def test_a_start_of_its_own_goes_before_the_scenes_value() -> None:
    made = unknowns(k={"parameter": "stiffness", "entries": [0, 2], "start": [11.0, 33.0], "scale": 10.0})
    np.testing.assert_allclose(made.start, [1.1, 3.3])
    fields = made.fields(tensor(made.start))
    np.testing.assert_allclose(fields["stiffness"].data, [11, 20, 33])


def test_tied_entries_are_one_unknown() -> None:
    made = unknowns(drag={"parameter": "drag", "tied": True, "start": 0.5, "entries": [0, 3]})
    assert made.labels == ["drag"] and made.start.shape == (1,)
    np.testing.assert_allclose(made.fields(tensor(made.start))["drag"].data, [0.5, 0, 0, 0.5])


def test_tied_rows_share_a_value_for_each_of_their_elements() -> None:
    made = unknowns(place={"parameter": "position", "tied": "rows", "entries": [0, 3], "start": [5.0, -4.0]})
    assert made.labels == ["place[0]", "place[1]"]
    np.testing.assert_allclose(made.fields(tensor(made.start))["position"].data, [[5, -4], [2, 3], [4, 5], [5, -4]])


def test_single_components_of_a_field_and_several_unknowns_of_one_field() -> None:
    made = unknowns(
        height={"parameter": "position", "entries": [[1, 1], [3, 1]], "start": [30.0, 70.0]},
        corner={"parameter": "position", "entries": [0], "start": [-1.0, -2.0]},
        floor={"parameter": "ground_height", "start": 2.0},
    )
    fields = made.fields(tensor(made.start))
    np.testing.assert_allclose(fields["position"].data, [[-1, -2], [2, 30], [4, 5], [6, 70]])
    assert fields["ground_height"].shape == () and float(fields["ground_height"]) == 2.0
    assert set(fields) == {"position", "ground_height"}


def test_the_fields_are_differentiable_functions_of_theta() -> None:
    made = unknowns(
        k={"parameter": "stiffness", "transform": "log", "entries": [0, 1]},
        k2={"parameter": "stiffness", "entries": [2], "scale": 7.0},
        drag={"parameter": "drag", "tied": True, "start": 0.3},
        x={"parameter": "position", "entries": [[2, 0]]},
        place={"parameter": "position", "tied": "rows", "entries": [0, 3], "start": [5.0, -4.0]},
    )
    theta = tensor(made.start + 0.1, requires_grad=True)
    gradcheck(lambda t: tuple(made.fields(t).values()), (theta,))


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_natural_derivative_is_the_slope_of_natural(shift: float) -> None:
    made = unknowns(k={"parameter": "stiffness", "transform": "log"}, x={"parameter": "position", "scale": 3.0})
    theta, eps = made.start + shift, 1e-6
    slope = (made.natural(theta + eps) - made.natural(theta - eps)) / (2 * eps)
    np.testing.assert_allclose(made.natural_derivative(theta), slope, rtol=1e-8)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"parameter": "stifness"}, "stiffness"),
        ({"parameter": "stiffness", "entries": [3]}, "indices below 3"),
        ({"parameter": "stiffness", "bounds": [40.0, 50.0]}, "include the start"),
        ({"parameter": "drag", "transform": "log"}, "positive start"),
        ({"parameter": "stiffness", "start": [1.0, 2.0]}, "3 numbers"),
        ({"parameter": "stiffness", "tied": True}, "tied entries share one start"),
    ],
)
def test_what_does_not_fit_is_told(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        unknowns(label=given)
