"""Sources between the cells of a grid, and their adjoint."""

from __future__ import annotations

import math

import numpy as np
import pytest

from simphys.autograd import tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.wave.model import Wave
from simphys.simulators.wave.source import drive

from ...helpers.rounding import assert_equal_but_for_rounding
from .between_cells import DX, sources

CASES = [
    Wave((7,), DX, 0.1, boundaries=("free", "zero"), sources=("point", "plane_x")),
    Wave((5, 6), DX, 0.1, boundaries=("zero", "free", "periodic", "periodic"), sources=("point", "plane_y", "plane_x")),
    Wave((5, 4, 6), DX, 0.1, sources=("point", "plane_z")),
]
DIMS = pytest.mark.parametrize("model", CASES, ids=["1-D", "2-D", "3-D"])


@DIMS
def test_every_element_of_the_jacobian_is_right(model: Wave) -> None:
    inputs = tuple([tensor(values, requires_grad=True) for values in sources(model)])
    gradcheck(lambda *x: drive(model, *x), inputs)
    dot_product_test(lambda *x: drive(model, *x), inputs, tolerance=1e-12)


@DIMS
def test_a_source_has_the_moments_of_a_delta(model: Wave) -> None:
    """Check volume, centre and width of each source, in the dimensions of its delta."""
    where = np.stack(np.meshgrid(*[np.arange(n) * DX for n in model.cells], indexing="ij"), axis=-1)
    middle = np.random.default_rng(1).uniform(1, np.array(model.cells) - 2, size=model.dim) * DX
    for s, kind in enumerate(model.sources):
        strength = np.eye(len(model.sources))[s] * 2.5
        density = drive(model, tensor(strength), tensor(np.tile(middle, (len(strength), 1)))).data / DX**2
        if kind == "point":
            axes, volume = list(range(model.dim)), DX**model.dim
        else:
            axes = [["plane_x", "plane_y", "plane_z"].index(kind)]
            volume = DX / math.prod([n for d, n in enumerate(model.cells) if d not in axes])
        assert np.sum(density) * volume == pytest.approx(2.5, rel=1e-13)
        for d in axes:
            for power in (1, 2):
                moment = np.sum(density * (where[..., d] - middle[d]) ** power) * volume
                assert moment == pytest.approx(0, abs=1e-13)


def test_a_point_source_at_a_cell_affects_that_cell_alone() -> None:
    density = drive(CASES[1], tensor([3.0, 0.0, 0.0]), tensor([[2 * DX, 4 * DX], [0.0, 0.0], [0.0, 0.0]])).data
    expected = np.zeros((5, 6))
    expected[2, 4] = 3.0  # dx^2 strength / dx^2
    np.testing.assert_allclose(density, expected, atol=1e-13)


def test_a_plane_source_does_not_depend_on_its_position_within_the_plane() -> None:
    strength, x = tensor([0.0, 0.0, 1.0]), 0.9
    one, other = (drive(CASES[1], strength, tensor([[0.0, 0.0], [0.0, 0.0], [x, y]])).data for y in (0.0, 1.3))
    np.testing.assert_array_equal(one, other)
    assert_equal_but_for_rounding(one, np.repeat(one[:, :1], 6, axis=1))


def test_a_source_far_outside_is_silent() -> None:
    density = drive(CASES[2], tensor([1.0, 0.0]), tensor([[1e30, -1e30, 0.0], [0.0, 0.0, 0.0]])).data
    np.testing.assert_array_equal(density, 0.0)
