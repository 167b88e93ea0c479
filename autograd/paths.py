"""The graph of a result, taken apart: paths from a leaf to the loss, and branches that do not wait for each other.

The gradient is a sum over paths of the product of the local derivatives along each (Bauer's formula: F. L. Bauer,
"Computational graphs and rounding error", SIAM J. Numer. Anal. 11, 1974; A. Griewank and A. Walther, "Evaluating
Derivatives", 2nd ed., SIAM 2008). Reverse mode forms the sum without listing the paths, whose number may
grow exponentially with the length of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .errors import InputError
from .function import AccumulateGrad, Context
from .graph import ancestors, between, origin
from .mode import no_grad
from .node import run_backward
from .tensor import Array, Tensor

_UNCOUNTABLE = 10**300  # counts stop here, so that a long graph does not store numbers of a million digits
_SHOWN = 6  # nodes at each end of a long path that str() names


class Path(NamedTuple):
    """One way from a leaf to the loss."""

    nodes: tuple[Context, ...]
    """The applications of Functions on it, from the leaf to the loss."""
    inputs: tuple[int, ...]
    """For each node, which of its inputs the path enters by."""
    contribution: Array
    """The product of the local derivatives: this path's term of d loss / d leaf, of the leaf's shape."""
    name: str
    """What `str` calls the leaf."""

    def __str__(self) -> str:
        names = [node.name() for node in self.nodes]
        if len(names) > 2 * _SHOWN + 1:
            names[_SHOWN:-_SHOWN] = [f"... {len(names) - 2 * _SHOWN} nodes ..."]
        value = np.array2string(self.contribution, separator=", ", threshold=20)
        return f"{' -> '.join([self.name, *names])}: {value}"


def paths(loss: Tensor, leaf: Tensor, *, limit: int = 1000, name: str = "leaf") -> list[Path]:
    """Every path from `leaf` to the scalar `loss`, with its contribution to the gradient; their sum is the gradient.

    A Tensor that is used twice by one node has two paths through it. A path along which no gradient flows (a Function
    gave no adjoint for it) contributes zero; without any path the list is empty. `leaf` may also be an intermediate
    result; `name` is what `str` of a path calls it. The graph is kept and no `.grad` is touched.
    Errors: InputError when `loss` is not a scalar that requires a gradient, when `leaf` does not require one, and,
    before any path is followed, when there are more than `limit`; GraphError when the graph was freed.
    """
    if loss.size != 1 or not loss.requires_grad:
        remedy = "Reduce it by sum(), and do not compute it under no_grad()."
        raise InputError("paths", "the loss is a scalar that requires a gradient", repr(loss), remedy)
    if not leaf.requires_grad:
        remedy = "Set requires_grad=True on it before the computation."
        raise InputError("paths", "the leaf requires a gradient", repr(leaf), remedy)
    source = origin(leaf)
    seed = np.ones(loss.shape, loss.dtype)
    if origin(loss) == source:
        return [Path((), (), seed, name)]
    nodes = between([loss], [source])
    counts: dict[int, int] = {}  # of paths from the source to each node; older nodes come first
    for node in nodes:
        arriving = [(edge[0].sequence, edge[1]) for edge in node.edges if edge is not None]
        count = sum([1 if key == source else counts.get(key[0], 0) for key in arriving])
        counts[node.sequence] = min(count, _UNCOUNTABLE)
    total = counts.get(origin(loss)[0], 0)
    if total > limit:
        found = f"{total} paths" if total < _UNCOUNTABLE else "more than 10^300 paths"
        remedy = "Raise the limit, or take the gradient, which is their sum."
        raise InputError("paths", f"at most limit = {limit} paths lead from the leaf to the loss", found, remedy)
    if not total:
        return []
    found_paths = []
    # What is still to be followed: a node, which output was reached with which adjoint, and the way from there on.
    waiting: list[tuple[Context, int, Array | None, Any]] = [
        (nodes[-1], loss.output_index, seed, None)  # the youngest node is the loss's
    ]
    with no_grad():
        while waiting:
            node, output, adjoint, onward = waiting.pop()
            if (node.sequence, output) == source:
                values = np.zeros(leaf.shape, leaf.dtype) if adjoint is None else adjoint.copy()
                found_paths.append(Path(*_unrolled(onward), values, name))
                continue
            results = _pull(node, output, adjoint)
            for position in reversed(range(len(node.edges))):  # reversed: the last one put in is followed first
                edge = node.edges[position]
                if edge is not None and ((edge[0].sequence, edge[1]) == source or counts.get(edge[0].sequence)):
                    waiting.append((*edge, results[position], (node, position, onward)))
    return found_paths


def _pull(node: Context, output: int, adjoint: Array | None) -> list[Array | None]:
    """What the adjoint of one output alone gives each input; an adjoint of None stands for zero."""
    if adjoint is None:
        return [None] * len(node.edges)
    adjoints: list[Array | None] = [None] * len(node.outputs)
    adjoints[output] = adjoint
    return run_backward(node, adjoints)


def _unrolled(way: Any) -> tuple[tuple[Context, ...], tuple[int, ...]]:
    nodes, inputs = [], []
    while way is not None:
        node, position, way = way
        nodes.append(node)
        inputs.append(position)
    return tuple(nodes), tuple(inputs)


def independent_branches(output: Tensor) -> list[list[Context]]:
    """Groups of nodes such that no node of one depends on a node of another: they could run at the same time.

    The graph without its leaves is cut at each node that every other one comes before or after (a shared beginning,
    the final sum); what then falls apart are branches, and each branch is cut in the same way. Where branches part
    and meet several times in a row, the place with the most of them is reported. A graph that cannot be cut is one
    group. Groups and their nodes are in the order of computation. Time: nodes times the depth of nested branches.
    Errors: GraphError when the graph was freed.
    """
    nodes = [node for node in ancestors([output]) if node.function is not AccumulateGrad]
    if not nodes:
        return []
    parts = [nodes]  # grows: a part that was cut is followed, later on, by its branches
    places: list[list[range]] = []  # for each part, the places where it falls apart, as ranges of parts
    for index, part in enumerate(parts):
        places.append([])
        for branches in _cut(part):
            places[index].append(range(len(parts), len(parts) + len(branches)))
            parts.extend(branches)
        if places[index]:
            parts[index] = []  # its branches stand for it
    groups: list[list[list[Context]]] = [[part] for part in parts]
    for index in reversed(range(len(parts))):
        if places[index]:
            groups[index] = max([[group for i in place for group in groups[i]] for place in places[index]], key=len)
            for place in places[index]:
                for i in place:
                    groups[i] = []
    return sorted(groups[0], key=lambda group: group[0].sequence)


def _cut(part: Sequence[Context]) -> list[list[list[Context]]]:
    """The connected `part`, oldest first, without the nodes that all others come before or after.

    One item for each stretch between such nodes that falls apart: its branches.
    """
    members = {node.sequence for node in part}
    inputs = {node.sequence: {e[0].sequence for e in node.edges if e is not None} & members for node in part}
    users: dict[int, set[int]] = {sequence: set() for sequence in members}
    for sequence, earlier in inputs.items():
        for other in earlier:
            users[other].add(sequence)
    order = [node.sequence for node in part]
    # All older nodes lead to a node if it is the only one of them and itself without a user among them; and reversed.
    necks = _only_ends(order, inputs) & _only_ends(order[::-1], users)
    if not necks:
        return []
    stretches: list[list[Context]] = [[]]
    for node in part:
        if node.sequence in necks:
            stretches.append([])
        else:
            stretches[-1].append(node)
    cut = [_components(stretch, inputs) for stretch in stretches if len(stretch) > 1]
    return [branches for branches in cut if len(branches) > 1]


def _only_ends(order: list[int], inputs: dict[int, set[int]]) -> set[int]:
    """The nodes that depend on all nodes before them in `order`."""
    ends: set[int] = set()
    found = set()
    for sequence in order:
        ends -= inputs[sequence]
        ends.add(sequence)
        if len(ends) == 1:
            found.add(sequence)
    return found


def _components(nodes: list[Context], inputs: dict[int, set[int]]) -> list[list[Context]]:
    """Nodes, oldest first, in groups that no edge joins."""
    parent = {node.sequence: node.sequence for node in nodes}

    def root(sequence: int) -> int:
        while parent[sequence] != sequence:
            parent[sequence] = sequence = parent[parent[sequence]]
        return sequence

    for sequence in parent:
        for other in inputs[sequence]:
            if other in parent:
                parent[root(sequence)] = root(other)
    groups: dict[int, list[Context]] = {}
    for node in nodes:
        groups.setdefault(root(node.sequence), []).append(node)
    return list(groups.values())
