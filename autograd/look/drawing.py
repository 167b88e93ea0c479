"""The content of a drawing of a graph in any form: boxes, arrows, and their labels.

Arrows point in the direction of the computation, from leaves to the result, and carry dtype and shape.
Of five or more repetitions of the same nodes (the steps of a rollout) the first and the last are shown. One box
between them stands for the others.
"""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from ..errors import InputError
from ..graph import ancestors, origin
from ..node import Node
from ..tensor import Tensor
from .folding import Fold, find_folds

Names = Mapping[Tensor, str]
Kind = Literal["leaf", "node", "fold", "result", "reference"]

COLORS = {"leaf": "#dcefd9", "node": "#dde6f3", "fold": "#eceff4", "result": "#f6e3c5", "reference": "#ffffff"}

_LISTED = 6  # different names that a fold's box lists
_WRAP = 44  # characters in a line of details


class NodeCost(Protocol):
    """The cost of one node."""

    @property
    def forward(self) -> float:
        """[s]"""

    @property
    def backward(self) -> float | None:
        """[s], None before a backward."""

    @property
    def bytes_saved(self) -> int:
        """[B]"""


class Profile(Protocol):
    """A source of the costs of nodes, such as the object of `with profile() as p`."""

    def of(self, node: Node, /) -> NodeCost | None:
        """The cost of a node, None without a measurement."""


class Box(NamedTuple):
    """A leaf, a Function's node, a fold of repeated steps, the result, or (in pictures) a reference to one of these."""

    kind: Kind
    label: str
    detail: str = ""
    """For a fold: the names of the nodes in one step; for a reference to several: their numbers."""
    cost: str = ""
    """Time forward and backward and bytes saved, if they were measured; for a fold, the sum over its hidden nodes."""
    like: range | None = None
    """For a fold: the positions of the boxes of the repeated step."""


class Arrow(NamedTuple):
    """An arrow from one box to another, by their positions in `Drawing.boxes`; the label is the dtype and shape."""

    start: int
    end: int
    label: str


class Drawing(NamedTuple):
    """Boxes in the order of computation (leaves first, the result last) and their arrows."""

    boxes: list[Box]
    arrows: list[Arrow]


def lines_of(box: Box) -> list[str]:
    """The lines of text in a box."""
    return [line for line in (box.label, *textwrap.wrap(box.detail, _WRAP), box.cost) if line]


def read_graph(
    output: Tensor, *, names: Names | None = None, fold: bool = True, profile: Profile | None = None
) -> Drawing:
    """Read the graph of `output`, for a drawing in any form.

    `names` labels leaves (else `leaf 1`, `leaf 2`, ...) and results of Functions; a named result is never folded.
    `fold=False` shows every node. `profile` adds the cost of each node.
    Errors: InputError for a result without a graph, GraphError for one that a backward freed.
    """
    if not output.requires_grad:
        remedy = "Set requires_grad=True on a leaf, and do not compute under no_grad()."
        raise InputError("draw", "the result must have a graph", repr(output), remedy)
    given: dict[int, list[str]] = {}
    for tensor, name in (names or {}).items():
        if tensor.requires_grad:
            given.setdefault(origin(tensor)[0], []).append(" ".join(name.split()))
    nodes = ancestors([output])
    leaves = [node for node in nodes if node.is_accumulator][::-1]  # in the order of their first use
    inner = nodes[len(leaves) :]
    folds = _folds(leaves, inner, given) if fold else []
    boxes, box_of = _leaf_boxes(leaves, inner, folds, given)
    _add_node_boxes(boxes, box_of, inner, folds, given, profile)
    arrows = _arrows(inner, box_of, {number for number, box in enumerate(boxes) if box.kind == "fold"})
    sequence, index = origin(output)
    last = next(node for node in nodes if node.sequence == sequence)
    arrows.append(Arrow(box_of[sequence], len(boxes), _flow(last.outputs, index)))
    return Drawing([*boxes, Box("result", "result")], arrows)


def _folds(leaves: Sequence[Node], inner: Sequence[Node], given: Mapping[int, list[str]]) -> list[Fold]:
    nodes = [*leaves, *inner]
    firsts = itertools.accumulate([len(node.outputs) for node in nodes], initial=0)
    first_value = {node.sequence: first for node, first in zip(nodes, firsts, strict=False)}
    keys = [(node.name(), node.outputs, _input_kinds(node)) for node in inner]
    named = [position for position, node in enumerate(inner) if node.sequence in given]
    inputs = [[first_value[edge[0].sequence] + edge[1] if edge else -1 for edge in node.edges] for node in inner]
    return find_folds(keys, [first_value[node.sequence] for node in inner], inputs, named)


def _input_kinds(node: Node) -> tuple[Any, ...]:
    """Shape and dtype of each input, None where no gradient flows."""
    return tuple([edge[0].outputs[edge[1]] if edge else None for edge in node.edges])


def _leaf_boxes(
    leaves: Sequence[Node], inner: Sequence[Node], folds: Sequence[Fold], given: Mapping[int, list[str]]
) -> tuple[list[Box], dict[int, int]]:
    """Make a box for each leaf, or one for like leaves of hidden steps; and map leaves to their boxes."""
    fold_at = {position: number for number, each in enumerate(folds) for position in each.hidden}
    users: dict[int, set[int | None]] = {leaf.sequence: set() for leaf in leaves}
    for position, node in enumerate(inner):
        for parent, _ in node.parents():
            if parent.sequence in users:
                users[parent.sequence].add(fold_at.get(position))
    together: dict[Any, list[str]] = {}
    groups = []
    for number, leaf in enumerate(leaves, 1):
        used_in = users[leaf.sequence]
        hidden = len(used_in) == 1 and None not in used_in
        groups.append((min(used_in - {None}), leaf.outputs) if hidden else number)  # type: ignore[type-var]
        together.setdefault(groups[-1], []).append(", ".join(given.get(leaf.sequence, [f"leaf {number}"])))
    boxes = [
        Box("leaf", like[0] if len(like) == 1 else f"{like[0]} … {like[-1]} ({len(like)} leaves)")
        for like in together.values()
    ]
    numbers = {group: number for number, group in enumerate(together)}
    return boxes, {leaf.sequence: numbers[group] for leaf, group in zip(leaves, groups, strict=True)}


def _add_node_boxes(
    boxes: list[Box],
    box_of: dict[int, int],
    inner: Sequence[Node],
    folds: Sequence[Fold],
    given: Mapping[int, list[str]],
    profile: Profile | None,
) -> None:
    folded = {fold.hidden.start: fold for fold in folds}
    position = 0
    while position < len(inner):
        node, fold = inner[position], folded.get(position)
        if fold is None:
            together = [node]
            results = given.get(node.sequence)
            label = node.name() + (": " + ", ".join(results) if results else "")
            boxes.append(Box("node", label, cost=_cost(together, profile)))
        else:
            together = [inner[hidden] for hidden in fold.hidden]
            like = range(box_of[inner[fold.start].sequence], len(boxes))
            boxes.append(_fold_box(together, fold, like, profile))
        box_of |= dict.fromkeys([each.sequence for each in together], len(boxes) - 1)
        position += len(together)


def _fold_box(hidden: Sequence[Node], fold: Fold, like: range, profile: Profile | None) -> Box:
    counts = Counter([node.name() for node in hidden[: fold.period]])
    listed = [name if count == 1 else f"{name} ×{count}" for name, count in counts.items()]
    if len(listed) > _LISTED:
        listed[_LISTED - 1 :] = [f"{len(listed) - _LISTED + 1} others"]
    return Box("fold", f"× {fold.steps - 2} more", ", ".join(listed), _cost(hidden, profile), like)


def _arrows(inner: Iterable[Node], box_of: Mapping[int, int], folds: set[int]) -> list[Arrow]:
    """Make an arrow for each input of a shown node; those from or to a fold are counted, those inside it left out."""
    arrows: list[Arrow] = []
    flows: dict[Arrow, set[tuple[int, int]]] = {}  # different values along an arrow of a fold
    for node in inner:
        for upstream, index in node.parents():
            arrow = Arrow(box_of[upstream.sequence], box_of[node.sequence], _flow(upstream.outputs, index))
            counted = arrow.start in folds or arrow.end in folds
            if arrow.start != arrow.end and not (counted and arrow in flows):
                arrows.append(arrow)
            if counted:
                flows.setdefault(arrow, set()).add((upstream.sequence, index))
    counts = [len(flows.get(arrow, ())) for arrow in arrows]
    return [
        arrow._replace(label=f"{count} of {arrow.label}") if count > 1 else arrow
        for arrow, count in zip(arrows, counts, strict=True)
    ]


def _flow(outputs: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...], index: int) -> str:
    shape, dtype = outputs[index]
    which = f"#{index} " if len(outputs) > 1 else ""  # which output, where there are several
    return f"{which}{dtype.kind}{8 * dtype.itemsize} {'×'.join(map(str, shape)) or 'scalar'}"


def _cost(nodes: Iterable[Node], profile: Profile | None) -> str:
    """Text such as '12 µs + 20 µs, 1.2 kB': forward, backward if there was one, and memory of the measured nodes."""
    costs = [cost for cost in (profile.of(node) for node in nodes) if cost is not None] if profile is not None else []
    if not costs:
        return ""
    times = [sum(cost.forward for cost in costs)]
    if any(cost.backward is not None for cost in costs):
        times.append(sum(cost.backward or 0.0 for cost in costs))
    memory = _short(sum(cost.bytes_saved for cost in costs), ("B", "kB", "MB", "GB", "TB"))
    return " + ".join([_short(1e9 * time, ("ns", "µs", "ms", "s")) for time in times]) + f", {memory}"


def _short(value: float, units: Sequence[str]) -> str:
    """Two or three digits and one of the units, each a thousand times the one before it."""
    power = 0
    while value >= 999.5 and power < len(units) - 1:
        value, power = value / 1000, power + 1
    digits = 0 if value >= 9.95 or power == 0 else 1
    return f"{value:.{digits}f} {units[power]}"
