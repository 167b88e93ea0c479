"""Sub-steps over all pairs: the sum over all others, its derivatives, and declarations that do not fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.autograd.proof.gradcheck import dot_product_test, gradcheck
from simphys.substep import element, pairs

from ..helpers.rounding import assert_equal_but_for_rounding


@element
def attract(d, u, a, b, k, w):
    return -(a * b) * (k * d + w.dot(w) * u.dot(u) * u)


@attract.adjoint
def adj_attract(d, u, a, b, k, w, adj):
    e, strength, square = -(a * b), w.dot(w), u.dot(u)
    slip = u.dot(adj)
    total = k * d.dot(adj) + strength * square * slip
    adj_u = e * strength * (2 * slip * u + square * adj)
    return e * k * adj, adj_u, -b * total, -a * total, e * d.dot(adj), 2 * e * square * slip * w


@attract.tangent
def jvp_attract(d, u, a, b, k, w, dd, du, da, db, dk, dw):
    strength, square = w.dot(w), u.dot(u)
    factor, dfactor = strength * square, 2 * (w.dot(dw) * square + strength * u.dot(du))
    return -(da * b + a * db) * (k * d + factor * u) - a * b * (dk * d + k * dd + dfactor * u + factor * du)


@element
def pull(d, a, b):
    return a * b * d


@pull.adjoint
def adj_pull(d, a, b, adj):
    return a * b * adj, b * d.dot(adj), a * d.dot(adj)


BETWEEN = {"d": "position", "u": "velocity"}
Attract = pairs(
    attract,
    over="bodies",
    between=BETWEEN,
    both={("a", "b"): "mass"},
    shared={"k": "stiffness", "w": "wind"},
    onto="attraction",
)
MODEL = SimpleNamespace()


def inputs(bodies: int, dim: int) -> tuple[Tensor, ...]:
    random = np.random.default_rng(bodies + dim)
    shapes: tuple[tuple[int, ...], ...] = ((bodies, dim), (bodies, dim), (bodies,), (), (dim,))
    return tuple([tensor(random.uniform(0.5, 1.5, shape), requires_grad=True) for shape in shapes])


def apply(*values: Tensor) -> Tensor:
    result: Tensor = Attract.apply(MODEL, *values)
    return result


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("bodies", [1, 2, 9])
def test_each_element_feels_all_others(bodies: int, dim: int, threads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in loops over all elements, on one thread and in pieces, with their derivatives."""
    monkeypatch.setattr(runtime, "parallel", lambda work_us: threads)
    given = inputs(bodies, dim)
    x, v, m, k, w = [value.data for value in given]
    expected = np.zeros_like(x)
    for i in range(bodies):
        for j in range(bodies):
            d, u = x[i] - x[j], v[i] - v[j]
            expected[i] -= m[i] * m[j] * (k * d + (w @ w) * (u @ u) * u)
    assert_equal_but_for_rounding(apply(*given).data, expected, ulps=200)
    gradcheck(apply, given, mode="projected", repeats=2)
    dot_product_test(apply, given, tolerance=1e-11)


def test_only_wanted_adjoints_are_computed() -> None:
    given = inputs(5, 2)
    apply(*given).sum().backward()
    for number, value in enumerate(given):
        alone = [tensor(other.data, requires_grad=place == number) for place, other in enumerate(given)]
        apply(*alone).sum().backward()
        found, expected = alone[number].grad, value.grad
        assert found is not None and expected is not None
        np.testing.assert_allclose(found.data, expected.data, rtol=1e-12, atol=1e-12)


def declare(func: Any = pull, **changed: Any) -> Any:
    return pairs(
        func,
        **{"over": "bodies", "between": {"d": "position"}, "both": {("a", "b"): "mass"}, "onto": "force", **changed},
    )


def test_arrays_have_an_entry_for_each_element() -> None:
    with pytest.raises(InputError, match="position has 3, mass has 4"):
        declare().apply(MODEL, tensor(np.ones((3, 2))), tensor(np.ones(4)))


def test_elements_are_numbers_or_vectors() -> None:
    with pytest.raises(InputError, match=r"pairs have numbers and vectors; found position has matrices"):
        declare().apply(MODEL, tensor(np.ones((3, 2, 2))), tensor(np.ones(3)))


def test_an_array_of_both_is_passed_once() -> None:
    with pytest.raises(InputError, match="it takes the model, and position, mass; found 4 arguments"):
        declare().apply(MODEL, tensor(np.ones((3, 2))), tensor(np.ones(3)), tensor(np.ones(3)))


def test_each_parameter_has_an_array() -> None:
    with pytest.raises(InputError, match="it names an array for each of d, a, b; found nothing for a, b"):
        declare(both={})
