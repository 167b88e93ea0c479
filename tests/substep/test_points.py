"""Points between the cells of a grid: values read and strengths spread, by sub-steps and in loops over a layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, gradcheck, jvp, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.substep import point_loops, read_at, spread_from
from simphys.substep.layout import Layout

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
        (lambda *x: Read.apply(grid, *x, DX), (field, points)),
        (lambda *x: Spread.apply(grid, *x, DX), (strength, points)),
    ):
        gradcheck(function, inputs)
        dot_product_test(function, inputs)


@ALL
def test_to_read_is_the_transpose_of_to_spread(grid: Grid) -> None:
    grid = replace(grid, even=np.zeros_like(grid.even))
    field, points, strength = make_points(grid)
    value, density = Read.apply(grid, field, points, DX).data, Spread.apply(grid, strength, points, DX).data
    np.testing.assert_allclose(value @ strength.data, (density * field.data).sum(), rtol=1e-12)


def test_points_spread_evenly_along_their_axes() -> None:
    points = tensor(np.full((3, 2), 2.2 * DX))
    density = Spread.apply(PLANE, tensor([0.0, 0.0, 1.5]), points, DX).data
    assert_equal_but_for_rounding(density, np.repeat(density[:, :1], PLANE.cells[1], axis=1))
    assert density[:, 0].sum() == pytest.approx(1.5) and np.count_nonzero(density[:, 0]) == 4


def test_arrays_that_do_not_fit_are_refused() -> None:
    field, points, strength = make_points(PLANE)
    with pytest.raises(InputError, match=r"field has the shape \(5, 6\)"):
        Read.apply(PLANE, field[1:], points, DX)
    with pytest.raises(InputError, match=r"strength has the shape \(3,\)"):
        Spread.apply(PLANE, strength[1:], points, DX)


# --- loops over a layout, for two batch members, against the sub-steps


@dataclass
class Loops:
    """Rows of arrays of two members, of which row 1 is used."""

    grid: Grid

    def __post_init__(self) -> None:
        self.layout = Layout(self.grid.cells, 2)
        self.random = np.random.default_rng(5)
        drawn = [make_points(self.grid, seed) for seed in (0, 1)]
        self.field, self.points, self.strength = ([given[k].data for given in drawn] for k in range(3))
        self.run = point_loops.PointLoops(
            self.layout, self.grid.boundaries, DX, members=2, count=len(self.grid.even), even=self.grid.even
        ).run

    def rows(self, values: list[Array]) -> tuple[Array, int]:
        """Put the values of the members into row 1."""
        of_field = values[0].shape == self.grid.cells
        rows: Array = np.stack([self.layout.pad(each) if of_field else each for each in values])
        return np.ascontiguousarray(np.stack([self.random.normal(size=rows.shape), rows], axis=1)), 1

    def draw(self, like: list[Array]) -> list[Array]:
        return [np.asarray(self.random.normal(size=each.shape)) for each in like]

    def cells(self, row: tuple[Array, int]) -> Array:
        return self.layout.view_cells(row[0][:, row[1]])


@pytest.fixture(params=GRIDS)
def made(request: pytest.FixtureRequest) -> Loops:
    return Loops(GRIDS[request.param])


def test_loops_scatter_what_points_spread(made: Loops) -> None:
    base, factor = made.draw(made.field), made.draw(made.field)
    field, value, points = made.rows(base), made.rows(made.strength), made.rows(made.points)
    made.run(point_loops.scatter, field=field, factor=made.rows(factor), value=value, position=points)
    for b in (0, 1):
        density = Spread.apply(made.grid, tensor(made.strength[b]), tensor(made.points[b]), DX).data
        np.testing.assert_allclose(made.cells(field)[b], base[b] + factor[b] * density, rtol=1e-12, atol=1e-13)


def test_loops_gather_what_spread_takes_back(made: Loops) -> None:
    value, adj_points = made.rows(made.draw(made.strength)), made.rows(made.draw(made.points))
    known, begin = value[0][:, 1].copy(), adj_points[0][:, 1].copy()
    field, points, strength = (made.rows(each) for each in (made.field, made.points, made.strength))
    made.run(point_loops.gather, field=field, value=value, position=points)
    made.run(point_loops.adj_position, field=field, value=strength, position=points, adj_position=adj_points)
    for b in (0, 1):
        inputs = [tensor(each[b], requires_grad=True) for each in (made.strength, made.points)]
        Spread.apply(made.grid, *inputs, DX).backward(tensor(made.field[b]))
        adj_strength, adj_x = (x.grad.data for x in inputs if x.grad is not None)
        np.testing.assert_allclose(value[0][b, 1], known[b] + adj_strength, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(adj_points[0][b, 1], begin[b] + adj_x, rtol=1e-12, atol=1e-13)


def test_tangents_of_loops_are_those_of_sub_steps(made: Loops) -> None:
    base, factor, dfactor, dfield = (made.draw(made.field) for _ in range(4))
    dstrength, dpoints = made.draw(made.strength), made.draw(made.points)
    field, dvalue = made.rows(base), made.rows([np.zeros(len(each)) for each in made.strength])
    points, moves = made.rows(made.points), made.rows(dpoints)
    given: dict[str, Any] = {"factor": made.rows(factor), "dfactor": made.rows(dfactor), "position": points}
    given |= {"value": made.rows(made.strength), "dvalue": made.rows(dstrength), "dposition": moves}
    made.run(point_loops.jvp_scatter, field=field, **given)
    fields = {"field": made.rows(made.field), "dfield": made.rows(dfield)}
    made.run(point_loops.jvp_gather, **fields, dvalue=dvalue, position=points, dposition=moves)
    without = replace(made.grid, even=np.zeros_like(made.grid.even))
    for b in (0, 1):
        strength, x, u = (tensor(each[b], requires_grad=True) for each in (made.strength, made.points, made.field))

        def spread(*inputs: Tensor) -> Tensor:
            found: Tensor = Spread.apply(made.grid, *inputs, DX)
            return found

        density, (ddensity,) = jvp(spread, (strength, x), (dstrength[b], dpoints[b]))
        expected = base[b] + dfactor[b] * density.data + factor[b] * ddensity
        np.testing.assert_allclose(made.cells(field)[b], expected, rtol=1e-12, atol=1e-13)
        if (made.grid.even == without.even).all():
            _, (expected,) = jvp(lambda *inputs: Read.apply(made.grid, *inputs, DX), (u, x), (dfield[b], dpoints[b]))
            np.testing.assert_allclose(dvalue[0][b, 1], expected, rtol=1e-12, atol=1e-13)
