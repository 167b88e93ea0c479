"""Loops over points and the cells around them, for two batch members: against the sub-steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, jvp, tensor
from simphys.simulators.wave.fused import point_loops
from simphys.simulators.wave.layout import Layout
from simphys.substep import read_at, spread_from

from ....substep.between_cells import DX, GRIDS, Grid, make_points

Read = read_at("value", field="field", position="points", over="points")
Spread = spread_from("density", strength="strength", position="points", over="points", even="even")
Array = np.ndarray[Any, Any]


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
        density = Spread.apply(made.grid, tensor(made.strength[b]), tensor(made.points[b])).data
        np.testing.assert_allclose(made.cells(field)[b], base[b] + factor[b] * density, rtol=1e-12, atol=1e-13)


def test_loops_gather_what_spread_takes_back(made: Loops) -> None:
    value, adj_points = made.rows(made.draw(made.strength)), made.rows(made.draw(made.points))
    known, begin = value[0][:, 1].copy(), adj_points[0][:, 1].copy()
    field, points, strength = (made.rows(each) for each in (made.field, made.points, made.strength))
    made.run(point_loops.gather, field=field, value=value, position=points)
    made.run(point_loops.adj_position, field=field, value=strength, position=points, adj_position=adj_points)
    for b in (0, 1):
        inputs = [tensor(each[b], requires_grad=True) for each in (made.strength, made.points)]
        Spread.apply(made.grid, *inputs).backward(tensor(made.field[b]))
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
            found: Tensor = Spread.apply(made.grid, *inputs)
            return found

        density, (ddensity,) = jvp(spread, (strength, x), (dstrength[b], dpoints[b]))
        expected = base[b] + dfactor[b] * density.data + factor[b] * ddensity
        np.testing.assert_allclose(made.cells(field)[b], expected, rtol=1e-12, atol=1e-13)
        if (made.grid.even == without.even).all():
            _, (expected,) = jvp(lambda *inputs: Read.apply(made.grid, *inputs), (u, x), (dfield[b], dpoints[b]))
            np.testing.assert_allclose(dvalue[0][b, 1], expected, rtol=1e-12, atol=1e-13)
