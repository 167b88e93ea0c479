"""Receivers between the cells of a grid, and their adjoint."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.autograd import runtime, tensor
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.simulators.wave.model import Wave
from simphys.simulators.wave.receive import receive
from simphys.simulators.wave.source import drive

from .between_cells import DX, receivers

CASES = [
    Wave((7,), DX, 0.1, boundaries=("free", "zero"), sources=("point",) * 3, receivers=3),
    Wave((5, 6), DX, 0.1, boundaries=("zero", "free", "periodic", "periodic"), sources=("point",) * 3, receivers=3),
    Wave((5, 4, 6), DX, 0.1, sources=("point",) * 3, receivers=3),
]
DIMS = pytest.mark.parametrize("model", CASES, ids=["1-D", "2-D", "3-D"])


@DIMS
def test_every_element_of_the_jacobian_is_right(model: Wave) -> None:
    inputs = tuple([tensor(values, requires_grad=True) for values in receivers(model)])
    gradcheck(lambda *x: receive(model, *x), inputs)
    dot_product_test(lambda *x: receive(model, *x), inputs, tolerance=1e-12)


@pytest.mark.gpu
@DIMS
def test_a_receiver_reads_what_a_source_at_its_place_spreads(model: Wave) -> None:
    """Receiving is the transpose of injecting, so exchanging source and receiver leaves the signal unchanged."""
    height, position = receivers(model)
    strength = np.random.default_rng(2).normal(size=model.receivers)
    density = drive(model, tensor(strength), tensor(position)).data * DX ** (model.dim - 2)
    received = receive(model, tensor(height), tensor(position)).data
    tolerance = 500 * float(np.finfo(runtime.real_dtype()).eps)
    assert np.sum(density * height) == pytest.approx(strength @ received, rel=tolerance)


def test_at_a_cell_its_value_is_read() -> None:
    height, _ = receivers(CASES[1])
    received = receive(CASES[1], tensor(height), tensor([[2 * DX, 4 * DX], [0.0, 0.0], [0.0, DX]])).data
    np.testing.assert_allclose(received, [height[2, 4], height[0, 0], height[0, 1]], rtol=1e-13)


def test_smooth_fields_are_read_to_third_order() -> None:
    def error(cells: int) -> float:
        model = Wave((cells,), 1 / cells, 0.1, boundaries=("periodic",) * 2, receivers=20)
        position = np.random.default_rng(0).uniform(size=(20, 1))
        height = np.sin(2 * np.pi * np.arange(cells) / cells)
        found = receive(model, tensor(height), tensor(position)).data
        return float(np.abs(found - np.sin(2 * np.pi * position[:, 0])).max())

    assert error(16) / error(32) > 7
