"""A product of Jacobians in any bracketing, and the cost of each: can the backward pass of T steps run in parallel?

Chains f = f_d o ... o f_1 are applied to a batch of states. An adjoint u of the result becomes u J_d ... J_1. Matrix
multiplication is associative, so any bracketing gives this product (to rounding); the order of the factors never
changes. Multiplying two neighbours eliminates the state between them. A bracketing is thus an order in which the
states 1, ..., d are eliminated; three have names:

- reverse: ((u J_d) J_{d-1}) ... J_1. Vector times matrix, n_i n_{i-1} multiplications a step; d products in a row.
- forward: u (J_d ... (J_3 (J_2 J_1))). Matrix times matrix from the input's side; d products in a row.
- scan: a balanced tree over the Jacobians, ceil(log2 d) products deep, and one more product with the adjoint.

Sources: A. Griewank and A. Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008 (modes, elimination, and chained
products of Jacobians); G. E. Blelloch, "Prefix Sums and Their Applications", CMU-CS-90-190, 1990 (up-sweep and
down-sweep).

Run it:  python docs/examples/jacobian_chains.py
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from simphys.autograd import InputError, Tensor, jacobian, no_grad, ops, tensor

Array = npt.NDArray[np.float64]
Order = Literal["reverse", "forward", "scan"]
Bracketing = Order | Sequence[int]
"""A named order, or the states 1, ..., d in the order of their elimination: [3, 2, 1] is reverse."""
Jacobians = Sequence[npt.ArrayLike] | Array
"""J_1, ..., J_d of shapes [m, n_i, n_{i-1}]. Pass those of one shape as an array [d, m, n, n], which is not copied."""


class Cost(NamedTuple):
    """The cost of a product of Jacobians."""

    multiplications: int
    """Multiplications of two numbers, over the whole batch."""
    depth: int
    """Length of the longest sequence of products in which each needs the one before it."""
    span: int
    """Multiplications of two numbers for one batch member, along the costliest such sequence.

    This is the time with one processor for each product and batch member."""


class ChainProduct(NamedTuple):
    """The product u J_d ... J_1, shape [m, n_0], and its cost."""

    adjoint: Array
    cost: Cost


class ScanAdjoints(NamedTuple):
    """The adjoints of all states of a chain by a scan, and their cost."""

    adjoints: Array
    """[T + 1, m, n]: row i is the gradient with respect to the state after i steps; the last row is the adjoint."""
    cost: Cost


class ScanReport(NamedTuple):
    """The adjoints of all states of a chain, and the cost of each order; `str` gives a table and the conclusion."""

    adjoints: Array
    """[T + 1, m, n], as in ScanAdjoints."""
    costs: dict[str, Cost]
    """Cost by order: of all adjoints for `reverse` and `scan of all`, of the first state's for `forward` and `scan`."""

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
    """A matrix for each batch member, [m, rows, columns], with the depth and span of the products that made it.

    Several such matrices, [k, m, rows, columns], are multiplied at the same time."""

    values: Array
    depth: int = 0
    span: int = 0

    def with_values(self, values: Array) -> _Factor:
        """Replace the values; depth and span stay."""
        return _Factor(values, self.depth, self.span)


class _Multiplier:
    """A product of factors that counts its multiplications."""

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

    Each function maps the state of one batch member, a Tensor of shape [n_{i-1}], to one of shape [n_i].
    """
    rows = [tensor(row) for row in np.asarray(states)]
    found = []
    for function in functions:
        found.append(np.array([jacobian(function, row) for row in rows]))
        with no_grad():
            rows = [function(row) for row in rows]
    return found


def chain_vjp(factors: Jacobians, adjoint: npt.ArrayLike, *, order: Bracketing = "reverse") -> ChainProduct:
    """The product u J_d ... J_1 of Jacobians J_1, ..., J_d, shapes [m, n_i, n_{i-1}], and an adjoint u [m, n_d].

    A scan of Jacobians of one square shape multiplies a whole level of its tree at once.
    Errors: InputError for no Jacobian, for shapes that do not follow each other, and for an unknown order.
    """
    chain, start = _checked("chain_vjp", factors, adjoint)
    eliminated = _elimination("chain_vjp", len(chain), order)
    multiply = _Multiplier()
    if isinstance(chain, np.ndarray) and isinstance(order, str) and order == "scan":
        *_, root = _levels(chain[::-1], multiply)
        product = multiply(_Factor(start), root.with_values(root.values[0]))
    else:
        between = {(i, i + 1): _Factor(values) for i, values in enumerate([*chain, start])}
        for a, s, c in _triples(len(chain), eliminated):
            between[a, c] = multiply(between.pop((s, c)), between.pop((a, s)))
        (product,) = between.values()
    return ChainProduct(product.values[:, 0], multiply.cost)


def scan_adjoints(factors: Jacobians, adjoint: npt.ArrayLike) -> ScanAdjoints:
    """The adjoints of all states of T steps with Jacobians [m, n, n], in 2 ceil(log2 T) batched products in a row.

    The up-sweep multiplies neighbours into a tree, n^3 multiplications each. The down-sweep multiplies the adjoint of a
    block's result with the block's later half: n^2 multiplications give the adjoint of the earlier half's result.
    Together they take m ((T - 2) n^3 + T n^2) multiplications for T > 1; reverse takes m T n^2.
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
        known = multiply(known.with_values(back[: count - block : 2 * block]), _halves(level)[0])
        back[block : count : 2 * block] = known.values
    back[count] = multiply(known.with_values(back[count - 1]), _Factor(steps[0])).values
    return ScanAdjoints(adjoints[:, :, 0], multiply.cost)


def scan_vjp(factors: Jacobians, adjoint: npt.ArrayLike) -> ScanReport:
    """Compute the adjoints of all states by a scan, and compare the costs of all orders.

    `factors` are the Jacobians [m, n, n] of the steps, `adjoint` [m, n] is the gradient with respect to the last state.
    The scan of all states, `scan_adjoints`, has depth O(log T) instead of T, for about n + 1 times the multiplications.
    Errors: as `scan_adjoints`.
    """
    adjoints, cost = scan_adjoints(factors, adjoint)
    costs = {order: chain_vjp(factors, adjoint, order=order).cost for order in get_args(Order)}
    return ScanReport(adjoints, {**costs, "scan of all": cost})


def predicted_multiplications(sizes: Sequence[int], order: Bracketing, m: int) -> int:
    """Predict the multiplications of `chain_vjp` from the state sizes n_0, ..., n_d and the batch size m.

    This is the sum of m n_a n_s n_c over the states s: a and c are the neighbours of s when it is eliminated, and
    n_{d+1} = 1 stands for the adjoint. Reverse: m sum n_i n_{i-1}. Forward: m n_0 (sum_{i>1} n_i n_{i-1} + n_d).
    Errors: InputError for fewer than two sizes and for an unknown order.
    """
    steps, n = len(sizes) - 1, [*sizes, 1]
    eliminated = _elimination("predicted_multiplications", steps, order)
    return m * sum([n[a] * n[s] * n[c] for a, s, c in _triples(steps, eliminated)])


def predicted_depth(steps: int, order: Bracketing) -> int:
    """Predict the depth of `chain_vjp`: d for reverse and forward, ceil(log2 d) + 1 for the scan.

    Errors: InputError for less than one step and for an unknown order.
    """
    depth: dict[tuple[int, int], int] = {}
    for a, s, c in _triples(steps, _elimination("predicted_depth", steps, order)):
        depth[a, c] = max(depth.get((a, s), 0), depth.get((s, c), 0)) + 1
    return depth[0, steps + 1]


def _elimination(caller: str, steps: int, order: str | Sequence[int]) -> Sequence[int]:
    """The states 1, ..., d in the order of their elimination."""
    if steps < 1:
        raise InputError(caller, "a chain has at least one step", steps, "Give the sizes of two states or more.")
    strides = [1 << level for level in range((steps - 1).bit_length())]
    named: dict[str, Sequence[int]] = {
        "reverse": range(steps, 0, -1),
        "forward": range(1, steps + 1),
        "scan": [state for stride in strides for state in range(steps - stride, 0, -2 * stride)] + [steps],
    }
    states = named.get(order, ()) if isinstance(order, str) else order
    if sorted(states) != list(range(1, steps + 1)):
        rule = f"the order is one of {', '.join(named)}, or the states 1, ..., {steps} in some order"
        raise InputError(caller, rule, order, "Choose one of them.")
    return states


def _triples(steps: int, eliminated: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Triples (a, s, c): state s is eliminated between its neighbours a and c; the outermost are 0 and d + 1."""
    before, after = list(range(-1, steps + 1)), list(range(1, steps + 3))
    for s in eliminated:
        a, c = before[s], after[s]
        after[a], before[c] = c, a
        yield a, s, c


def _levels(backward: Array, multiply: _Multiplier) -> Iterator[_Factor]:
    """The products of 1, 2, 4, ... neighbours of J_d, ..., J_1, the last of fewer: [k, m, n, n], level by level."""
    level = _Factor(backward)
    yield level
    while len(level.values) > 1:
        products = multiply(*_halves(level))
        left = level.values[2 * len(products.values) :]
        level = products.with_values(np.concatenate([products.values, left])) if len(left) else products
        yield level


def _halves(level: _Factor) -> tuple[_Factor, _Factor]:
    """The later and the earlier of each pair of neighbours in a level that runs backward."""
    pairs = len(level.values) // 2
    return level.with_values(level.values[: 2 * pairs : 2]), level.with_values(level.values[1::2])


def _checked(caller: str, factors: Jacobians, adjoint: npt.ArrayLike) -> tuple[Array | list[Array], Array]:
    """The Jacobians, as one array [d, m, n, n] where all have one square shape, and the adjoint as [m, 1, n]."""
    u = np.asarray(adjoint)
    m, n = u.shape if u.ndim == 2 else (-1, -1)
    if isinstance(factors, np.ndarray) and factors.shape[1:] == (m, n, n) and len(factors):
        return factors, u[:, None, :]
    arrays = [np.asarray(factor) for factor in factors]
    if not arrays:
        raise InputError(caller, "a chain has at least one Jacobian", "none", "Give J_1, ..., J_d.")
    columns = n
    for array in reversed(arrays):
        if array.ndim != 3 or array.shape[:2] != (m, columns):
            shapes = f"Jacobians {[array.shape for array in arrays]} and adjoint {u.shape}"
            rule = "Jacobians have shapes [m, n_i, n_{i-1}], from i = 1 on, and the adjoint has [m, n_d]"
            raise InputError(caller, rule, shapes, "Order them from the input to the result.")
        columns = array.shape[2]
    square = all([array.shape == (m, n, n) for array in arrays])
    return np.stack(arrays) if square else arrays, u[:, None, :]


def main() -> None:
    """Compare the orders for 64 steps of a pendulum whose state is its position and velocity."""

    def step(s: Tensor) -> Tensor:
        return ops.stack([s[0] + 0.1 * s[1], s[1] - 0.1 * ops.sin(s[0])])

    factors = jacobians([step] * 64, np.array([[1.0, 0.0]]))
    print(scan_vjp(factors, np.array([[1.0, 0.0]])))


if __name__ == "__main__":
    main()
