"""Central differences as sparse matrices: exact for polynomials, and alike in parts of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simphys.simulators.wave.differences import first, make_weights, second, stack
from simphys.substep import Weights

from ...helpers.rounding import assert_equal_but_for_rounding


@pytest.mark.parametrize("order", [2, 4, 8])
def test_differences_are_exact_for_polynomials(order: int) -> None:
    """They are exact up to the degree of their order, away from the sides."""
    x = np.linspace(-1, 1, 12)
    h, inside = x[1] - x[0], slice(order // 2, -(order // 2))
    u = np.broadcast_to(x**order, (3, 12))
    for terms, expected in (
        (first((3, 12), 1, ("zero", "zero"), order), order * x ** (order - 1) * h),
        (second((3, 12), 1, ("zero", "zero"), order), order * (order - 1) * x ** (order - 2) * h**2),
    ):
        found = multiply(make_weights(terms), u).reshape(3, 12)
        np.testing.assert_allclose(found[:, inside], np.broadcast_to(expected, (3, 12))[:, inside], atol=1e-12)


def test_parts_of_a_matrix_are_its_rows() -> None:
    terms, u = second((4, 5), 0, ("free", "periodic"), 4), np.random.default_rng(1).normal(size=(4, 5))
    whole = multiply(make_weights(terms), u).reshape(4, 5)
    parts = stack([make_weights(terms, (slice(2, 4),)), make_weights(terms, (slice(0, 1),))])
    assert_equal_but_for_rounding(multiply(parts, u), np.concatenate([whole[2:4], whole[:1]]).reshape(-1))


def multiply(weights: Weights, u: Any) -> Any:
    return (np.where(weights.columns >= 0, u.reshape(-1)[weights.columns], 0) * weights.weights).sum(1)
