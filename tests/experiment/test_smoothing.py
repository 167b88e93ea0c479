"""Smooth unknowns: a symmetric average that leaves constants, of a part of a field as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import gradcheck, tensor
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.experiment.smoothing import Smooth, Smoothing
from simphys.experiment.unknowns import Unknowns
from simphys.scenefile import ConfigError, UnknownSection

from ..helpers.rounding import assert_equal_but_for_rounding

SHAPE = (6, 5)
WHOLE = np.arange(30)
RANDOM = np.random.default_rng(0)


def unknowns(**changes: Any) -> Unknowns:
    given = {"parameter": "speed", "bounds": [0.5, 9.0], "smooth": 1.2, **changes}
    return Unknowns({"speed": UnknownSection(**given)}, {"speed": RANDOM.uniform(1, 2, SHAPE)})


def test_the_average_is_symmetric_and_leaves_what_is_the_same_everywhere() -> None:
    smoothing = Smoothing(SHAPE, WHOLE, 1.2, np.zeros(30))
    matrix = np.stack([smoothing.averaged(column) for column in np.eye(30)], axis=1)
    assert_equal_but_for_rounding(matrix, matrix.T)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-13)
    assert np.linalg.eigvalsh(matrix).min() > -1e-13


@pytest.mark.parametrize("entries", [WHOLE, WHOLE.reshape(SHAPE)[1:4, 2:].reshape(-1)])
def test_its_adjoint_is_right_also_for_a_part_of_a_field(entries: np.ndarray) -> None:
    smoothing = Smoothing(SHAPE, entries, 0.9, RANDOM.normal(size=len(entries)))
    x = tensor(RANDOM.normal(size=len(entries)), requires_grad=True)
    assert gradcheck(lambda x: Smooth.apply(smoothing, x), (x,)).outcome == "passed"
    dot_product_test(lambda x: Smooth.apply(smoothing, x), (x,), tolerance=1e-12)


@pytest.mark.parametrize("entries", [WHOLE, WHOLE.reshape(SHAPE)[1:4, 2:].reshape(-1)])
def test_deviations_of_averages_are_those_of_the_matrix(entries: np.ndarray) -> None:
    smoothing = Smoothing(SHAPE, entries, 0.9, np.zeros(len(entries)))
    matrix = np.stack([smoothing.averaged(column) for column in np.eye(len(entries))], axis=1)
    np.testing.assert_allclose(smoothing.deviation, np.linalg.norm(matrix, axis=1), rtol=1e-12)


@pytest.mark.parametrize("transform", ["linear", "log"])
def test_changes_of_values_are_the_derivative_of_them(transform: Any) -> None:
    made = unknowns(transform=transform)
    theta, change = made.start + 0.3 * RANDOM.normal(size=30), RANDOM.normal(size=30)
    numeric = (made.natural(theta + 1e-6 * change) - made.natural(theta - 1e-6 * change)) / 2e-6
    np.testing.assert_allclose(made.natural_change(theta, change), numeric, rtol=1e-7, atol=1e-9)
    matrix = np.array([made.natural_change(theta, row) for row in np.eye(30)]).T
    np.testing.assert_allclose(made.natural_deviation(theta, np.full(30, 2.0)), 2 * np.linalg.norm(matrix, axis=1))


@pytest.mark.parametrize("transform", ["linear", "log"])
def test_the_start_stays_and_changes_are_smooth(transform: Any) -> None:
    made = unknowns(transform=transform)
    start = made.values["speed"]
    np.testing.assert_allclose(made.fields(tensor(made.start))["speed"].data, start, rtol=1e-14)
    theta = made.start.copy()
    theta[12] += 1.0
    after = made.fields(tensor(theta))["speed"].data
    np.testing.assert_allclose(made.natural(theta), after.reshape(-1), rtol=1e-14)
    change = (after - start) / start if transform == "linear" else np.log(after / start)
    assert change.argmax() == 12 and change.min() > 0  # cell (2, 2), and all around it
    assert change.sum() == pytest.approx(1, rel=1e-12)


def test_a_box_of_cells_is_sought_alone() -> None:
    made = unknowns(entries={"first": [1, 2], "last": [3, 4]}, truth=1.5)
    assert made.labels[-1] == "speed[8]" and made.truths["speed"].tolist() == [1.5] * 9
    changed = made.fields(tensor(made.start + 1.0))["speed"].data != made.values["speed"]
    assert changed[1:4, 2:].all() and changed.sum() == 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tied": True, "start": 1.0}, "smooth: belongs to unknowns with a value for each cell"),
        ({"entries": {"first": [0, 0], "last": [1, 5]}}, "entries.last: speed has the shape"),
        ({"entries": {"first": [0], "last": [1, 1]}}, "entries.first: speed has the shape"),
        ({"entries": {"first": [2, 0], "last": [1, 1]}}, "entries.first: must not be beyond last"),
        ({"truth": [1.0, 2.0]}, "truth: must be one number or 30 numbers"),
        ({"start": "missing.npy"}, "start: must be a file that can be read"),
    ],
)
def test_mistakes_are_told(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        unknowns(**changes)
    assert message in str(error.value)


def test_start_and_truth_may_be_files_of_the_field_or_of_its_part(tmp_path: Any) -> None:
    field = RANDOM.uniform(1, 2, SHAPE)
    np.save(tmp_path / "field.npy", field)
    np.savetxt(tmp_path / "part.txt", field[1:4, 2:].reshape(-1))
    box = {"first": [1, 2], "last": [3, 4]}
    made = unknowns(entries=box, start=str(tmp_path / "field.npy"), truth=str(tmp_path / "part.txt"))
    np.testing.assert_allclose(made.natural(made.start), field[1:4, 2:].reshape(-1))
    np.testing.assert_allclose(made.truths["speed"], field[1:4, 2:].reshape(-1))
