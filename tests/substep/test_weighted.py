"""Sums with the weights of a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from simphys.autograd import Tensor, gradcheck, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.substep import Weights, weighted

from ..helpers.rounding import assert_equal_but_for_rounding

INDEX = np.array([[0, 5], [-1, 3], [5, 5], [2, -1]])
WEIGHT = np.array([[1.5, -2.0], [7.0, 0.5], [1.0, 0.25], [-1.0, 9.0]])
RESPONSE = Weights(INDEX, WEIGHT)


@dataclass(frozen=True, eq=False)
class Model:
    """Sums over cells, one for each detector."""

    cells: tuple[int, ...] = (2, 3)
    detectors: int = 4
    response: Weights = RESPONSE


Sums = weighted("signal", of="field", by="response", rows="detectors", columns="cells")


@pytest.fixture(params=["one thread", "shared out"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


def draw() -> Tensor:
    return tensor(np.random.default_rng(0).normal(size=(2, 3)), requires_grad=True)


@pytest.mark.usefixtures("_loops")
def test_they_are_products_with_the_matrix() -> None:
    matrix, field = np.zeros((4, 6)), draw()
    for row, (columns, weights) in enumerate(zip(INDEX, WEIGHT, strict=True)):
        np.add.at(matrix[row], columns[columns >= 0], weights[columns >= 0])
    signal = Sums.apply(Model(), field)
    assert_equal_but_for_rounding(signal.data, matrix @ field.data.reshape(-1))
    gradcheck(lambda x: Sums.apply(Model(), x), (field,))
    dot_product_test(lambda x: Sums.apply(Model(), x), (field,))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"field has an entry for each of cells: its shape is \[2, 3\]"):
        Sums.apply(Model(), draw()[1:])
    with pytest.raises(InputError, match=r"`response` of the model is integers of shape \(5, 2\)"):
        Sums.apply(replace(Model(), detectors=5), draw())
    with pytest.raises(InputError, match=r"`response` of the model lies in 0 \.\.\. 5"):
        Sums.apply(replace(Model(), response=Weights(INDEX + 1, WEIGHT)), draw())
