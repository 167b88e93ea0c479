"""Parts of the graph of a result: paths from a leaf to the loss, and branches that are independent of each other.

The gradient is a sum over paths of the product of the local derivatives along each (Bauer's formula: F. L. Bauer,
"Computational graphs and rounding error", SIAM J. Numer. Anal. 11, 1974; A. Griewank and A. Walther, "Evaluating
Derivatives", 2nd ed., SIAM 2008). Reverse mode forms the sum without listing the paths. Their number may grow
exponentially with the length of the graph.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..graph import ancestors, between, origin
from ..mode import no_grad
from ..node import Node
from ..rules import run_backward
from ..tensor import Array, Tensor

_UNCOUNTABLE = 10**300  # counts stop here, so that a long graph does not store numbers of a million digits
_BLOCK = 4096  # nodes whose descendants are found at the same time: 512 bytes for each node of the graph
_SHOWN = 6  # nodes at each end of a long path that str() names


class Path(NamedTuple):
    """A path from a leaf to the loss."""

    nodes: tuple[Node, ...]
    """Nodes on the path, from the leaf to the loss."""
    inputs: tuple[int, ...]
    """For each node, the number of the input through which the path enters."""
    contribution: Array
    """Product of the local derivatives: this path's term of d loss / d leaf, of the leaf's shape."""
    name: str
    """Name of the leaf in `str`."""

    def __str__(self) -> str:
        names = [node.name() for node in self.nodes]
        if len(names) > 2 * _SHOWN + 1:
            names[_SHOWN:-_SHOWN] = [f"... {len(names) - 2 * _SHOWN} nodes ..."]
        value = np.array2string(self.contribution, separator=", ", threshold=20)
        return f"{' -> '.join([self.name, *names])}: {value}"


def paths(loss: Tensor, leaf: Tensor, *, limit: int = 1000, name: str = "leaf") -> list[Path]:
    """All paths from `leaf` to the scalar `loss`, with their contributions to the gradient, whose sum is the gradient.

    A Tensor that one node uses twice has two paths through it. A path contributes zero if a Function on it gave no
    adjoint. `leaf` may also be an intermediate result; `name` stands for it in `str` of a path. The graph is kept and
    `.grad` stays.
    Errors: InputError if `loss` is not a scalar that requires a gradient, if `leaf` does not require one, and, before
    any path is followed, if there are more than `limit`; GraphError if the graph was freed.
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
        arriving = [(parent.sequence, index) for parent, index in node.parents()]
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
    # Paths to follow: a node, the output that was reached and its adjoint, and the rest of the path up to the loss.
    waiting: list[tuple[Node, int, Array | None, Any]] = [
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
            for position in reversed(range(len(node.edges))):  # reversed: the last one added is followed first
                edge = node.edges[position]
                if edge and ((edge[0].sequence, edge[1]) == source or counts.get(edge[0].sequence)):
                    waiting.append((*edge, results[position], (node, position, onward)))
    return found_paths


def _pull(node: Node, output: int, adjoint: Array | None) -> list[Array | None]:
    """The adjoint of each input from that of one output alone; None stands for zero."""
    if adjoint is None:
        return [None] * len(node.edges)
    adjoints: list[Array | None] = [None] * len(node.outputs)
    adjoints[output] = adjoint
    return run_backward(node, adjoints)


def _unrolled(way: Any) -> tuple[tuple[Node, ...], tuple[int, ...]]:
    nodes, inputs = [], []
    while way is not None:
        node, position, way = way
        nodes.append(node)
        inputs.append(position)
    return tuple(nodes), tuple(inputs)


def independent_branches(output: Tensor) -> list[list[Node]]:
    """Groups of nodes such that no node of one depends on a node of another: they could run at the same time.

    The graph without its leaves is cut at each node that every other one comes before or after (a shared beginning,
    the final sum). The pieces between cuts are branches, and each branch is cut in the same way. Where branches
    separate and join several times in a row, the place with the most of them is reported. A graph that cannot be cut
    is one group: branches that exchange results are not separated. Groups and their nodes are in the order of
    computation. Time: near linear, plus an operation on a bit for each pair of a node and an edge between the same two
    cuts of the whole graph (10,000 nodes of a sum: 0.3 s).
    Errors: GraphError if the graph was freed.
    """
    nodes = {node.sequence: node for node in ancestors([output]) if not node.is_accumulator}
    if not nodes:
        return []
    parts = [(_whole(nodes), 0)]  # with the number of nodes outside that are strangers to it; grows by its branches
    places: list[list[range]] = []  # for each part, its places with several branches, as ranges of parts
    for part, strangers in parts:
        places.append([])
        for branches in part.places() if part.strangers == strangers else []:
            places[-1].append(range(len(parts), len(parts) + len(branches)))
            together = strangers + sum([branch.size for branch in branches])
            parts.extend([(branch, together - branch.size) for branch in branches])
    most = [1] * len(parts)
    for index in reversed(range(len(parts))):
        most[index] = max([sum([most[branch] for branch in place]) for place in places[index]], default=1)
    groups, waiting = [], [0]
    while waiting:
        index = waiting.pop()
        if places[index]:
            waiting.extend(max(places[index], key=lambda place: sum([most[branch] for branch in place])))
        else:
            groups.append([nodes[sequence] for sequence in sorted(parts[index][0].members())])
    return sorted(groups, key=lambda group: group[0].sequence)


@dataclass(slots=True)
class _Part:
    """Nodes that edges join; `cuts` are those of them with the fewest strangers.

    Strangers of a node come neither before nor after it. All nodes of a part have the same strangers outside it. If
    the cuts have no other strangers, every other node of the part comes before or after each cut.
    """

    strangers: int
    cuts: list[int]
    inner: list[_Part]
    """The rest of the part, without the cuts."""
    size: int = 0

    def places(self) -> list[list[_Part]]:
        """Inner parts that lie between the same cuts, if there are several."""
        between: dict[int, list[_Part]] = {}
        cuts = sorted(self.cuts)
        for part in self.inner:
            between.setdefault(bisect(cuts, part.cuts[0]), []).append(part)
        return [between[place] for place in sorted(between) if len(between[place]) > 1]

    def members(self) -> list[int]:
        found, waiting = [], [self]
        while waiting:
            part = waiting.pop()
            found += part.cuts
            waiting += part.inner
        return found


def _whole(nodes: dict[int, Node]) -> _Part:
    order = list(nodes)
    inputs = {
        sequence: {parent.sequence for parent, _ in node.parents()} & nodes.keys() for sequence, node in nodes.items()
    }
    # A node depends on all older ones if it alone, of these and itself, has no user among them; the same in reverse.
    cuts = _only_ends(order, inputs) & _only_ends(order[::-1], _users(inputs))
    inner = []
    for is_cut, stretch in itertools.groupby(order, cuts.__contains__):
        if not is_cut:
            members = set(stretch)
            inner += _parts({sequence: inputs[sequence] & members for sequence in sorted(members)})
    return _Part(0, list(cuts), inner)


def _users(inputs: dict[int, set[int]]) -> dict[int, set[int]]:
    users: dict[int, set[int]] = {sequence: set() for sequence in inputs}
    for sequence, earlier in inputs.items():
        for other in earlier:
            users[other].add(sequence)
    return users


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


def _parts(inputs: dict[int, set[int]]) -> list[_Part]:
    """The parts of a graph whose nodes are the keys of `inputs`, oldest first.

    Nodes are added from the most strangers to the fewest and joined with their neighbours. An edge is left out if a
    longer path has the same ends: it could pass a cut and join the nodes before the cut with those after it.
    """
    order, users = list(inputs), _users(inputs)
    before, implied = _ancestry(order, inputs)
    after, _ = _ancestry(order[::-1], users)
    strangers = {sequence: len(order) - 1 - before[sequence] - after[sequence] for sequence in order}
    parent = {sequence: sequence for sequence in order}

    def root(sequence: int) -> int:
        while parent[sequence] != sequence:
            parent[sequence] = sequence = parent[parent[sequence]]
        return sequence

    parts: dict[int, _Part] = {}  # by root
    order.sort(key=strangers.__getitem__, reverse=True)
    for count, level in itertools.groupby(order, strangers.__getitem__):
        cuts = list(level)
        edges = {(earlier, cut) for cut in cuts for earlier in inputs[cut]}
        edges.update([(cut, later) for cut in cuts for later in users[cut]])
        edges = {(a, b) for a, b in edges - implied if strangers[a] >= count and strangers[b] >= count}
        inner = {root(end) for edge in edges for end in edge if strangers[end] > count}
        found = [(end, parts.pop(end)) for end in inner]
        for a, b in edges:
            parent[root(a)] = root(b)
        for cut in cuts:
            part = parts.setdefault(root(cut), _Part(count, [], []))
            part.cuts.append(cut)
            part.size += 1
        for end, smaller in found:
            part = parts[root(end)]
            part.inner.append(smaller)
            part.size += smaller.size
    return list(parts.values())


def _ancestry(order: list[int], inputs: dict[int, set[int]]) -> tuple[dict[int, int], set[tuple[int, int]]]:
    """The number of ancestors of each node, and the edges whose ends a longer path joins, too.

    The relation takes a bit for each pair of nodes, in the digits of integers. It is formed for _BLOCK nodes at a time,
    so that memory stays linear.
    """
    place = {sequence: index for index, sequence in enumerate(order)}
    counts = dict.fromkeys(order, 0)
    implied = set()
    for start in range(0, len(order), _BLOCK):
        reached: dict[int, int] = {}
        for sequence in order[start:]:
            direct = indirect = 0
            for earlier in inputs[sequence]:
                indirect |= reached.get(earlier, 0)
                if 0 <= place[earlier] - start < _BLOCK:
                    direct |= 1 << place[earlier] - start
            reached[sequence] = direct | indirect
            counts[sequence] += reached[sequence].bit_count()
            if direct & indirect:
                within = [earlier for earlier in inputs[sequence] if place[earlier] >= start]
                implied.update([(a, sequence) for a in within if indirect >> place[a] - start & 1])
    return counts, implied
