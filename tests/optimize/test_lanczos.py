"""Lanczos: a lower bound of a matrix that grows with each product, and ends as the matrix."""

from __future__ import annotations

import numpy as np
import pytest

from simphys.optimize.lanczos import Lanczos

RANDOM = np.random.default_rng(3)
ROOT = RANDOM.normal(size=(30, 12)) * np.geomspace(10, 1e-2, 12)
MATRIX = ROOT.T @ ROOT


def run(matrix: np.ndarray, products: int) -> tuple[np.ndarray, np.ndarray]:
    found = Lanczos(lambda v: matrix @ v, len(matrix))
    for _ in range(products):
        found.extend()
    return found.bound()


def test_as_many_products_as_unknowns_give_the_matrix() -> None:
    values, vectors = run(MATRIX, 12)
    np.testing.assert_allclose(vectors * values @ vectors.T, MATRIX, atol=1e-11 * values[0])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-13)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(MATRIX)[::-1], rtol=1e-6)


@pytest.mark.parametrize("products", [1, 4, 8])
def test_fewer_products_give_a_lower_bound_that_grows(products: int) -> None:
    def bound(count: int) -> np.ndarray:
        values, vectors = run(MATRIX, count)
        return np.asarray(vectors * values @ vectors.T)

    rounding = 1e-12 * np.trace(MATRIX)
    assert np.linalg.eigvalsh(MATRIX - bound(products)).min() > -rounding
    assert np.linalg.eigvalsh(bound(products + 1) - bound(products)).min() > -rounding
    assert np.trace(bound(products)) < np.trace(MATRIX) * (1 - 1e-8)


def test_equal_eigenvalues_are_found_by_further_directions() -> None:
    matrix = np.diag([5.0, 5.0, 5.0, 2.0, 0.0, 0.0])
    values, vectors = run(matrix, 6)
    np.testing.assert_allclose(values, [5, 5, 5, 2], rtol=1e-12)
    np.testing.assert_allclose(vectors * values @ vectors.T, matrix, atol=1e-12)


def test_an_earlier_bound_can_be_asked_for() -> None:
    found = Lanczos(lambda v: MATRIX @ v, 12)
    for _ in range(9):
        found.extend()
    np.testing.assert_allclose(found.bound(5)[0], run(MATRIX, 5)[0], rtol=1e-12)
    assert found.products == 9 and not found.complete


def test_rounding_of_the_products_is_not_taken_for_knowledge() -> None:
    random, exact = np.random.default_rng(0), np.linalg.eigvalsh(MATRIX)[::-1]
    noise = 1e-4 * exact[0]
    found = Lanczos(lambda v: MATRIX @ v + noise * random.standard_normal(12), 12)
    for _ in range(12):
        found.extend()
    values, _ = found.bound()
    np.testing.assert_allclose(values, exact[: len(values)], atol=3 * noise)
    assert 4 <= len(values) <= np.count_nonzero(exact > 0.3 * noise)  # the least ones are lost in it
