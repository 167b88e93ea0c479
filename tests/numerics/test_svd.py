"""Singular values with rotations of both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simphys.autograd import runtime

from .matrices import DIMS, Array, kinds, make_stretched, random, svd_of

STRETCH = st.floats(-3, 3).map(lambda s: round(s, 12)) | st.sampled_from([0.0, 1.0, -1.0, 1e-9, 1 + 1e-9, 2.0])


def tolerance() -> float:
    """Tolerance in the precision of this process: a dozen rotations of columns, each with some rounding errors."""
    return 64 * float(np.finfo(runtime.real_dtype()).eps)


def assert_decomposes(F: Array) -> None:
    U, s, V = (a.astype(float) for a in svd_of(F))
    size, eye = np.abs(F).max(), np.eye(F.shape[-1])
    for turn in (U, V):
        np.testing.assert_allclose(turn @ turn.transpose(0, 2, 1), np.broadcast_to(eye, F.shape), atol=tolerance())
        np.testing.assert_allclose(np.linalg.det(turn), 1, atol=tolerance())
    np.testing.assert_allclose((U * s[:, None, :]) @ V.transpose(0, 2, 1), F, rtol=0, atol=tolerance() * size)
    expected = np.linalg.svd(F.astype(float))[1]
    np.testing.assert_allclose(np.abs(s), expected, rtol=0, atol=tolerance() * size)
    assert (s[:, :-1] >= -tolerance() * size).all(), "only the last one may be negative"
    clear = np.abs(s[:, -1]) > 1e-3 * size
    np.testing.assert_array_equal(np.sign(s[clear, -1]), np.sign(np.linalg.det(F[clear].astype(float))))


@pytest.mark.gpu
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("kind", kinds(2))
def test_all_kinds_of_matrices_decompose_to_rounding(dim: int, kind: str) -> None:
    assert_decomposes(kinds(dim)[kind])


@settings(max_examples=50)
@given(st.lists(STRETCH, min_size=3, max_size=3), st.sampled_from(DIMS), st.integers(0, 1000))
def test_any_stretches_are_found(stretches: list[float], dim: int, seed: int) -> None:
    assert_decomposes(make_stretched(stretches[:dim], n=4, seed=seed))


@pytest.mark.parametrize("dim", DIMS)
def test_many_random_matrices_decompose(dim: int) -> None:
    assert_decomposes(random(dim, n=5000, seed=3))
