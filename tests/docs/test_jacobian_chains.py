"""A product of Jacobians in several orders: the same result, each with the predicted multiplications and depth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import reduce
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simphys.autograd import InputError, Tensor, grad, ops, tensor

from ..helpers.rounding import assert_equal_but_for_rounding
from .examples import FOLDER, load

chains = load("jacobian_chains")
chain_vjp, scan_adjoints, scan_vjp = chains.chain_vjp, chains.scan_adjoints, chains.scan_vjp
predicted_depth, predicted_multiplications = chains.predicted_depth, chains.predicted_multiplications

ORDERS: tuple[str, ...] = get_args(chains.Order)

Array = np.ndarray


def whole_numbers(sizes: list[int], m: int, seed: int) -> tuple[list[Array], Array]:
    """Make Jacobians and an adjoint whose products are integers below 2**53, and so exact in any order."""
    random = np.random.default_rng(seed)
    factors = [random.integers(-3, 4, (m, n, p)).astype(np.float64) for p, n in itertools.pairwise(sizes)]
    return factors, random.integers(-3, 4, (m, sizes[-1])).astype(np.float64)


def steps(count: int, n: int, m: int = 1, seed: int = 0) -> tuple[list[Array], Array]:
    random = np.random.default_rng(seed)
    factors = list(random.normal(size=(count, m, n, n)) / math.sqrt(n))
    return factors, random.normal(size=(m, n))


@given(st.lists(st.integers(1, 4), min_size=2, max_size=10), st.integers(0, 3), st.integers(0, 1000))
def test_every_order_gives_the_same_product_at_the_predicted_cost(sizes: list[int], m: int, seed: int) -> None:
    factors, adjoint = whole_numbers(sizes, m, seed)
    product = reduce(lambda whole, factor: factor @ whole, factors)
    expected = np.einsum("mi,mij->mj", adjoint, product)
    for order in ORDERS:
        found, cost = chain_vjp(factors, adjoint, order=order)
        assert found.shape == (m, sizes[0])
        np.testing.assert_array_equal(found, expected)
        assert cost.multiplications == predicted_multiplications(sizes, order, m)
        assert cost.depth == predicted_depth(len(factors), order)


@given(st.integers(1, 20), st.integers(1, 3), st.integers(1, 3), st.integers(0, 1000))
def test_the_scan_gives_the_adjoint_of_every_state(count: int, n: int, m: int, seed: int) -> None:
    factors, adjoint = steps(count, n, m, seed)
    expected = [adjoint]
    for factor in reversed(factors):
        expected.insert(0, np.einsum("mi,mij->mj", expected[0], factor))
    report = scan_vjp(factors, adjoint)
    np.testing.assert_allclose(report.adjoints, np.array(expected), rtol=1e-9, atol=1e-12)
    assert report.costs["scan of all"].multiplications == m * (max(count - 2, 0) * n**3 + count * n**2)
    assert report.costs["scan of all"].depth == max(1, 2 * math.ceil(math.log2(count)))


@pytest.mark.parametrize(
    ("order", "multiplications", "depth"),
    [("reverse", 60, 3), ("forward", 108, 3), ("scan", 120, 3), ([1, 3, 2], 88, 2)],
)
def test_costs_of_three_steps_counted_by_hand(order: str | list[int], multiplications: int, depth: int) -> None:
    # n = 2, 3, 4, 3 and m = 2: reverse 2 (3 4 + 4 3 + 3 2); forward 2 (4 3 2 + 3 4 2 + 3 2); scan, which pairs the last
    # two, 2 (3 4 3 + 3 3 2 + 3 2); (u J_3) (J_2 J_1), 2 (3 4 + 4 3 2 + 4 2).
    factors, adjoint = whole_numbers([2, 3, 4, 3], 2, 0)
    cost = chain_vjp(factors, adjoint, order=order).cost
    assert (cost.multiplications, cost.depth) == (multiplications, depth)


def test_forward_order_wins_for_a_single_input() -> None:
    sizes = [1, 8, 8, 2]
    assert predicted_multiplications(sizes, "forward", 1) < predicted_multiplications(sizes, "reverse", 1)


Bracket = int | tuple[Any, Any]
"""Bracketing: a factor (0 is J_1, the last is u), or a product of the earlier ones with the later ones."""


@st.composite
def brackets(draw: st.DrawFn, first: int, end: int) -> Bracket:
    """Draw any binary tree over the factors first, ..., end - 1."""
    if end - first == 1:
        return first
    middle = draw(st.integers(first + 1, end - 1))
    return draw(brackets(first, middle)), draw(brackets(middle, end))


@st.composite
def bracketed_chains(draw: st.DrawFn) -> tuple[list[int], Bracket]:
    """Draw sizes n_0, ..., n_d, and a bracketing of the d + 1 factors."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=2, max_size=9))
    return sizes, draw(brackets(0, len(sizes)))


def product(bracket: Bracket, factors: list[Array]) -> Array:
    if isinstance(bracket, int):
        return factors[bracket]
    earlier, later = bracket
    return np.einsum("mij,mjk->mik", product(later, factors), product(earlier, factors))


def eliminated(bracket: Bracket) -> tuple[int, int, list[int]]:
    """Yield the states before and after the factors of a bracket, and those between, inner brackets first."""
    if isinstance(bracket, int):
        return bracket, bracket + 1, []
    (before, middle, first), (_, after, second) = map(eliminated, bracket)
    return before, after, [*first, *second, middle]


def work(bracket: Bracket, sizes: list[int]) -> tuple[int, int]:
    """Count multiplications and depth: each pair of brackets, from state a over s to c, costs n_a n_s n_c."""
    if isinstance(bracket, int):
        return 0, 0
    (a, s, _), (_, c, _) = map(eliminated, bracket)
    costs, depths = zip(*[work(part, sizes) for part in bracket], strict=True)
    return sum(costs) + sizes[a] * sizes[s] * sizes[c], max(depths) + 1


@given(bracketed_chains(), st.integers(1, 3), st.integers(0, 1000))
def test_any_bracketing_gives_the_same_product_at_its_own_cost(
    chain: tuple[list[int], Bracket], m: int, seed: int
) -> None:
    sizes, bracket = chain
    random = np.random.default_rng(seed)
    factors = [random.normal(size=(m, n, p)) for p, n in itertools.pairwise(sizes)]
    adjoint = random.normal(size=(m, sizes[-1]))
    expected = product(bracket, [*factors, adjoint[:, None]])[:, 0]
    order = eliminated(bracket)[2]
    # Each way errs by at most about (sum of sizes) eps times the product of absolute values.
    bound = 2 * sum(sizes) * np.finfo(float).eps * chain_vjp([*map(abs, factors)], abs(adjoint)).adjoint
    for way in (*ORDERS, order):
        assert np.all(abs(chain_vjp(factors, adjoint, order=way).adjoint - expected) <= bound)
    multiplications, depth = work(bracket, [*sizes, 1])
    cost = chain_vjp(factors, adjoint, order=order).cost
    assert cost.multiplications == predicted_multiplications(sizes, order, m) == m * multiplications
    assert cost.depth == predicted_depth(len(factors), order) == depth


@given(st.lists(st.integers(1, 5), min_size=2, max_size=9), st.integers(1, 3))
def test_reverse_and_forward_cost_the_sums_of_the_docstring(sizes: list[int], m: int) -> None:
    products = [later * earlier for earlier, later in itertools.pairwise(sizes)]
    assert predicted_multiplications(sizes, "reverse", m) == m * sum(products)
    assert predicted_multiplications(sizes, "forward", m) == m * sizes[0] * (sum(products[1:]) + sizes[-1])


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 8, 33])
def test_stacked_jacobians_are_scanned_as_the_list_of_them(count: int) -> None:
    factors, adjoint = steps(count, 3, m=2)
    stacked = np.array(factors)
    before = stacked.copy()
    listed = scan_vjp(factors, adjoint).adjoints
    assert_equal_but_for_rounding(scan_adjoints(stacked, adjoint).adjoints, listed, ulps=3 * count)
    found, listed = [chain_vjp(chain, adjoint, order="scan") for chain in (stacked, factors)]
    assert_equal_but_for_rounding(found.adjoint, listed.adjoint, ulps=3 * count)
    assert found.cost == listed.cost
    np.testing.assert_array_equal(stacked, before)


def test_the_batched_scan_costs_what_its_products_one_by_one_cost() -> None:
    for count in range(1, 20):
        factors, adjoint = steps(count, 2)
        found = chain_vjp(factors, adjoint, order="scan")
        strides = [1 << level for level in range((count - 1).bit_length())]
        order = [count - s for stride in strides for s in range(stride, count, 2 * stride)] + [count]
        single = chain_vjp(factors, adjoint, order=order)
        assert found.cost == single.cost
        np.testing.assert_allclose(found.adjoint, single.adjoint, rtol=1e-12)


def test_the_scan_has_logarithmic_depth() -> None:
    assert [predicted_depth(d, "scan") for d in (1, 2, 3, 4, 5, 1024, 1025)] == [1, 2, 3, 3, 4, 11, 12]


def test_jacobians_of_functions_give_the_gradient_of_the_chain() -> None:
    weight = tensor(np.arange(6.0).reshape(2, 3) / 7)
    functions: list[Callable[[Tensor], Tensor]] = [ops.sin, lambda x: x @ weight, lambda x: x * x]
    x = tensor(np.linspace(0.1, 1.0, 8).reshape(4, 2), requires_grad=True)
    seed = np.linspace(-1.0, 1.0, 12).reshape(4, 3)
    result = x
    for function in functions:
        result = function(result)
    (expected,) = grad(result, x, [seed])
    factors = chains.jacobians(functions, x.data)
    assert [factor.shape for factor in factors] == [(4, 2, 2), (4, 3, 2), (4, 3, 3)]
    assert expected is not None
    for order in ORDERS:
        np.testing.assert_allclose(chain_vjp(factors, seed, order=order).adjoint, expected.data, rtol=1e-12)


def test_the_report_answers_whether_the_backward_pass_can_be_parallelized() -> None:
    report = scan_vjp(*steps(64, 2))
    lines = str(report).splitlines()
    assert lines[0] == "64 steps, state of 2, batch of 1"
    assert lines[2].split() == ["reverse", "256", "64", "256"]
    assert lines[3].split() == ["forward", "508", "64", "508"]
    assert lines[4].split() == ["scan", "508", "7", "52"]
    assert "12 products in a row instead of 64" in lines[6]
    assert "times as fast as reverse" in lines[7]


def test_a_large_state_makes_the_scan_useless() -> None:
    assert "no faster than reverse" in str(scan_vjp(*steps(8, 16)))


def test_wrong_shapes_and_orders_are_refused() -> None:
    factors, adjoint = steps(3, 2)
    with pytest.raises(InputError, match="shapes"):
        chain_vjp([factors[0], np.ones((1, 3, 2)), factors[2]], adjoint)
    with pytest.raises(InputError, match="shapes"):
        chain_vjp([np.ones((2, 2))], adjoint)
    with pytest.raises(InputError, match="states of one size"):
        scan_vjp([np.ones((1, 2, 3)), *factors[1:]], adjoint)
    with pytest.raises(InputError, match="shapes"):
        chain_vjp(factors, adjoint[0])
    with pytest.raises(InputError, match="at least one Jacobian"):
        chain_vjp([], adjoint)
    with pytest.raises(InputError, match="at least one step"):
        predicted_multiplications([3], "scan", 1)
    with pytest.raises(InputError, match="at least one step"):
        predicted_depth(0, "scan")
    with pytest.raises(InputError, match=r"one of reverse, forward, scan.*found sideways"):
        chain_vjp(factors, adjoint, order="sideways")
    for order in ([1, 2], [0, 1, 2], [1, 2, 2]):
        with pytest.raises(InputError, match=r"the states 1, \.\.\., 3 in some order"):
            chain_vjp(factors, adjoint, order=order)


def test_the_guide_shows_the_output_of_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    chains.main()
    assert capsys.readouterr().out in (FOLDER.parent / "autograd.md").read_text()
