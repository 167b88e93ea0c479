"""The memory that nodes keep for backward: arrays and Tensors among their attributes, each counted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..node import Node
from ..tensor import Array, Tensor


def find_saved(node: Node) -> tuple[dict[int, Array], list[Node]]:
    """Find the arrays that own the memory of one node, by id, and the nodes that made its Tensors."""
    memory: dict[int, Array] = {}
    makers = []
    for attribute in (node._saved, *vars(node).values()):
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


def saved_bytes(nodes: Sequence[Node], *, since: int = 0) -> int:
    """Distinct memory [B] of `nodes` and of all nodes behind them, of sequence `since` or later (leaves: never).

    Behind a node are the nodes of its inputs and of inner graphs. Inner nodes are younger than the combined node that
    keeps them, inputs are older. So `since=node.sequence` counts a node alone with its inner graph.
    """
    memory: dict[int, Array] = {}
    seen: dict[int, Node] = {}
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.sequence >= since and node.sequence not in seen:
            seen[node.sequence] = node
            arrays, makers = find_saved(node)
            memory |= arrays
            waiting += [parent for parent, _ in node.parents()] + makers
    return sum(array.nbytes for array in memory.values())
