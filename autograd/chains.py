"""Chains f = f_d o ... o f_1 of a batch of states: the same product of Jacobians in three orders, and what each costs.

An adjoint u of the result becomes u J_d ... J_1. Multiplication of matrices is associative, so any bracketing gives
this product (to rounding); the order of the factors never changes.

- reverse: ((u J_d) J_{d-1}) ... J_1. Vector times matrix, n_i n_{i-1} multiplications a step; d products in a row.
- forward: u (J_d ... (J_3 (J_2 J_1))). Matrix times matrix from the input's side; d products in a row.
- scan: a balanced tree over the Jacobians, ceil(log2 d) products deep, and one more product with the adjoint.

Sources: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008 (modes and chained products of
Jacobians); G. E. Blelloch, "Prefix Sums and Their Applications", CMU-CS-90-190, 1990 (up-sweep and down-sweep).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from .errors import InputError
from .functional import jacobian
from .mode import no_grad
from .tensor import Array, Tensor, tensor

Order = Literal["reverse", "forward", "scan"]


class Cost(NamedTuple):
    """What a product of Jacobians took."""

    multiplications: int
    """Multiplications of two numbers, over the whole batch."""
    depth: int
    """Products that wait for each other: the length of the longest such row."""
    span: int
    """Multiplications of two numbers for one element of the batch on the costliest row of products that wait for each
    other: the time with one processor for each product and element."""


class ChainProduct(NamedTuple):
    """u J_d ... J_1, shape [m, n_0], and what it took."""

    adjoint: Array
    cost: Cost


class ScanReport(NamedTuple):
    """The adjoints of all states of a chain, and what each order took; `str` is a table with the answer in words."""

    adjoints: Array
    """[T + 1, m, n]: row i is the gradient with respect to the state after i steps; the last row is the adjoint."""
    costs: dict[str, Cost]
    """By order. reverse: all adjoints; forward, scan: only that of the first state; scan of all: all adjoints."""

    def __str__(self) -> str:
        rows, m, n = self.adjoints.shape
        lines = [
            f"{rows - 1} steps, state of {n}, batch of {m}",
            f"{'order':<12} {'multiplications':>16} {'depth':>8} {'span':>12}",
        ]
        lines += [f"{order:<12} {c.multiplications:>16} {c.depth:>8} {c.span:>12}" for order, c in self.costs.items()]
        reverse, scan = self.costs["reverse"], self.costs["scan of all"]
        work = scan.multiplications / reverse.multiplications
        lines.append(
            f"The scan of all states has {scan.depth} products in a row instead of {reverse.depth}, "
            f"for {work:.3g} times the multiplications."
        )
        if scan.span < reverse.span:
            gain = reverse.span / scan.span
            lines.append(f"With a processor for each product it could be at most {gain:.3g} times as fast as reverse.")
        else:
            lines.append("Even with a processor for each product it is no faster than reverse.")
        return "\n".join(lines)


class _Factor(NamedTuple):
    """A matrix [m, rows, columns] for each element of the batch, and what lies behind it."""

    values: Array
    depth: int = 0
    span: int = 0


class _Multiplier:
    """Multiplies, and counts what it multiplies."""

    def __init__(self) -> None:
        self.multiplications = self.depth = self.span = 0

    def __call__(self, left: _Factor, right: _Factor) -> _Factor:
        values = left.values @ right.values
        count = left.values.size * right.values.shape[2]
        self.multiplications += count
        depth = max(left.depth, right.depth) + 1
        span = max(left.span, right.span) + count // max(len(values), 1)
        self.depth, self.span = max(self.depth, depth), max(self.span, span)
        return _Factor(values, depth, span)

    @property
    def cost(self) -> Cost:
        return Cost(self.multiplications, self.depth, self.span)


def jacobians(functions: Sequence[Callable[[Tensor], Tensor]], states: npt.ArrayLike) -> list[Array]:
    """The Jacobians [m, n_i, n_{i-1}] of f_1, ..., f_d along the chain from `states` [m, n_0].

    Each function takes the state of one element of the batch, a Tensor of shape [n_{i-1}], to one of shape [n_i].
    """
    rows = [tensor(row) for row in np.asarray(states)]
    found = []
    for function in functions:
        found.append(np.array([jacobian(function, row) for row in rows]))
        with no_grad():
            rows = [function(row) for row in rows]
    return found


def chain_vjp(factors: Sequence[npt.ArrayLike], adjoint: npt.ArrayLike, *, order: Order = "reverse") -> ChainProduct:
    """u J_d ... J_1 for Jacobians J_1, ..., J_d of shapes [m, n_i, n_{i-1}] and an adjoint u [m, n_d].

    Errors: InputError for no Jacobian, for shapes that do not follow each other, and for an unknown order.
    """
    chain, start = _checked("chain_vjp", factors, adjoint)
    _check_order("chain_vjp", order)
    multiply = _Multiplier()
    if order == "reverse":
        product = start
        for factor in reversed(chain):
            product = multiply(product, factor)
    elif order == "forward":
        product = chain[0]
        for factor in chain[1:]:
            product = multiply(factor, product)
        product = multiply(start, product)
    else:
        product = multiply(start, _tree(chain, multiply)[-1][0])
    return ChainProduct(product.values[:, 0], multiply.cost)


def scan_vjp(factors: Sequence[npt.ArrayLike], adjoint: npt.ArrayLike) -> ScanReport:
    """Can the backward pass of T steps be parallelized? The adjoints of all states by a scan, and all orders' costs.

    `factors` are the Jacobians [m, n, n] of the steps, `adjoint` [m, n] is the gradient with respect to the last state.
    Going up, neighbours are multiplied into a tree, n^3 multiplications each; going down, the adjoint of a block's
    result, times its later half, is the adjoint of its earlier half's result, n^2 each. So the scan of all states has
    depth O(log T) instead of T, for about n + 1 times the multiplications.
    Errors: as `chain_vjp`, and InputError for Jacobians that are not all of one square shape.
    """
    chain, start = _checked("scan_vjp", factors, adjoint)
    if len({size for factor in chain for size in factor.values.shape[1:]}) > 1:
        shapes = sorted({factor.values.shape for factor in chain})
        raise InputError("scan_vjp", "all steps have states of one size", shapes, "Use chain_vjp for other chains.")
    costs = {order: chain_vjp(factors, adjoint, order=order).cost for order in get_args(Order)}
    multiply = _Multiplier()
    levels = _tree(chain, multiply)
    entering = [start]  # the adjoint of each block's result, for the blocks of one level
    for level in reversed(levels[:-1]):
        below: list[_Factor] = []
        for block, arriving in enumerate(entering):
            later = level[2 * block + 1 : 2 * block + 2]  # nothing for a last block without a partner
            below += [multiply(arriving, factor) for factor in later] + [arriving]
        entering = below
    first = multiply(start, levels[-1][0])
    adjoints = np.array([factor.values[:, 0] for factor in [first, *entering]])
    return ScanReport(adjoints, {**costs, "scan of all": multiply.cost})


def predicted_multiplications(sizes: Sequence[int], order: Order, m: int) -> int:
    """What `chain_vjp` will count, from the state sizes n_0, ..., n_d and the batch size m alone.

    reverse: m sum n_i n_{i-1}; forward: m (n_0 sum_{i>1} n_i n_{i-1} + n_d n_0); scan: m n_a n_b n_c for each pair of
    neighbouring blocks, from state a to b to c, and m n_d n_0. Errors: InputError for fewer than two sizes.
    """
    _check_order("predicted_multiplications", order)
    if len(sizes) < 2:
        raise InputError("predicted_multiplications", "a chain has at least one step", sizes, "Give n_0, ..., n_d.")
    products = [later * earlier for earlier, later in itertools.pairwise(sizes)]
    if order == "reverse":
        return m * sum(products)
    last = sizes[-1] * sizes[0]
    if order == "forward":
        return m * (sizes[0] * sum(products[1:]) + last)
    total, joints = 0, list(sizes)
    while len(joints) > 2:
        total += sum([a * b * c for a, b, c in zip(joints[:-2:2], joints[1:-1:2], joints[2::2], strict=True)])
        joints = joints[::2] if len(joints) % 2 else [*joints[::2], joints[-1]]
    return m * (total + last)


def predicted_depth(steps: int, order: Order) -> int:
    """What `chain_vjp` will count as depth: d for reverse and forward, ceil(log2 d) + 1 for the scan."""
    _check_order("predicted_depth", order)
    return (steps - 1).bit_length() + 1 if order == "scan" else steps


def _tree(chain: list[_Factor], multiply: _Multiplier) -> list[list[_Factor]]:
    """Products of neighbours, of neighbouring pairs, and so on: all levels, the whole product alone on the last."""
    levels = [chain]
    while len(level := levels[-1]) > 1:
        pairs = [multiply(later, earlier) for earlier, later in zip(level[:-1:2], level[1::2], strict=True)]
        levels.append(pairs + level[2 * len(pairs) :])
    return levels


def _checked(who: str, factors: Sequence[npt.ArrayLike], adjoint: npt.ArrayLike) -> tuple[list[_Factor], _Factor]:
    arrays = [np.asarray(factor) for factor in factors]
    u = np.asarray(adjoint)
    if not arrays:
        raise InputError(who, "a chain has at least one Jacobian", "none", "Give J_1, ..., J_d.")
    m, n = u.shape if u.ndim == 2 else (-1, -1)
    for array in reversed(arrays):
        if array.ndim != 3 or array.shape[:2] != (m, n):
            shapes = f"Jacobians {[array.shape for array in arrays]} and adjoint {u.shape}"
            rule = "Jacobians have shapes [m, n_i, n_{i-1}], from i = 1 on, and the adjoint has [m, n_d]"
            raise InputError(who, rule, shapes, "Order them from the input to the result.")
        n = array.shape[2]
    return [_Factor(array) for array in arrays], _Factor(u[:, None, :])


def _check_order(who: str, order: str) -> None:
    if order not in get_args(Order):
        raise InputError(who, f"the order is one of {', '.join(get_args(Order))}", order, "Choose one of them.")
