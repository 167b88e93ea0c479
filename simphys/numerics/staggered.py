"""Differences on a staggered axis, by the order of their error, with ends at which energy is conserved.

Face i lies at i h and centre i at (i + 1/2) h, i = 0 ... n - 1. The axis begins at face 0, and ends at a face n that is
not stored, as what lives there is 0. In the interior, h f' at the middle between k = 1 ... points on either side is

    sum_k c_k (f_{k - 1/2} - f_{1/2 - k})

Near an end, Q below differs from that, so that with positive weights H_c of centres and H_f of faces

    D_c = H_c^-1 Q   (h d/dx of face values at centres)         D_f = -H_f^-1 Q^T   (of centre values at faces)

are negative adjoints of each other in the scalar products with the weights H. That is summation by parts: both are
accurate for polynomials up to a degree, D_f in row 0 for values that vanish at face 0, such as the traction at a free
surface. The entries nearest to the interior differences that fulfil these linear conditions are taken. Their norm is
below that of the interior differences, sum_k 2 |c_k|, which therefore limits the time step.

Sources: Fornberg 1988 (c_k); Levander 1988 (order 4); O'Reilly, Lundquist, Dunham and Nordstroem 2017 (summation by
parts on staggered grids); order 2 with H_f0 = 1/2 is the stress imaging of Levander 1988 for tractions at face 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_DIFFERENCES: dict[int, tuple[float, ...]] = {
    2: (1.0,),
    4: (9 / 8, -1 / 24),
    8: (1225 / 1024, -245 / 3072, 49 / 5120, -5 / 7168),
}
_ENDS = {2: (1, 1), 4: (4, 2), 8: (8, 3)}
"""Centres with differences of their own at an end, and the degree of the polynomials for which these are exact."""
ORDERS = tuple(_DIFFERENCES)


def staggered_difference(order: int) -> tuple[float, ...]:
    """Coefficients c_1, ... c_{order / 2}."""
    return _DIFFERENCES[order]


def least_count(order: int) -> int:
    """Least number of cells along an axis, so that its ends do not meet."""
    return 2 * (_ENDS[order][0] + order // 2)


def make_operators(order: int, count: int) -> tuple[Array, Array, Array, Array]:
    """Make D_c and D_f [count, count], and the weights H_c and H_f [count]."""
    block, centres, faces = _close(order)
    whole = _fill_interior(order, count)
    rows, columns = block.shape
    weight_c, weight_f = np.ones(count), np.ones(count + 1)
    whole[:rows, :columns], weight_c[:rows], weight_f[:columns] = block, centres, faces
    whole[-rows:, -columns:] = -block[::-1, ::-1]
    weight_c[-rows:], weight_f[-columns:] = centres[::-1], faces[::-1]
    inside, weight_f = whole[:, :count], weight_f[:count]
    return inside / weight_c[:, None], -inside.T / weight_f[:, None], weight_c, weight_f


def _fill_interior(order: int, count: int) -> Array:
    """Make Q [count, count + 1] of the interior differences, cut off at the ends."""
    found, at = np.zeros((count, count + 1)), np.arange(count)
    for k, c in enumerate(_DIFFERENCES[order], 1):
        for face, sign in ((at + k, c), (at + 1 - k, -c)):
            inside = (face >= 0) & (face <= count)
            found[at[inside], face[inside]] += sign
    return found


@cache
def _close(order: int) -> tuple[Array, Array, Array]:
    """Solve for the first rows of Q, and the weights of the centres and faces there."""
    rows, degree = _ENDS[order]
    columns = rows + order // 2
    size, beyond = rows * columns, rows + 2 * order
    interior = _fill_interior(order, beyond)
    centre, face = np.arange(beyond) + 0.5, np.arange(columns) * 1.0
    conditions, values = [], []
    for power in range(degree + 1):
        for i in range(rows):  # Q x^p = H_c p x^(p-1) at centres
            condition = np.zeros((rows, columns))
            condition[i] = face**power
            weight = np.zeros(rows + columns)
            weight[i] = -power * centre[i] ** max(power - 1, 0)
            conditions.append(np.concatenate([condition.reshape(-1), weight]))
            values.append(0.0)
        for j in range(columns):  # -Q^T x^p = H_f p x^(p-1) at faces, but for the value at face 0
            condition = np.zeros((rows, columns))
            condition[:, j] = -(centre[:rows] ** power)
            weight = np.zeros(rows + columns)
            weight[rows + j] = -power * face[j] ** max(power - 1, 0)
            conditions.append(np.concatenate([condition.reshape(-1), weight]))
            values.append(interior[rows:, j] @ centre[rows:] ** power + (1.0 if j == power == 0 else 0.0))
    weights = np.ones(rows + columns)
    weights[rows] = 0.5
    near = np.concatenate([interior[:rows, :columns].reshape(-1), weights])
    matrix = np.array(conditions)
    found = near + np.linalg.lstsq(matrix, np.array(values) - matrix @ near, rcond=None)[0]
    return found[:size].reshape(rows, columns), found[size : size + rows], found[size + rows :]
