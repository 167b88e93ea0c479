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

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any, count: int, low: str, high: str) -> SimpleNamespace:
    """The element function fold(i) -> (index, sign), for an axis of `count` cells with these kinds of sides."""

    @ti.func
    def fold(i: ti.i32):
        index, sign = i, real(1.0)
        if ti.static(low == "periodic"):
            index = i % count
        else:
            if i < 0:
                if ti.static(low == "zero"):
                    index, sign = -2 - i, real(-1.0)
                elif ti.static(low == "free"):
                    index = -1 - i
            elif i >= count:
                if ti.static(high == "zero"):
                    index, sign = 2 * count - i, real(-1.0)
                elif ti.static(high == "free"):
                    index = 2 * count - 1 - i
            if index < 0 or index >= count:
                index, sign = 0, real(0.0)
        return index, sign

    return SimpleNamespace(fold=fold)
