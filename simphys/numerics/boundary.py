"""Continuation of fields beyond the sides of regular grids: every index maps to a cell inside, with a sign.

A field u_0 ... u_{n-1} along an axis is continued to all integers i by u_i = sign * u_index:

    zero        odd about -1 and n, where it vanishes             u_{-1} = 0, u_{-2} = -u_0, u_{-3} = -u_1 ...
    free        even about -1/2 and n - 1/2, with zero slope      u_{-1} = u_0, u_{-2} = u_1 ...
    periodic    u_i = u_{i+n}
    absorbing   0

The continuation solves the wave equation wherever the field does: a wave that leaves through a side enters again from
beyond it, which is its reflection. An index that is reflected past the opposite side gets the sign 0, so that no index
leads outside the memory of the field.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def fold(i: Array, count: int, low: str, high: str) -> tuple[Array, Array]:
    """Map integers to (index, sign), for an axis of `count` cells with these kinds of sides."""
    if low == "periodic":
        return i % count, np.ones_like(i)
    index, sign = i.copy(), np.ones_like(i)
    for beyond, kind, odd, even in ((i < 0, low, -2 - i, -1 - i), (i >= count, high, 2 * count - i, 2 * count - 1 - i)):
        if kind in ("zero", "free"):
            index = np.where(beyond, odd if kind == "zero" else even, index)
            sign = np.where(beyond & (kind == "zero"), -1, sign)
    inside = (index >= 0) & (index < count)
    return np.where(inside, index, 0), np.where(inside, sign, 0)
