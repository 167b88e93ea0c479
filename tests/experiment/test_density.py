"""The density of bodies on a grid: mass is kept, a uniform lattice is uniform, and derivatives are exact."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import Tensor, tensor
from simphys.autograd.proof.gradcheck import gradcheck
from simphys.experiment.density import Cells, Density

GRIDS = [Cells((5, 4), 0.3, (-0.2, 0.1)), Cells((4, 3, 5), 0.4, (0.0, -0.3, 0.2))]
SQUARE = Cells((3, 3), 1.0, (0.0, 0.0))


def bodies(grid: Cells, *, beyond: float, count: int = 9) -> tuple[Tensor, Tensor]:
    """Position and mass, all over the grid and so many cells beyond its edges."""
    counts, random = np.array(grid.counts), np.random.default_rng(3)
    position = grid.origin + grid.spacing * random.uniform(-beyond, counts + beyond, (count, len(counts)))
    return tensor(position, requires_grad=True), tensor(random.uniform(1, 2, count), requires_grad=True)


@pytest.mark.parametrize("grid", GRIDS)
def test_mass_inside_is_kept_and_has_its_centre_where_the_bodies_have_theirs(grid: Cells) -> None:
    position, mass = bodies(grid, beyond=-1.0)
    dim = len(grid.counts)
    share = Density.apply(grid, position, mass).data * grid.spacing**dim
    assert share.sum() == pytest.approx(mass.data.sum(), rel=1e-12)
    middles = np.moveaxis(np.indices(grid.counts) + 0.5, 0, -1) * grid.spacing + grid.origin
    moment = np.tensordot(share, middles, dim)
    np.testing.assert_allclose(moment, mass.data @ position.data, rtol=1e-12)


def test_a_body_in_the_middle_of_a_cell_is_spread_over_its_neighbours() -> None:
    density = Density.apply(SQUARE, tensor([[1.5, 1.5]]), tensor([64.0])).data
    np.testing.assert_allclose(density, np.outer([1, 6, 1], [1, 6, 1]), rtol=1e-13)


def test_what_lies_outside_does_not_count() -> None:
    density = Density.apply(SQUARE, tensor([[-0.5, 1.5], [7.0, 1.0]]), tensor([64.0, 1.0])).data
    np.testing.assert_allclose(density, np.outer([1, 0, 0], [1, 6, 1]), rtol=1e-13)


def test_a_lattice_of_two_along_an_axis_of_a_cell_is_uniform() -> None:
    axis = np.arange(-3.75, 10, 0.5)
    position = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    density = Density.apply(Cells((5, 6), 1.0, (0.0, 0.0)), tensor(position), tensor(np.full(len(position), 0.5))).data
    np.testing.assert_allclose(density, 2.0, rtol=1e-13)


@pytest.mark.parametrize("grid", GRIDS)
def test_its_derivatives_are_exact_also_at_the_edges(grid: Cells) -> None:
    gradcheck(lambda x, m: Density.apply(grid, x, m), bodies(grid, beyond=0.7), tolerance=1e-8)
