"""Sources on the grid, and their adjoint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from simphys.autograd import jvp, runtime, tensor
from simphys.autograd.gradcheck import dot_product_test, gradcheck
from simphys.wave import source
from simphys.wave.model import Wave
from simphys.wave.source import SourceTerm

DX = 0.4
Array = np.ndarray[Any, Any]
CASES = [
    Wave((7,), DX, 0.1, boundaries=("free", "zero"), sources=("point", "plane_x")),
    Wave((5, 6), DX, 0.1, boundaries=("zero", "free", "periodic", "periodic"), sources=("point", "plane_y", "plane_x")),
    Wave((5, 4, 6), DX, 0.1, sources=("point", "plane_z")),
]
DIMS = pytest.mark.parametrize("model", CASES, ids=["1-D", "2-D", "3-D"])


def drawn(model: Wave, seed: int = 0) -> tuple[Array, Array]:
    """Strengths, and positions inside and up to half a cell beyond."""
    random = np.random.default_rng(seed)
    S, cells = len(model.sources), np.array(model.cells)
    return random.normal(size=S), random.uniform(-0.5, cells - 0.5, size=(S, model.dim)) * DX


@DIMS
def test_every_element_of_the_jacobian_is_right(model: Wave) -> None:
    inputs = tuple([tensor(values, requires_grad=True) for values in drawn(model)])
    gradcheck(lambda *x: SourceTerm.apply(model, *x), inputs)
    dot_product_test(lambda *x: SourceTerm.apply(model, *x), inputs, tolerance=1e-12)


@DIMS
def test_a_source_has_the_moments_of_a_delta(model: Wave) -> None:
    """Volume, centre and width of each source, in so many dimensions as its delta has."""
    where = np.stack(np.meshgrid(*[np.arange(n) * DX for n in model.cells], indexing="ij"), axis=-1)
    middle = np.random.default_rng(1).uniform(1, np.array(model.cells) - 2, size=model.dim) * DX
    for s, kind in enumerate(model.sources):
        strength = np.eye(len(model.sources))[s] * 2.5
        density = SourceTerm.apply(model, tensor(strength), tensor(np.tile(middle, (len(strength), 1)))).data / DX**2
        if kind == "point":
            axes, volume = list(range(model.dim)), DX**model.dim
        else:
            axes = [["plane_x", "plane_y", "plane_z"].index(kind)]
            volume = DX / math.prod([n for d, n in enumerate(model.cells) if d not in axes])
        assert np.sum(density) * volume == pytest.approx(2.5, rel=1e-13)
        for d in axes:
            for power in (1, 2):
                moment = np.sum(density * (where[..., d] - middle[d]) ** power) * volume
                assert moment == pytest.approx(0, abs=1e-14)


def test_at_a_cell_a_point_source_is_there_alone() -> None:
    density = SourceTerm.apply(
        CASES[1], tensor([3.0, 0.0, 0.0]), tensor([[2 * DX, 4 * DX], [0.0, 0.0], [0.0, 0.0]])
    ).data
    expected = np.zeros((5, 6))
    expected[2, 4] = 3.0  # dx^2 strength / dx^2
    np.testing.assert_allclose(density, expected, atol=1e-14)


def test_a_plane_does_not_depend_on_where_it_is_along_itself() -> None:
    strength, x = tensor([0.0, 0.0, 1.0]), 0.9
    one, other = (
        SourceTerm.apply(CASES[1], strength, tensor([[0.0, 0.0], [0.0, 0.0], [x, y]])).data for y in (0.0, 1.3)
    )
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, np.repeat(one[:, :1], 6, axis=1))


def test_a_source_far_outside_is_silent() -> None:
    density = SourceTerm.apply(CASES[2], tensor([1.0, 0.0]), tensor([[1e30, -1e30, 0.0], [0.0, 0.0, 0.0]])).data
    np.testing.assert_array_equal(density, 0.0)


def test_fused_loops_add_what_the_sub_step_gives() -> None:
    """To fields and kappa that lie otherwise in memory, at offsets; and their adjoints and tangents likewise."""
    model, random = CASES[1], np.random.default_rng(3)
    S, dim, real = len(model.sources), model.dim, runtime.real()
    field, medium, size = (9, 10, 1), (2, 1, 7), 70  # (origin, strides) of a field with a border; by columns
    loops = source.kernels(real, model.cells, model.boundaries, field, medium)
    plane, (strength, position), (dstrength, dposition) = source.planes(model), drawn(model), drawn(model, 4)

    def at(place: Any, offset: int) -> Array:
        i, j = np.indices(model.cells)
        return offset + place[0] + i * place[1] + j * place[2]

    def pad(values: Array, offset: int) -> Array:
        return np.concatenate([random.normal(size=offset), values.ravel()])

    u, kappa, dkappa = (random.normal(size=size) for _ in range(3))
    x, q = tensor(position, requires_grad=True), tensor(strength, requires_grad=True)
    density = SourceTerm.apply(model, q, x)
    k, dk = kappa[at(medium, 1)], dkappa[at(medium, 5)]

    new = u.copy()
    loops.inject(new, kappa, pad(strength, 3), pad(position, 4), plane, DX, 2, 1, 3, 4)
    expected = u.copy()
    expected[at(field, 2)] += k * density.data
    np.testing.assert_allclose(new, expected, rtol=1e-13)

    adj_u = random.normal(size=size)
    (density * tensor(k * adj_u[at(field, 2)])).sum().backward()
    assert q.grad is not None and x.grad is not None
    g = np.zeros(size)
    g[at(field, 6)] = k * adj_u[at(field, 2)]
    adj_strength, adj_position = np.ones(S + 5), np.ones(S * dim + 6)
    loops.adj_inject(g, pad(strength, 3), pad(position, 4), plane, adj_strength, adj_position, DX, 6, 3, 4, 5, 6)
    np.testing.assert_allclose(adj_strength, 1 + np.concatenate([np.zeros(5), q.grad.data]), rtol=1e-13)
    np.testing.assert_allclose(adj_position, 1 + np.concatenate([np.zeros(6), x.grad.data.ravel()]), rtol=1e-13)

    adj_kappa, expected = np.ones(size), np.ones(size)
    loops.adj_inject_kappa(adj_u, pad(strength, 3), pad(position, 4), plane, adj_kappa, DX, 2, 3, 4, 1)
    expected[at(medium, 1)] += density.data * adj_u[at(field, 2)]
    np.testing.assert_allclose(adj_kappa, expected, rtol=1e-13)

    du = u.copy()
    loops.jvp_inject(
        du, kappa, pad(strength, 3), pad(position, 4), plane, dkappa, pad(dstrength, 6), pad(dposition, 7), DX,
        2, 1, 3, 4, 5, 6, 7,
    )  # fmt: skip
    _, (ddensity,) = jvp(lambda *each: SourceTerm.apply(model, *each), (q, x), (dstrength, dposition))
    expected = u.copy()
    expected[at(field, 2)] += dk * density.data + k * ddensity
    np.testing.assert_allclose(du, expected, rtol=1e-13)
