"""Sums along the axes of a grid with the weights of banded matrices: against NumPy and finite differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, gradcheck, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.substep import Along, along
from simphys.substep.along import find_band

from ..helpers.rounding import assert_equal_but_for_rounding

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Model:
    """A grid with three matrices: along the first axis, along the last, and from a grid of fewer cells to it."""

    cells: tuple[int, ...]
    narrow: tuple[int, ...]
    first: Array
    last: Array
    widen: Array
    cut: Array


def make(cells: tuple[int, ...], width: int, seed: int = 0) -> Model:
    """Differences that have other weights near the ends, and a part of `width` cells at either end of the last axis."""
    random, n = np.random.default_rng(seed), cells[-1]
    first = np.diag(random.standard_normal(cells[0])) + np.diag(random.standard_normal(cells[0] - 1), 1)
    last = 1.5 * np.eye(n) - 0.5 * np.eye(n, k=-1) - 0.25 * np.eye(n, k=2)
    last[:2, :4], last[-3:, -2:] = random.standard_normal((2, 4)), random.standard_normal((3, 2))
    chosen = [*range(width), *range(n - width, n)]
    pick = np.eye(n)[chosen]
    return Model(cells, (*cells[:-1], 2 * width), first, last, pick.T * 0.7, pick @ last)


MODELS = {
    "small": make((3, 6), 2),
    "rows in blocks": make((4, 45), 5),
    "space": make((2, 3, 40), 3),
    "line": make((30,), 4),
}
ALL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
TERMS = {"a": Along("first", 0), "b": Along("last", -1), "c": Along("widen", -1, "narrow")}


def declare(dim: int) -> tuple[Any, Any]:
    """Declare a sum of three arrays, and a part of a difference."""
    terms = {name: Along(matrix, axis % dim, of) for name, (matrix, axis, of) in TERMS.items()}
    return along("sums", terms), along("part", {"b": Along("cut", dim - 1)}, over="narrow")


def draw(model: Model) -> tuple[Tensor, ...]:
    random = np.random.default_rng(1)
    shapes = (model.cells, model.cells, model.narrow)
    return tuple([tensor(random.standard_normal(shape), requires_grad=True) for shape in shapes])


@pytest.fixture(params=["one thread", "shared out"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


@ALL
@pytest.mark.usefixtures("_loops")
def test_sums_are_products_with_the_matrices_and_so_are_their_derivatives(model: Model) -> None:
    a, b, c = draw(model)
    sums, part = declare(len(model.cells))
    expected = np.tensordot(model.first, a.data, (1, 0)) + b.data @ model.last.T + c.data @ model.widen.T
    assert_equal_but_for_rounding(sums.apply(model, a, b, c).data, expected, ulps=50)
    assert_equal_but_for_rounding(part.apply(model, b).data, b.data @ model.cut.T, ulps=50)
    for function, inputs in ((sums, (a, b, c)), (part, (b,))):
        gradcheck(lambda *x, function=function: function.apply(model, *x), inputs, mode="projected")
        dot_product_test(lambda *x, function=function: function.apply(model, *x), inputs)


def test_a_band_is_as_narrow_as_the_matrix_allows() -> None:
    """Blocks of cells lie between the margins; a wider band or margin would be slow, not wrong."""
    check_band(find_band)


def check_band(find: Any) -> None:
    model = MODELS["rows in blocks"]
    last, widen = find(model.last), find(model.widen)
    assert (last.margin, last.offset, last.inner) == (3, -1, (-0.5, 1.5, 0.0, -0.25))
    assert (widen.margin, widen.inner) == (5, (0.0,))


def test_what_does_not_fit_is_refused() -> None:
    model = MODELS["small"]
    a, b, c = draw(model)
    sums, _ = declare(2)
    with pytest.raises(InputError, match=r"c has the shape \[3, 4\] of `narrow`"):
        sums.apply(model, a, b, a)
    with pytest.raises(InputError, match=r"`first` of the model is a matrix \[6, 6\]"):
        along("wrong", {"a": Along("first", 1)}).apply(model, a)
    with pytest.raises(InputError, match=r"`narrow` has the shape of `cells` but along axis 0"):
        along("wrong", {"c": Along("widen", 0, "narrow")}).apply(model, c)
    for axis in (-1, 2):
        with pytest.raises(InputError, match=rf"the axis of a is one of the 2 of `cells`, 0 the first; found {axis}"):
            along("wrong", {"a": Along("last", axis)}).apply(model, a)
