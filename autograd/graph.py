"""Reverse traversal: `backward` into leaves and `grad` into chosen tensors."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence
from heapq import heappop, heappush
from threading import get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import GraphError, InputError
from .mode import switch, take_over
from .node import FREED, Edge, Node
from .rules import as_adjoint, call_backward, run_tensor_hook
from .tensor import Tensor

Seed = Tensor | npt.ArrayLike | None
Key = tuple[int, int]
"""The origin of a Tensor: (sequence of its node, output index)."""


def backward(
    outputs: Sequence[Tensor],
    seeds: Sequence[Seed] | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add to `.grad` of all leaves the gradient of sum(seed * output), as `Tensor.backward` does.

    The graph is freed unless `retain_graph` (by default as `create_graph`). With `create_graph` the gradients are
    part of a graph themselves.
    """
    _traverse(outputs, seeds or (None,) * len(outputs), retain_graph, create_graph)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    seeds: Sequence[Seed] | None = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """The gradients of sum(seed * output) with respect to `inputs` (leaves or not), as Tensors; `.grad` stays.

    The graph is freed unless `retain_graph` (by default as `create_graph`). With `create_graph` the gradients are
    part of a graph themselves.
    Errors: InputError for an input that does not require a gradient; GraphError for one that the outputs do not depend
    on. With `allow_unused` its gradient is None instead.
    """
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    for tensor in inputs:
        if not tensor.requires_grad:
            raise InputError("grad", "every input requires a gradient", repr(tensor), "Set requires_grad=True on it.")
    keys = [origin(tensor) for tensor in inputs]
    wanted: dict[Key, Any] = dict.fromkeys(keys)
    needed = {node.sequence for node in between(outputs, wanted)} if wanted else set()
    _traverse(outputs, seeds or (None,) * len(outputs), retain_graph, create_graph, wanted, needed)
    for position, key in enumerate(keys):
        if wanted[key] is None and not allow_unused:
            raise GraphError(
                f"grad: the outputs do not depend on input {position} (shape {inputs[position].shape}). "
                "Pass allow_unused=True to receive None for it."
            )
    if create_graph:
        return _apart([wanted[key] for key in keys], seeds or ())
    # Copies: one adjoint may have reached several inputs, and the caller may write to a gradient.
    return tuple([None if (found := wanted[key]) is None else Tensor(np.array(found, order="C")) for key in keys])


def _apart(found: Sequence[Any], seeds: Sequence[Seed]) -> tuple[Any, ...]:
    """The gradients, of which each is a Tensor of its own."""
    seen = {id(seed) for seed in seeds}
    apart = []
    for each in found:
        if id(each) in seen and each is not None:
            each = each.clone()
        seen.add(id(each))
        apart.append(each)
    return tuple(apart)


def origin(tensor: Tensor) -> Key:
    """The origin of a Tensor that requires a gradient."""
    node, index = tensor._edge  # type: ignore[misc]
    return node.sequence, index


def ancestors(outputs: Sequence[Tensor], *, since: float = -math.inf) -> list[Node]:
    """The nodes made at sequence `since` or later that the outputs depend on, oldest first (leaves before all)."""
    found: dict[int, Node] = {}
    waiting = [output._edge[0] for output in outputs if output._edge is not None]
    while waiting:
        node = waiting.pop()
        if node.sequence >= since and node.sequence not in found:
            if node.freed:
                raise GraphError(FREED.format(node.name()))
            found[node.sequence] = node
            waiting.extend([parent for parent, _ in node.parents()])
    return [found[sequence] for sequence in sorted(found)]


def between(outputs: Sequence[Tensor], sources: Collection[Key]) -> list[Node]:
    """The nodes on the paths from `sources` to the outputs, oldest first."""
    reached = set(sources)
    nodes = []
    for node in ancestors(outputs, since=min(reached)[0]):  # an older node cannot depend on a source
        if any([(parent.sequence, index) in reached for parent, index in node.parents()]):
            reached.update([(node.sequence, index) for index in range(len(node.outputs))])
            nodes.append(node)
    return nodes


def _seed(output: Tensor, seed: Seed, create_graph: bool) -> Any:
    if seed is None:
        if output.size != 1:
            raise InputError(
                "backward",
                "a seed is needed for a non-scalar result",
                f"shape {output.shape}",
                "Pass backward(gradient=...) or reduce it to a scalar.",
            )
        seed = np.ones(output.shape, output.dtype)
    elif isinstance(seed, Tensor):
        if not create_graph:
            seed = np.array(seed.data, output.dtype, order="C")
        elif seed.dtype != output.dtype:
            seed = seed.astype(output.dtype)
    else:
        seed = np.array(seed, output.dtype, order="C")
    if seed.shape != output.shape:
        raise InputError(
            "backward",
            f"the seed must have the result's shape {output.shape}",
            f"shape {seed.shape}",
            "Pass a seed of that shape.",
        )
    return Tensor(seed) if create_graph and not isinstance(seed, Tensor) else seed


def _traverse(
    outputs: Sequence[Tensor],
    seeds: Sequence[Seed],
    retain_graph: bool | None,
    create_graph: bool,
    wanted: dict[Key, Any] | None = None,
    needed: Container[int] = (),
) -> None:
    """Visit nodes youngest first, a topological order; with `wanted` only `needed` ones, and no leaf is touched.

    Adjoints flow as arrays; as Tensors while a graph of the gradient is made.
    """
    if get_ident() != switch.thread:
        take_over("backward")
    keep = create_graph if retain_graph is None else retain_graph
    pending: dict[int, tuple[Node, list[Any]]] = {}
    heap: list[int] = []
    recording = switch.enabled
    switch.enabled = create_graph
    try:
        for output, seed in zip(outputs, seeds, strict=True):
            if output._edge is None:
                raise InputError(
                    "backward",
                    "the result must depend on a tensor that requires a gradient",
                    repr(output),
                    "Set requires_grad=True on a leaf, and do not compute under no_grad().",
                )
            _receive(pending, heap, output._edge, _seed(output, seed, create_graph))
        while heap:
            node, adjoints = pending.pop(-heappop(heap))
            if node._hooks is not None:
                _run_tensor_hooks(node, adjoints)
            if wanted is not None:
                for index, adjoint in enumerate(adjoints):
                    if (node.sequence, index) in wanted:
                        wanted[node.sequence, index] = adjoint
                if node.sequence not in needed:
                    continue
            elif node.function is None:
                leaf = node.variable
                if leaf is not None and leaf.requires_grad:
                    _accumulate(leaf, adjoints[0])
                continue
            on_arrays = node.function._on_arrays
            results = call_backward(node, adjoints, on_arrays)
            for position, edge in enumerate(node.edges):
                result = results[position]
                if edge and result is not None:
                    _receive(pending, heap, edge, as_adjoint(node, position, result, on_arrays))
            if not keep:
                node.free()
    finally:
        switch.enabled = recording


def _receive(pending: dict[int, tuple[Node, list[Any]]], heap: list[int], edge: Edge, adjoint: Any) -> None:
    """Add an adjoint to those pending for the node that the edge leads to: the sum over fan-out."""
    node, index = edge
    sequence = node.sequence
    if sequence in pending:
        adjoints = pending[sequence][1]
        present = adjoints[index]
        if present is not None:
            adjoint = present + adjoint
            if type(adjoint) is not Tensor:
                adjoint = np.asarray(adjoint)  # the sum of 0-d arrays is a number
        adjoints[index] = adjoint
        return
    if node.freed:
        raise GraphError(FREED.format(node.name()))
    adjoints = [None] * len(node.outputs)
    adjoints[index] = adjoint
    pending[sequence] = (node, adjoints)
    heappush(heap, -sequence)


def _run_tensor_hooks(node: Node, adjoints: list[Any]) -> None:
    """Run the hooks on the node's outputs, which may replace adjoints, and keep retained gradients."""
    hooks = node.hooks
    for index, adjoint in enumerate(adjoints):
        if adjoint is None:
            continue
        if index in hooks.tensor:
            adjoints[index] = run_tensor_hook(node, index, adjoint)
        if index in hooks.retained:
            _accumulate(hooks.retained[index](), adjoints[index])


def _accumulate(tensor: Tensor | None, adjoint: Any) -> None:
    """Add to `.grad`. A copy even at first: one adjoint may have reached several leaves."""
    if tensor is None or adjoint is None:  # the Tensor no longer exists
        return
    if isinstance(adjoint, Tensor):
        tensor.grad = adjoint.clone() if tensor.grad is None else tensor.grad + adjoint
    elif tensor.grad is None:
        tensor.grad = Tensor(np.array(adjoint, order="C"))
    else:
        tensor.grad = Tensor(np.asarray(tensor.grad.data + adjoint))
