"""Undivided central differences along a line in memory; neighbouring cells are `stride` numbers apart."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.stencil import first_difference, second_difference


@functools.cache
@no_type_check
def functions(real: Any, order: int) -> SimpleNamespace:
    """Return dx f' and dx^2 f'' at entry i of array u. Both read order / 2 entries on either side."""
    c1, c2, reach = first_difference(order), second_difference(order), order // 2

    @ti.func
    def first(u: ti.template(), i, stride) -> real:
        total = real(0.0)
        for k in ti.static(range(reach)):
            total += c1[k] * (u[i + (k + 1) * stride] - u[i - (k + 1) * stride])
        return total

    @ti.func
    def second(u: ti.template(), i, stride) -> real:
        total = c2[0] * u[i]
        for k in ti.static(range(1, reach + 1)):
            total += c2[k] * (u[i + k * stride] + u[i - k * stride])
        return total

    return SimpleNamespace(first=first, second=second)
