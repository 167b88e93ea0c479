"""Sums over an index set, concatenation and dense layers: against NumPy and finite differences, in all loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, gradcheck, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test
from simphys.nn.layer import Layer
from simphys.substep import concatenate, dense, element, part, total


@element
def energy(v, m, g):
    return 0.5 * m * v.dot(v) + v.dot(g)


@energy.adjoint
def adj_energy(v, m, g, adj):
    return (m * v + g) * adj, 0.5 * v.dot(v) * adj, adj * v


@energy.tangent
def jvp_energy(v, m, g, dv, dm, dg):
    return m * v.dot(dv) + 0.5 * dm * v.dot(v) + dv.dot(g) + v.dot(dg)


@element
def cube(x):
    return x * x * x


@cube.adjoint
def adj_cube(x, adj):
    return 3 * x * x * adj


Energy = total(energy, over="nodes", own={"v": "velocity", "m": "mass"}, shared={"g": "push"}, results={"energy": "m"})
Join = concatenate("pattern", ("relative", "motion"), "goal", "number", result="row")


@pytest.fixture(params=["one thread", "shared out"], autouse=True)
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "parallel", lambda work_us: request.param == "shared out")


def leaf(*shape: int, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=True)


def check(function: Any, inputs: tuple[Tensor, ...]) -> None:
    assert gradcheck(function, inputs).outcome == "passed"
    dot_product_test(function, inputs, tolerance=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_a_sum_over_the_nodes_is_right_with_its_derivatives(dim: int) -> None:
    v, m, g = inputs = leaf(5, dim), leaf(5, seed=1), leaf(dim, seed=2)
    expected = (0.5 * m.data * (v.data**2).sum(axis=1) + v.data @ g.data).sum()
    np.testing.assert_allclose(Energy.apply(None, *inputs).data, expected, rtol=1e-12)
    check(lambda *x: Energy.apply(None, *x), inputs)


def test_arrays_are_concatenated_in_order_and_those_of_a_tuple_by_element() -> None:
    inputs = pattern, x, v, goal, number = leaf(3), leaf(4, 2), leaf(4, 2, seed=1), leaf(2), leaf()
    expected = [pattern.data, np.stack([x.data, v.data], axis=1).reshape(-1), goal.data, number.data[None]]
    np.testing.assert_array_equal(Join.apply(None, *inputs).data, np.concatenate(expected))
    check(lambda *given: Join.apply(None, *given), inputs)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 17), (8, 16), (19, 35)])
def test_a_layer_is_right_with_its_derivatives(rows: int, columns: int) -> None:
    """Rows and columns are taken several at a time, with a rest."""
    W, b, x = inputs = leaf(rows, columns), leaf(rows, seed=1), leaf(columns, seed=2)
    np.testing.assert_allclose(Layer.apply(None, *inputs).data, np.tanh(W.data @ x.data + b.data), rtol=0, atol=1e-13)
    check(lambda *given: Layer.apply(None, *given), inputs)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"weight is \[rows, columns\].*found \[3, 4\], \[3\], \[5\]"):
        Layer.apply(None, leaf(3, 4), leaf(3), leaf(5))
    with pytest.raises(InputError, match="have the same length"):
        Join.apply(None, leaf(3), leaf(4, 2), leaf(5, 2), leaf(2), leaf())
    with pytest.raises(InputError, match=r"take its result in place of its input.*adj_cube\(x, adj\)"):
        dense(cube, weight="W", bias="b", given="x", result="y")


@pytest.mark.parametrize(("begin", "shape"), [(-3, (3,)), (1.0, (2,)), (True, (2,)), (0, (-1,)), (0, (2.5,)), (0, ())])
def test_a_part_counts_from_the_front_of_an_array(begin: Any, shape: Any) -> None:
    """From the third last entry on, it read what lay before the array."""
    with pytest.raises(InputError, match=rf"Part\(x\): begin is a number of entries.* found begin={begin}, shape="):
        part("x", begin=begin, shape=shape, over="nodes", result="y")
    one: Any = np.int64(1)
    made = part("x", begin=one, shape=(one + 1,), over="nodes", result="y").apply(object(), leaf(4))
    np.testing.assert_array_equal(made.numpy(), leaf(4).numpy()[1:3])
