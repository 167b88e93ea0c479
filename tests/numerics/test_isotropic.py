"""Derivatives of isotropic maps that are given by their values in the principal frame."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simphys.numerics.isotropic import LEAST, TIE

from .matrices import (
    DIMS,
    Array,
    difference,
    dot,
    kernels,
    kinds,
    left_map_of,
    make_stretched,
    map_derivatives,
    map_of,
    random,
    svd_of,
)

GAP = TIE["f64"]
STRETCHES = {
    "apart": [1.6, 1.1, 0.7],
    "all equal": [1.2, 1.2, 1.2],
    "two equal": [1.3, 1.3, 0.6],
    "closer than TIE": [1.3, 1.3 + GAP, 0.6],
    "as far as TIE": [1.3, 1.3 + 4 * GAP, 0.6],
    "inverted": [1.5, 1.1, -0.6],
    "nearly singular": [1.5, 1.1, 1e-4],
}


def assert_right(F: Array, tolerance: float = 1e-8) -> None:
    X, Y = random(F.shape[-1], n=len(F), seed=1), random(F.shape[-1], n=len(F), seed=2)
    jvp, _, jvp_left, _ = map_derivatives(F, X)
    _, adj, _, adj_left = map_derivatives(F, Y)
    np.testing.assert_allclose(jvp, difference(map_of, F, X), rtol=0, atol=tolerance)
    np.testing.assert_allclose(jvp_left, difference(left_map_of, F, X), rtol=0, atol=tolerance)
    np.testing.assert_allclose(dot(jvp, Y), dot(adj, X), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(dot(jvp_left, Y), dot(adj_left, X), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kind", STRETCHES)
def test_derivatives_are_those_of_finite_differences(dim: int, kind: str) -> None:
    stretches = STRETCHES[kind]
    assert_right(make_stretched(stretches[:dim] if stretches[-1] > 0.1 else stretches[3 - dim :]))


@settings(max_examples=50)
@given(st.lists(st.floats(0.3, 2), min_size=3, max_size=3), st.sampled_from(DIMS), st.integers(0, 1000))
def test_they_are_right_for_any_stretches(stretches: list[float], dim: int, seed: int) -> None:
    assert_right(make_stretched(stretches[:dim], n=4, seed=seed))


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kind", kinds(2))
def test_they_are_finite_for_matrices_of_all_kinds(dim: int, kind: str) -> None:
    F = kinds(dim)[kind]
    assert all(np.isfinite(found).all() for found in map_derivatives(F, random(dim, n=len(F), seed=1)))


@pytest.mark.parametrize("dim", DIMS)
def test_where_an_inversion_makes_the_frame_jump_derivatives_are_bounded(dim: int) -> None:
    """The map is the rotation, g = 1; its derivative 2 / (s_i + s_j) is limited where that sum is below LEAST."""
    F, X = make_stretched([1.0, 1.0, -1.0][3 - dim :]), random(dim, seed=1)
    U, s, V = svd_of(F)
    found = [np.empty_like(F) for _ in range(4)]
    kernels(dim).map_derivatives(U, s, V, np.ones_like(s), np.zeros_like(F), X, *found)
    least = LEAST["f64"]
    assert 0.1 / least < np.abs(found[0]).max() < 4 * np.abs(X).max() * dim / least


def test_the_identity_map_has_the_identity_as_derivative() -> None:
    F, X = make_stretched([1.3, 0.9, 0.4]), random(3, seed=1)
    U, s, V = svd_of(F)
    found = [np.empty_like(F) for _ in range(4)]
    kernels(3).map_derivatives(U, s, V, s, np.broadcast_to(np.eye(3), F.shape).copy(), X, *found)
    np.testing.assert_allclose(found[0], X, atol=1e-13)
    np.testing.assert_allclose(found[1], X, atol=1e-13)


@pytest.mark.parametrize("entry", [(0, 0), (0, 1)])
def test_a_wrong_jacobian_is_noticed(monkeypatch: pytest.MonkeyPatch, entry: tuple[int, int]) -> None:
    from . import matrices

    right = matrices.values_of

    def wrong(s: Array) -> tuple[Array, Array]:
        g, J = right(s)
        J[:, entry[0], entry[1]] *= 1.001
        return g, J

    monkeypatch.setattr(matrices, "values_of", wrong)
    with pytest.raises(AssertionError):
        assert_right(make_stretched(STRETCHES["apart"]))
