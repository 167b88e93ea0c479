"""The nearest rotation and its derivative."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simphys.autograd import runtime
from simphys.numerics.polar import LEAST

from ..helpers.rounding import assert_equal_but_for_rounding
from .matrices import DIMS, difference, dot, kinds, make_stretched, random, rotation_derivative, rotation_of, rotations

HARD = ("a reflection", "rank 1", "zero")
"""Kinds of matrices without a unique nearest rotation, in 2-D or 3-D."""


@pytest.mark.gpu
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kind", [k for k in kinds(2) if k not in HARD])
def test_r_is_the_nearest_rotation(dim: int, kind: str) -> None:
    F = kinds(dim)[kind]
    U, _, Vt = np.linalg.svd(F.astype(float))
    flip = np.ones((len(F), dim))
    flip[:, -1] = np.linalg.det(U @ Vt)
    eps = np.finfo(runtime.real_dtype()).eps
    # The rotation is determined up to rounding over the smallest s_i + s_j, 0.01 of F here or more.
    np.testing.assert_allclose(rotation_of(F), (U * flip[:, None, :]) @ Vt, rtol=0, atol=1000 * eps)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("stretches", [[1.3, 0.9, 0.7], [1.1, 1.1, 1.1], [1.2, 0.8, 1e-4], [1.2, 0.9, -0.4]])
def test_the_derivative_is_that_of_finite_differences(dim: int, stretches: list[float]) -> None:
    F, X = make_stretched(stretches[3 - dim :]), random(dim, seed=1)
    np.testing.assert_allclose(rotation_derivative(F, X), difference(rotation_of, F, X), rtol=0, atol=1e-7)


@settings(max_examples=30)
@given(st.lists(st.floats(0.3, 2), min_size=3, max_size=3), st.sampled_from(DIMS), st.integers(0, 1000))
def test_the_derivative_holds_for_any_stretches(stretches: list[float], dim: int, seed: int) -> None:
    F, X = make_stretched(stretches[:dim], n=4, seed=seed), random(dim, n=4, seed=seed + 1)
    np.testing.assert_allclose(rotation_derivative(F, X), difference(rotation_of, F, X), rtol=0, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kind", kinds(2))
def test_the_derivative_is_symmetric_and_bounded(dim: int, kind: str) -> None:
    F = kinds(dim)[kind]
    X, Y = random(dim, n=len(F), seed=1), random(dim, n=len(F), seed=2)
    dR, adj = rotation_derivative(F, X), rotation_derivative(F, Y)
    precision = "f64" if runtime.real_dtype() == np.float64 else "f32"
    assert np.abs(dR).max() <= 4 * np.abs(X).max() * dim / LEAST[precision]
    if kind not in HARD:
        eps = np.finfo(runtime.real_dtype()).eps
        size = np.sqrt(dot(dR, dR) * dot(Y, Y)).max()
        np.testing.assert_allclose(dot(dR, Y), dot(adj, X), rtol=0, atol=1000 * eps * size)


def test_where_all_rotations_of_the_plane_are_equally_near_r_is_their_mean_and_does_not_change() -> None:
    F = np.array([[[1.0, 0.5], [0.5, -1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    np.testing.assert_array_equal(rotation_of(F), 0)
    np.testing.assert_array_equal(rotation_derivative(F, random(2, n=2)), 0)


@pytest.mark.parametrize("kind", HARD)
def test_in_space_one_of_equally_near_rotations_is_found(kind: str) -> None:
    R = rotation_of(kinds(3)[kind])
    assert_equal_but_for_rounding(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(3), R.shape), ulps=100)
    assert_equal_but_for_rounding(np.linalg.det(R), np.ones(len(R)), ulps=100)


@pytest.mark.parametrize("dim", DIMS)
def test_a_turned_matrix_has_the_turned_rotation(dim: int) -> None:
    F, Q = make_stretched([1.5, 0.8, 0.6][:dim]), rotations(dim, 20, seed=5)
    assert_equal_but_for_rounding(rotation_of(Q @ F), Q @ rotation_of(F), ulps=100)
