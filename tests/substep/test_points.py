"""Points between the cells of a grid: values read and strengths spread, by sub-steps and in loops over a layout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import gradcheck, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.substep import read_at, spread_from

from ..helpers.rounding import assert_equal_but_for_rounding
from .between_cells import DX, GRIDS, PLANE, Grid, make_points

ALL = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
Read = read_at("value", field="field", position="points", over="points")
Spread = spread_from("density", strength="strength", position="points", over="points", even="even")
Array = np.ndarray[Any, Any]


@pytest.fixture(params=["one thread", "shared out"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


@ALL
@pytest.mark.usefixtures("_loops")
def test_adjoint_and_tangent_are_right(grid: Grid) -> None:
    field, points, strength = make_points(grid)
    for function, inputs in (
        (lambda *x: Read.apply(grid, *x), (field, points)),
        (lambda *x: Spread.apply(grid, *x), (strength, points)),
    ):
        gradcheck(function, inputs)
        dot_product_test(function, inputs)


@ALL
def test_to_read_is_the_transpose_of_to_spread(grid: Grid) -> None:
    grid = replace(grid, even=np.zeros_like(grid.even))
    field, points, strength = make_points(grid)
    value, density = Read.apply(grid, field, points).data, Spread.apply(grid, strength, points).data
    np.testing.assert_allclose(value @ strength.data, (density * field.data).sum(), rtol=1e-12)


def test_points_spread_evenly_along_their_axes() -> None:
    points = tensor(np.full((3, 2), 2.2 * DX))
    density = Spread.apply(PLANE, tensor([0.0, 0.0, 1.5]), points).data
    assert_equal_but_for_rounding(density, np.repeat(density[:, :1], PLANE.cells[1], axis=1))
    assert density[:, 0].sum() == pytest.approx(1.5) and np.count_nonzero(density[:, 0]) == 4


def test_arrays_that_do_not_fit_are_refused() -> None:
    field, points, strength = make_points(PLANE)
    with pytest.raises(InputError, match=r"field has an entry for each cell: its shape begins with \[5, 6\]"):
        Read.apply(PLANE, field[1:], points)
    with pytest.raises(InputError, match=r"strength has 2, points has 3"):
        Spread.apply(PLANE, strength[1:], points)
