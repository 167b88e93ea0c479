"""Faces, sides and cells of a grid: against NumPy and finite differences, in loops of one thread and of several."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, gradcheck, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.substep import faces, sides

from ..helpers.rounding import assert_equal_but_for_rounding
from .grids import GRIDS, Grid, Inflow, Leak, Relax, ScaleCell, inflow, inflow_by_numpy, leak, leak_by_numpy

PITCH = 0.7
ALL = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


@pytest.fixture(params=["one thread", "shared out"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


def make_inputs(grid: Grid) -> tuple[Tensor, Tensor, Tensor]:
    random = np.random.default_rng(1)
    u, k = random.standard_normal(grid.cells), random.uniform(0.5, 2, grid.cells)
    return tensor(u, requires_grad=True), tensor(k, requires_grad=True), tensor(1.3, requires_grad=True)


def make_outside(grid: Grid) -> Tensor:
    random = np.random.default_rng(2)
    return tensor(random.standard_normal(2 * len(grid.cells)), requires_grad=True)


@ALL
@pytest.mark.usefixtures("_loops")
def test_what_leaves_a_cell_enters_the_next_one(grid: Grid) -> None:
    u, k, g = make_inputs(grid)
    gain = Leak.apply(grid, u, k, g, PITCH)
    assert_equal_but_for_rounding(gain.data, leak_by_numpy(grid, u.data, k.data, 1.3, PITCH), ulps=50)
    assert abs(gain.data.sum()) < 1e-13 * np.abs(gain.data).sum()


@ALL
@pytest.mark.usefixtures("_loops")
def test_open_sides_let_in_what_the_element_function_says(grid: Grid) -> None:
    (u, k, g), outside = make_inputs(grid), make_outside(grid)
    gain = Inflow.apply(grid, u, k, outside, g)
    assert_equal_but_for_rounding(gain.data, inflow_by_numpy(grid, u.data, k.data, outside.data, 1.3), ulps=50)


@ALL
@pytest.mark.usefixtures("_loops")
def test_adjoint_and_tangent_of_faces_are_right(grid: Grid) -> None:
    inputs = make_inputs(grid)
    gradcheck(lambda *x: Leak.apply(grid, *x, PITCH), inputs)
    dot_product_test(lambda *x: Leak.apply(grid, *x, PITCH), inputs)


@ALL
@pytest.mark.usefixtures("_loops")
def test_adjoint_and_tangent_of_sides_are_right(grid: Grid) -> None:
    u, k, g = make_inputs(grid)
    inputs = (u, k, make_outside(grid), g)
    gradcheck(lambda *x: Inflow.apply(grid, *x), inputs)
    dot_product_test(lambda *x: Inflow.apply(grid, *x), inputs)


@ALL
@pytest.mark.usefixtures("_loops")
def test_each_cell_may_be_computed_by_itself(grid: Grid) -> None:
    u, k, _ = make_inputs(grid)
    assert_equal_but_for_rounding(ScaleCell.apply(grid, u, k, 2.0).data, 2 * u.data * k.data)
    gradcheck(lambda *x: ScaleCell.apply(grid, *x, 2.0), (u, k))


@pytest.mark.usefixtures("_loops")
def test_what_flows_may_be_a_vector() -> None:
    grid = GRIDS["long rows"]
    u = tensor(np.random.default_rng(3).standard_normal((*grid.cells, 2)), requires_grad=True)
    g = tensor(0.4, requires_grad=True)
    half = np.full(grid.cells, (np.sqrt(3) - 1) / 2)  # a a + b = 1 / 2
    expected = [leak_by_numpy(grid, u.data[..., c], half, 0.8, 1.0) for c in (0, 1)]
    assert_equal_but_for_rounding(Relax.apply(grid, u, g).data, np.stack(expected, -1), ulps=50)
    gradcheck(lambda *x: Relax.apply(grid, *x), (u, g), mode="projected")
    dot_product_test(lambda *x: Relax.apply(grid, *x), (u, g))


def test_an_axis_of_one_or_two_cells_has_the_faces_that_it_has() -> None:
    grid = Grid((1, 2), (False, True))
    u, k, g = make_inputs(grid)
    gain = Leak.apply(grid, u, k, g, PITCH)
    assert_equal_but_for_rounding(gain.data, leak_by_numpy(grid, u.data, k.data, 1.3, PITCH), ulps=50)


def test_declarations_that_do_not_fit_are_refused() -> None:
    grid = GRIDS["closed"]
    u, k, g = make_inputs(grid)
    with pytest.raises(InputError, match=r"nothing for k, outside, g"):
        sides(inflow, onto="gain", cells={"u": "u"})
    with pytest.raises(InputError, match="it takes the model, and u, k, g, h"):
        Leak.apply(grid, u, k, k, g, PITCH)
    with pytest.raises(InputError, match=r"begins with \[4, 5\]"):
        Leak.apply(grid, u[1:], k, g, PITCH)
    with pytest.raises(InputError, match="for each of the 4 sides"):
        Inflow.apply(grid, u, k, tensor([1.0]), g)
    with pytest.raises(InputError, match="each once"):
        Inflow.apply(Grid((4, 5), open_sides=(4,)), u, k, make_outside(grid), g)
    with pytest.raises(InputError, match="a bool for each of the 2 axes"):
        Leak.apply(Grid((4, 5), (True,)), u, k, g, PITCH)
    with pytest.raises(InputError, match="`cells` of the model"):
        Leak.apply(object(), u, k, g, PITCH)
    with pytest.raises(InputError, match="values at the two cells"):
        faces(leak, onto="gain", shared={"d": "u", "a": "k", "b": "k", "g": "g", "h": "h"})
