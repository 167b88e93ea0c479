"""Chains f = f_d o ... o f_1 of a batch of states: one product of Jacobians in any bracketing, and what each costs.

An adjoint u of the result becomes u J_d ... J_1. Multiplication of matrices is associative, so any bracketing gives
this product (to rounding); the order of the factors never changes. Multiplying two neighbours eliminates the state
between them, so a bracketing is an order in which the states 1, ..., d are eliminated; three have names:

- reverse: ((u J_d) J_{d-1}) ... J_1. Vector times matrix, n_i n_{i-1} multiplications a step; d products in a row.
- forward: u (J_d ... (J_3 (J_2 J_1))). Matrix times matrix from the input's side; d products in a row.
- scan: a balanced tree over the Jacobians, ceil(log2 d) products deep, and one more product with the adjoint.

Sources: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008 (modes, elimination, and chained
products of Jacobians); G. E. Blelloch, "Prefix Sums and Their Applications", CMU-CS-90-190, 1990 (up-sweep and
down-sweep).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from .compose.functional import jacobian
from .errors import InputError
from .mode import no_grad
from .tensor import Array, Tensor, tensor

Order = Literal["reverse", "forward", "scan"]
Bracketing = Order | Sequence[int]
"""An order with a name, or the states 1, ..., d in the order in which they are eliminated: [3, 2, 1] is reverse."""
Jacobians = Sequence[npt.ArrayLike] | Array
"""J_1, ..., J_d of shapes [m, n_i, n_{i-1}]; of equal shapes, best as one array [d, m, n, n], which is not copied."""


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


class ScanAdjoints(NamedTuple):
    """The adjoints of all states of a chain by a scan, and what it took."""

    adjoints: Array
    """[T + 1, m, n]: row i is the gradient with respect to the state after i steps; the last row is the adjoint."""
    cost: Cost


class ScanReport(NamedTuple):
    """The adjoints of all states of a chain, and what each order took; `str` is a table with the answer in words."""

    adjoints: Array
    """[T + 1, m, n], as in ScanAdjoints."""
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
    """A matrix for each element of the batch, [m, rows, columns], or several such, [k, m, rows, columns], that are
    multiplied at the same time; and what lies behind it."""

    values: Array
    depth: int = 0
    span: int = 0

    def holding(self, values: Array) -> _Factor:
        """Other values with the same behind them."""
        return _Factor(values, self.depth, self.span)


class _Multiplier:
    """Multiplies, and counts what it multiplies."""

    def __init__(self) -> None:
        self.multiplications = self.depth = self.span = 0

    def __call__(self, left: _Factor, right: _Factor) -> _Factor:
        values = left.values @ right.values
        columns = right.values.shape[-1]
        self.multiplications += left.values.size * columns
        depth = max(left.depth, right.depth) + 1
        span = max(left.span, right.span) + values.shape[-2] * left.values.shape[-1] * columns
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


def chain_vjp(factors: Jacobians, adjoint: npt.ArrayLike, *, order: Bracketing = "reverse") -> ChainProduct:
    """u J_d ... J_1 for Jacobians J_1, ..., J_d of shapes [m, n_i, n_{i-1}] and an adjoint u [m, n_d].

    The scan of Jacobians of one square shape multiplies a whole level of its tree at once.
    Errors: InputError for no Jacobian, for shapes that do not follow each other, and for an unknown order.
    """
    chain, start = _checked("chain_vjp", factors, adjoint)
    eliminated = _eliminated("chain_vjp", len(chain), order)
    multiply = _Multiplier()
    if isinstance(chain, np.ndarray) and isinstance(order, str) and order == "scan":
        *_, root = _levels(chain[::-1], multiply)
        product = multiply(_Factor(start), root.holding(root.values[0]))
    else:
        between = {(i, i + 1): _Factor(values) for i, values in enumerate([*chain, start])}
        for a, s, c in _triples(len(chain), eliminated):
            between[a, c] = multiply(between.pop((s, c)), between.pop((a, s)))
        (product,) = between.values()
    return ChainProduct(product.values[:, 0], multiply.cost)


def scan_adjoints(factors: Jacobians, adjoint: npt.ArrayLike) -> ScanAdjoints:
    """The adjoints of all states of T steps with Jacobians [m, n, n], in 2 ceil(log2 T) batched products in a row.

    Going up, neighbours are multiplied into a tree, n^3 multiplications each; going down, the adjoint of a block's
    result, times its later half, is the adjoint of its earlier half's result, n^2 each. Together
    m ((T - 2) n^3 + T n^2) multiplications, for T > 1; reverse takes m T n^2.
    Errors: as `chain_vjp`, and InputError for Jacobians that are not all of one square shape.
    """
    steps, start = _checked("scan_adjoints", factors, adjoint)
    if not isinstance(steps, np.ndarray):
        shapes = sorted({factor.shape for factor in steps})
        raise InputError("scan_adjoints", "all steps have states of one size", shapes, "Use chain_vjp.")
    count = len(steps)
    multiply = _Multiplier()
    adjoints = np.empty((count + 1, *start.shape), np.result_type(steps, start))
    back = adjoints[::-1]  # by the number of steps from the end
    back[0] = start
    # Blocks of 1, 2, 4, ... steps, but not the whole: to halve it, its halves are enough.
    levels = list(itertools.islice(_levels(steps[::-1], multiply), (count - 1).bit_length()))
    known = _Factor(start)
    for height, level in reversed(list(enumerate(levels))):
        block = 1 << height
        known = multiply(known.holding(back[: count - block : 2 * block]), _halves(level)[0])
        back[block : count : 2 * block] = known.values
    back[count] = multiply(known.holding(back[count - 1]), _Factor(steps[0])).values
    return ScanAdjoints(adjoints[:, :, 0], multiply.cost)


def scan_vjp(factors: Jacobians, adjoint: npt.ArrayLike) -> ScanReport:
    """Can the backward pass of T steps be parallelized? The adjoints of all states by a scan, and all orders' costs.

    `factors` are the Jacobians [m, n, n] of the steps, `adjoint` [m, n] is the gradient with respect to the last state.
    The scan of all states, `scan_adjoints`, has depth O(log T) instead of T, for about n + 1 times the multiplications.
    Errors: as `scan_adjoints`.
    """
    adjoints, cost = scan_adjoints(factors, adjoint)
    costs = {order: chain_vjp(factors, adjoint, order=order).cost for order in get_args(Order)}
    return ScanReport(adjoints, {**costs, "scan of all": cost})


def predicted_multiplications(sizes: Sequence[int], order: Bracketing, m: int) -> int:
    """What `chain_vjp` will count, from the state sizes n_0, ..., n_d and the batch size m alone.

    The sum of m n_a n_s n_c over the states s, where a and c are the neighbours that s still has when it is eliminated,
    and n_{d+1} = 1 stands for the adjoint: reverse m sum n_i n_{i-1}, forward m n_0 (sum_{i>1} n_i n_{i-1} + n_d).
    Errors: InputError for fewer than two sizes and for an unknown order.
    """
    steps, n = len(sizes) - 1, [*sizes, 1]
    eliminated = _eliminated("predicted_multiplications", steps, order)
    return m * sum([n[a] * n[s] * n[c] for a, s, c in _triples(steps, eliminated)])


def predicted_depth(steps: int, order: Bracketing) -> int:
    """What `chain_vjp` will count as depth: d for reverse and forward, ceil(log2 d) + 1 for the scan.

    Errors: InputError for less than one step and for an unknown order.
    """
    depth: dict[tuple[int, int], int] = {}
    for a, s, c in _triples(steps, _eliminated("predicted_depth", steps, order)):
        depth[a, c] = max(depth.get((a, s), 0), depth.get((s, c), 0)) + 1
    return depth[0, steps + 1]


def _eliminated(who: str, steps: int, order: str | Sequence[int]) -> Sequence[int]:
    """The states 1, ..., d in the order in which they are eliminated."""
    if steps < 1:
        raise InputError(who, "a chain has at least one step", steps, "Give the sizes of two states or more.")
    strides = [1 << level for level in range((steps - 1).bit_length())]
    named: dict[str, Sequence[int]] = {
        "reverse": range(steps, 0, -1),
        "forward": range(1, steps + 1),
        "scan": [state for stride in strides for state in range(steps - stride, 0, -2 * stride)] + [steps],
    }
    states = named.get(order, ()) if isinstance(order, str) else order
    if sorted(states) != list(range(1, steps + 1)):
        rule = f"the order is one of {', '.join(named)}, or the states 1, ..., {steps} in some order"
        raise InputError(who, rule, order, "Choose one of them.")
    return states


def _triples(steps: int, eliminated: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(a, s, c): state s is eliminated, and its neighbours then are a and c; those of all states are 0 and d + 1."""
    before, after = list(range(-1, steps + 1)), list(range(1, steps + 3))
    for s in eliminated:
        a, c = before[s], after[s]
        after[a], before[c] = c, a
        yield a, s, c


def _levels(backward: Array, multiply: _Multiplier) -> Iterator[_Factor]:
    """The products of 1, 2, 4, ... of J_d, ..., J_1, and last of fewer: [k, m, n, n], made when asked for."""
    level = _Factor(backward)
    yield level
    while len(level.values) > 1:
        products = multiply(*_halves(level))
        left = level.values[2 * len(products.values) :]
        level = products.holding(np.concatenate([products.values, left])) if len(left) else products
        yield level


def _halves(level: _Factor) -> tuple[_Factor, _Factor]:
    """The later and the earlier of each pair of neighbours in a level that runs backward."""
    pairs = len(level.values) // 2
    return level.holding(level.values[: 2 * pairs : 2]), level.holding(level.values[1::2])


def _checked(who: str, factors: Jacobians, adjoint: npt.ArrayLike) -> tuple[Array | list[Array], Array]:
    """The Jacobians, as one array [d, m, n, n] where all have one square shape, and the adjoint as [m, 1, n]."""
    u = np.asarray(adjoint)
    m, n = u.shape if u.ndim == 2 else (-1, -1)
    if isinstance(factors, np.ndarray) and factors.shape[1:] == (m, n, n) and len(factors):
        return factors, u[:, None, :]
    arrays = [np.asarray(factor) for factor in factors]
    if not arrays:
        raise InputError(who, "a chain has at least one Jacobian", "none", "Give J_1, ..., J_d.")
    columns = n
    for array in reversed(arrays):
        if array.ndim != 3 or array.shape[:2] != (m, columns):
            shapes = f"Jacobians {[array.shape for array in arrays]} and adjoint {u.shape}"
            rule = "Jacobians have shapes [m, n_i, n_{i-1}], from i = 1 on, and the adjoint has [m, n_d]"
            raise InputError(who, rule, shapes, "Order them from the input to the result.")
        columns = array.shape[2]
    square = all([array.shape == (m, n, n) for array in arrays])
    return np.stack(arrays) if square else arrays, u[:, None, :]
