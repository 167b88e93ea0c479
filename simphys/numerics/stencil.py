"""Coefficients of central differences on a regular grid, by the order of their error in the spacing.

    f''_i dx^2 = c_0 f_i + sum_k c_k (f_{i+k} + f_{i-k})          f'_i dx = sum_k d_k (f_{i+k} - f_{i-k})

Source: Fornberg 1988, table 1.
"""

from __future__ import annotations

ORDERS = (2, 4, 8)

_SECOND: dict[int, tuple[float, ...]] = {
    2: (-2.0, 1.0),
    4: (-5 / 2, 4 / 3, -1 / 12),
    8: (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560),
}
_FIRST: dict[int, tuple[float, ...]] = {
    2: (1 / 2,),
    4: (2 / 3, -1 / 12),
    8: (4 / 5, -1 / 5, 4 / 105, -1 / 280),
}


def second_difference(order: int) -> tuple[float, ...]:
    """Coefficients c_0, c_1, ... c_{order / 2}."""
    return _SECOND[order]


def first_difference(order: int) -> tuple[float, ...]:
    """Coefficients d_1, ... d_{order / 2}."""
    return _FIRST[order]
