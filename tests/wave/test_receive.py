"""Receivers on the grid, and their adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import jvp, runtime, tensor
from simphys.autograd.gradcheck import dot_product_test, gradcheck
from simphys.wave import receive
from simphys.wave.model import Wave
from simphys.wave.receive import Receive
from simphys.wave.source import SourceTerm

DX = 0.4
Array = np.ndarray[Any, Any]
CASES = [
    Wave((7,), DX, 0.1, boundaries=("free", "zero"), sources=("point",) * 3, receivers=3),
    Wave((5, 6), DX, 0.1, boundaries=("zero", "free", "periodic", "periodic"), sources=("point",) * 3, receivers=3),
    Wave((5, 4, 6), DX, 0.1, sources=("point",) * 3, receivers=3),
]
DIMS = pytest.mark.parametrize("model", CASES, ids=["1-D", "2-D", "3-D"])


def drawn(model: Wave, seed: int = 0) -> tuple[Array, Array]:
    """A field, and positions inside and up to half a cell beyond."""
    random = np.random.default_rng(seed)
    places = random.uniform(-0.5, np.array(model.cells) - 0.5, size=(model.receivers, model.dim))
    return random.normal(size=model.cells), places * DX


@DIMS
def test_every_element_of_the_jacobian_is_right(model: Wave) -> None:
    inputs = tuple([tensor(values, requires_grad=True) for values in drawn(model)])
    gradcheck(lambda *x: Receive.apply(model, *x), inputs)
    dot_product_test(lambda *x: Receive.apply(model, *x), inputs, tolerance=1e-12)


@pytest.mark.gpu
@DIMS
def test_a_receiver_reads_what_a_source_at_its_place_spreads(model: Wave) -> None:
    """Reciprocity: the one is the transpose of the other, so that exchanging them changes no signal."""
    height, position = drawn(model)
    strength = np.random.default_rng(2).normal(size=model.receivers)
    density = SourceTerm.apply(model, tensor(strength), tensor(position)).data * DX ** (model.dim - 2)
    received = Receive.apply(model, tensor(height), tensor(position)).data
    tolerance = 500 * float(np.finfo(runtime.real_dtype()).eps)
    assert np.sum(density * height) == pytest.approx(strength @ received, rel=tolerance)


def test_at_a_cell_its_value_is_read() -> None:
    height, _ = drawn(CASES[1])
    received = Receive.apply(CASES[1], tensor(height), tensor([[2 * DX, 4 * DX], [0.0, 0.0], [0.0, DX]])).data
    np.testing.assert_allclose(received, [height[2, 4], height[0, 0], height[0, 1]], rtol=1e-13)


def test_smooth_fields_are_read_to_third_order() -> None:
    def error(cells: int) -> float:
        model = Wave((cells,), 1 / cells, 0.1, boundaries=("periodic",) * 2, receivers=20)
        position = np.random.default_rng(0).uniform(size=(20, 1))
        height = np.sin(2 * np.pi * np.arange(cells) / cells)
        found = Receive.apply(model, tensor(height), tensor(position)).data
        return float(np.abs(found - np.sin(2 * np.pi * position[:, 0])).max())

    assert error(16) / error(32) > 7


def test_fused_loops_do_what_the_sub_step_does() -> None:
    """On fields that lie otherwise in memory, at offsets."""
    model, random = CASES[1], np.random.default_rng(3)
    R, dim, size, field = model.receivers, model.dim, 80, (9, 10, 1)  # with a border
    loops = receive.kernels(runtime.real(), model.cells, model.boundaries, field)
    (height, position), (dheight, dposition) = drawn(model), drawn(model, 4)

    def pad(values: Array, offset: int) -> Array:
        return np.concatenate([random.normal(size=offset), values.ravel()])

    i, j = np.indices(model.cells)
    at = field[0] + field[1] * i + j
    u, du = random.normal(size=size), random.normal(size=size)
    u[at + 2], du[at + 3] = height, dheight
    inputs = tensor(height, requires_grad=True), tensor(position, requires_grad=True)
    received = Receive.apply(model, *inputs)

    out = np.zeros(R + 5)
    loops.receive(u, pad(position, 4), out, R, DX, 2, 4, 5)
    np.testing.assert_allclose(out, np.concatenate([np.zeros(5), received.data]), rtol=1e-13)

    g = random.normal(size=R)
    received.backward(tensor(g))
    assert inputs[0].grad is not None and inputs[1].grad is not None
    adj_u, adj_position, expected = np.ones(size), np.ones(R * dim + 7), np.ones(size)
    loops.adj_receive(u, pad(position, 4), pad(g, 5), adj_u, adj_position, R, DX, 2, 4, 5, 6, 7)
    expected[at + 6] += inputs[0].grad.data
    np.testing.assert_allclose(adj_u, expected, rtol=1e-13)
    np.testing.assert_allclose(adj_position, 1 + np.concatenate([np.zeros(7), inputs[1].grad.data.ravel()]), rtol=1e-13)

    dout = np.zeros(R + 6)
    loops.jvp_receive(u, pad(position, 4), du, pad(dposition, 5), dout, R, DX, 2, 4, 3, 5, 6)
    _, (expected,) = jvp(lambda *each: Receive.apply(model, *each), inputs, (dheight, dposition))
    np.testing.assert_allclose(dout, np.concatenate([np.zeros(6), expected]), rtol=1e-13)
