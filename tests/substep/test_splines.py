"""Sub-steps between particles and a grid: against NumPy and finite differences, and with terms left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.substep import element, from_grid, to_grid

from ..helpers.rounding import assert_equal_but_for_rounding

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Grid:
    """Everything that the patterns read of a model."""

    cells: tuple[int, ...]
    spacing: float = 0.5


GRIDS = {1: Grid((7,)), 2: Grid((5, 6)), 3: Grid((4, 5, 3))}
DIMS = pytest.mark.parametrize("dim", GRIDS)


@element
def field(r, m, q, B, c, h):
    return c * m * (1 + h * r.dot(r)), q + B @ r


@field.adjoint
def adj_field(r, m, q, B, c, h, adj_m, adj_q):
    s = 1 + h * r.dot(r)
    adj_r = (2 * h * c * m * adj_m) * r + B.transpose() @ adj_q
    return adj_r, c * s * adj_m, adj_q, adj_q.outer_product(r), m * s * adj_m


@field.tangent
def jvp_field(r, m, q, B, c, h, dr, dm, dq, dB, dc):
    s = 1 + h * r.dot(r)
    return (dc * m + c * dm) * s + 2 * h * c * m * r.dot(dr), dq + dB @ r + B @ dr


@element
def sample(r, u, p, k):
    return k * p * u, u.outer_product(r)


@sample.adjoint
def adj_sample(r, u, p, k, adj_v, adj_M):
    return adj_M.transpose() @ u, k * p * adj_v + adj_M @ r, k * u.dot(adj_v), p * u.dot(adj_v)


@sample.tangent
def jvp_sample(r, u, p, k, dr, du, dp, dk):
    return (dk * p + k * dp) * u + k * p * du, du.outer_product(r) + u.outer_product(dr)


SPREAD: Any = {
    "offset": {"r": "position"},
    "own": {"m": "mass", "q": "vector", "B": "matrix"},
    "shared": {"c": "factor"},
    "constant": {"h": "curvature"},
    "results": {"mass": "m", "momentum": "r"},
}
SAMPLE: Any = {
    "offset": {"r": "position"},
    "nodes": {"u": "velocity"},
    "own": {"p": "share"},
    "shared": {"k": "factor"},
    "results": {"velocity": "u", "moment": lambda dim: (dim, dim)},
}
Spread, Sample = to_grid(field, **SPREAD), from_grid(sample, **SAMPLE)


@pytest.fixture(params=["one thread", "shared out"])
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


def place(dim: int, particles: int) -> Array:
    """Draw positions, some of which share nodes."""
    random, grid = np.random.default_rng(dim), GRIDS[dim]
    return np.array([random.uniform(0.6 * grid.spacing, (n - 1.6) * grid.spacing, particles) for n in grid.cells]).T


def spread_inputs(dim: int, particles: int = 4) -> tuple[Tensor, ...]:
    random = np.random.default_rng(3)
    shapes: list[tuple[int, ...]] = [(particles,), (particles, dim), (particles, dim, dim), ()]
    return tuple([tensor(x, requires_grad=True) for x in (place(dim, particles), *map(random.standard_normal, shapes))])


def sample_inputs(dim: int, particles: int = 4) -> tuple[Tensor, ...]:
    random = np.random.default_rng(4)
    shapes: list[tuple[int, ...]] = [(*GRIDS[dim].cells, dim), (particles,), ()]
    return tuple([tensor(x, requires_grad=True) for x in (place(dim, particles), *map(random.standard_normal, shapes))])


def spread(dim: int, *inputs: Tensor) -> Any:
    return Spread.apply(GRIDS[dim], *inputs, 0.3)


def weigh(grid: Grid, x: Array) -> tuple[Array, Array]:
    """Compute the weight of each node for a particle [*cells], and its offset [*cells, dim]."""
    axes = [grid.spacing * np.arange(count) for count in grid.cells]
    r = np.stack(np.meshgrid(*axes, indexing="ij"), -1) - x
    s = abs(r) / grid.spacing
    return np.where(s < 0.5, 0.75 - s**2, np.where(s < 1.5, (1.5 - s) ** 2 / 2, 0)).prod(-1), r


@DIMS
@pytest.mark.usefixtures("_loops")
def test_nodes_get_the_weighted_field_of_each_particle(dim: int) -> None:
    given = spread_inputs(dim)
    x, m, q, B, c = [value.data for value in given]
    mass, momentum = np.zeros(GRIDS[dim].cells), np.zeros((*GRIDS[dim].cells, dim))
    for i in range(len(x)):
        w, r = weigh(GRIDS[dim], x[i])
        mass += w * c * m[i] * (1 + 0.3 * (r * r).sum(-1))
        momentum += w[..., None] * (q[i] + r @ B[i].T)
    found = spread(dim, *given)
    assert_equal_but_for_rounding(found[0].data, mass, ulps=100)
    assert_equal_but_for_rounding(found[1].data, momentum, ulps=100)


@DIMS
@pytest.mark.usefixtures("_loops")
def test_particles_get_the_weighted_sum_over_nodes(dim: int) -> None:
    given = sample_inputs(dim)
    x, u, p, k = [value.data for value in given]
    v, M = Sample.apply(GRIDS[dim], *given)
    for i in range(len(x)):
        w, r = weigh(GRIDS[dim], x[i])
        mean = k * p[i] * (w[..., None] * u).reshape(-1, dim).sum(0)
        np.testing.assert_allclose(v.data[i], mean, rtol=0, atol=1e-13)
        outer = w[..., None, None] * u[..., :, None] * r[..., None, :]
        np.testing.assert_allclose(M.data[i], outer.reshape(-1, dim, dim).sum(0), rtol=0, atol=1e-13)


@DIMS
@pytest.mark.usefixtures("_loops")
def test_adjoint_and_tangent_are_right(dim: int) -> None:
    gradcheck(lambda *x: spread(dim, *x), spread_inputs(dim), tolerance=1e-7)
    dot_product_test(lambda *x: spread(dim, *x), spread_inputs(dim), tolerance=1e-12)
    gradcheck(lambda *x: Sample.apply(GRIDS[dim], *x), sample_inputs(dim), tolerance=1e-7)
    dot_product_test(lambda *x: Sample.apply(GRIDS[dim], *x), sample_inputs(dim), tolerance=1e-12)


@pytest.mark.parametrize("inputs", [spread_inputs, sample_inputs])
def test_only_wanted_adjoints_and_tangents_are_computed(inputs: Any) -> None:
    given = inputs(2)
    sub_step = (lambda *x: spread(2, *x)) if inputs is spread_inputs else (lambda *x: Sample.apply(GRIDS[2], *x))

    def total(*values: Tensor) -> Tensor:
        first, second = sub_step(*values)
        return (first * first).sum() + second.sum()

    total(*given).backward()
    for number, value in enumerate(given):
        alone = [tensor(other.data, requires_grad=place == number) for place, other in enumerate(given)]
        total(*alone).backward()
        found, expected = alone[number].grad, value.grad
        assert found is not None and expected is not None
        np.testing.assert_allclose(found.data, expected.data, rtol=1e-11, atol=1e-12)


def test_one_result_alone_has_an_adjoint() -> None:
    given = spread_inputs(2)
    gradcheck(lambda *x: spread(2, *x)[0], given, tolerance=1e-7)
    gradcheck(lambda *x: spread(2, *x)[1], given, tolerance=1e-7)


def test_a_particle_outside_counts_as_one_at_the_border() -> None:
    x, *others = spread_inputs(2)
    outside = np.concatenate([[(-3.0, 0.9), (1.0, 99.0)], x.data[2:]])
    for result in spread(2, tensor(outside), *others):
        assert np.isfinite(result.data).all()


def test_declarations_and_models_that_do_not_fit_are_refused() -> None:
    x, u, p, k = sample_inputs(2)
    with pytest.raises(InputError, match="`spacing` of the model is a positive number"):
        Sample.apply(Grid((5, 6), 0.0), x, u, p, k)
    with pytest.raises(InputError, match=r"position is \[n, 2\]"):
        Sample.apply(GRIDS[2], tensor(np.ones((4, 3))), u, p, k)
    with pytest.raises(InputError, match="velocity has an entry for each cell"):
        Sample.apply(GRIDS[2], x, u[1:], p, k)
    with pytest.raises(InputError, match="one parameter takes the offset"):
        from_grid(sample, offset={}, nodes={"u": "u"}, own={"r": "r", "p": "p", "k": "k"}, results={"v": "u", "m": "r"})
