"""The memory that nodes keep for backward: arrays and Tensors among their attributes, each memory counted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..node import Node
from ..tensor import Array, Tensor


def kept_by(node: Node) -> tuple[dict[int, Array], list[Node]]:
    """What one node keeps itself: the arrays that own its memory, by id, and the nodes that made its Tensors."""
    memory: dict[int, Array] = {}
    makers = []
    for attribute in vars(node).values():
        for value in attribute if isinstance(attribute, tuple | list) else (attribute,):
            if isinstance(value, Tensor):
                if value.grad_fn is not None:
                    makers.append(value.grad_fn)
                value = value.data
            if isinstance(value, np.ndarray):
                while isinstance(value.base, np.ndarray):
                    value = value.base
                memory[id(value)] = value
    return memory, makers


def bytes_kept(nodes: Sequence[Node], *, since: int = 0) -> int:
    """Distinct memory [B] kept by `nodes` and by all that they reach, of sequence `since` or later (leaves: never).

    What a node reaches are its inputs' nodes and those of inner graphs. Inner nodes are younger than the combined node
    that keeps them and inputs are older, so that with `since=node.sequence` a node counts alone with its inner graph.
    """
    memory: dict[int, Array] = {}
    seen: dict[int, Node] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.sequence >= since and node.sequence not in seen:
            seen[node.sequence] = node
            arrays, makers = kept_by(node)
            memory |= arrays
            waiting += [parent for parent, _ in node.parents()] + makers
    return sum(array.nbytes for array in memory.values())
