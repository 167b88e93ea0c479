"""Equality but for rounding: kernels that are compiled apart, on any processor, round the same sum otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np


def assert_equal_but_for_rounding(found: Any, expected: Any, *, ulps: float = 16.0, size: float | None = None) -> None:
    """Assert that two arrays differ by at most `ulps` units in the last place of numbers of a size.

    The size is that of the largest term of the sums that were made; by default the largest expected value. For sums of
    n terms of about this size, `ulps` is about n. Equality to the bit is for launches of one compiled kernel, and for
    values that are copied.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"shapes {found.shape} and {expected.shape}"
    types = [x.dtype for x in (found, expected) if np.issubdtype(x.dtype, np.floating)]
    eps = max([float(np.finfo(dtype).eps) for dtype in types], default=0.0)
    if size is None:
        size = float(np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=ulps * eps * size)
