"""Reverse traversal: `backward` into leaves and `grad` into chosen tensors."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import GraphError, InputError
from .function import AccumulateGrad, Context, leaf_node
from .mode import switch
from .tensor import Tensor

Seed = Tensor | npt.ArrayLike | None
Adjoints = list[Tensor | None]
Key = tuple[int, int]
"""Where a Tensor comes from: (sequence of its node, output index)."""

_FREED = (
    "{}: its saved state was freed by an earlier backward through it. "
    "Pass retain_graph=True to that backward, or run forward again."
)


def backward(outputs: Sequence[Tensor], seeds: Sequence[Seed] | None = None, *, retain_graph: bool = False) -> None:
    """Add to `.grad` of all leaves the gradient of sum(seed * output). See `Tensor.backward`."""
    _traverse(outputs, seeds or (None,) * len(outputs), retain_graph)


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    seeds: Sequence[Seed] | None = None,
    *,
    retain_graph: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of sum(seed * output) with respect to `inputs` (leaves or not); no `.grad` is touched.

    None for an input that the outputs do not depend on.
    """
    outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    for tensor in inputs:
        if not tensor.requires_grad:
            raise InputError("grad", "every input requires a gradient", repr(tensor), "Set requires_grad=True on it.")
    keys = [origin(tensor) for tensor in inputs]
    wanted: dict[Key, Tensor | None] = dict.fromkeys(keys)
    needed = {node.sequence for node in between(outputs, wanted)} if wanted else set()
    _traverse(outputs, seeds or (None,) * len(outputs), retain_graph, wanted, needed)
    # Copies: one adjoint may have reached several inputs, and who asks for a gradient may write to it.
    return tuple([None if (found := wanted[key]) is None else Tensor(found.data.copy()) for key in keys])


def origin(tensor: Tensor) -> Key:
    """Where a Tensor that requires a gradient comes from."""
    return _node(tensor).sequence, tensor.output_index


def ancestors(outputs: Sequence[Tensor], *, since: float = -math.inf) -> list[Context]:
    """The nodes made at sequence `since` or later that the outputs depend on, oldest first (leaves before all)."""
    found: dict[int, Context] = {}
    waiting = [_node(output) for output in outputs if output.requires_grad]
    while waiting:
        node = waiting.pop()
        if node.sequence >= since and node.sequence not in found:
            if node.freed:
                raise GraphError(_FREED.format(node.name()))
            found[node.sequence] = node
            waiting.extend([edge[0] for edge in node.edges if edge is not None])
    return [found[sequence] for sequence in sorted(found)]


def between(outputs: Sequence[Tensor], sources: Collection[Key]) -> list[Context]:
    """The nodes on the paths from `sources` to the outputs, oldest first."""
    reached = set(sources)
    nodes = []
    for node in ancestors(outputs, since=min(reached)[0]):  # an older node cannot depend on a source
        if any([edge is not None and (edge[0].sequence, edge[1]) in reached for edge in node.edges]):
            reached.update([(node.sequence, index) for index in range(len(node.outputs))])
            nodes.append(node)
    return nodes


def _node(tensor: Tensor) -> Context:
    return leaf_node(tensor) if tensor.grad_fn is None else tensor.grad_fn


def _seed(output: Tensor, seed: Seed) -> Tensor:
    if seed is None:
        if output.size != 1:
            raise InputError(
                "backward",
                "a seed is needed for a non-scalar result",
                f"shape {output.shape}",
                "Pass backward(gradient=...) or reduce it to a scalar.",
            )
        return Tensor(np.ones(output.shape, output.dtype))
    array = np.array(seed.data if isinstance(seed, Tensor) else seed, output.dtype, order="C")
    if array.shape != output.shape:
        raise InputError(
            "backward",
            f"the seed must have the result's shape {output.shape}",
            f"shape {array.shape}",
            "Pass a seed of that shape.",
        )
    return Tensor(array)


def _traverse(
    outputs: Sequence[Tensor],
    seeds: Sequence[Seed],
    retain_graph: bool,
    wanted: dict[Key, Tensor | None] | None = None,
    needed: Container[int] = (),
) -> None:
    """Visit nodes youngest first, a topological order; with `wanted` only `needed` ones, and no leaf is touched."""
    pending: dict[int, tuple[Context, Adjoints]] = {}
    heap: list[int] = []
    for output, seed in zip(outputs, seeds, strict=True):
        if not output.requires_grad:
            raise InputError(
                "backward",
                "the result must depend on a tensor that requires a gradient",
                repr(output),
                "Set requires_grad=True on a leaf, and do not compute under no_grad().",
            )
        _receive(pending, heap, _node(output), output.output_index, _seed(output, seed))
    recording = switch.enabled
    switch.enabled = False
    try:
        while heap:
            node, adjoints = pending.pop(-heappop(heap))
            if wanted is not None:
                for index, adjoint in enumerate(adjoints):
                    if (node.sequence, index) in wanted:
                        wanted[node.sequence, index] = adjoint
                if node.sequence not in needed:
                    continue
            elif node.function is AccumulateGrad:
                _accumulate(node.variable, adjoints[0])
                continue
            if node._retained:
                for index, tensor in node._retained.items():
                    _accumulate(tensor, adjoints[index])
            results = run_backward(node, adjoints)
            for position, edge in enumerate(node.edges):
                result = results[position]
                if edge is not None and result is not None:
                    upstream, index = edge
                    _receive(
                        pending, heap, upstream, index, as_adjoint(node, position, result, upstream.outputs[index])
                    )
            if not retain_graph:
                node.free()
    finally:
        switch.enabled = recording


def _receive(
    pending: dict[int, tuple[Context, Adjoints]], heap: list[int], node: Context, index: int, adjoint: Tensor
) -> None:
    """Add an adjoint to what waits for `node`; the graph sums fan-out."""
    sequence = node.sequence
    if sequence in pending:
        adjoints = pending[sequence][1]
        present = adjoints[index]
        adjoints[index] = adjoint if present is None else Tensor(np.asarray(present.data + adjoint.data))
        return
    if node.freed:
        raise GraphError(_FREED.format(node.name()))
    adjoints = [None] * len(node.outputs)
    adjoints[index] = adjoint
    pending[sequence] = (node, adjoints)
    heappush(heap, -sequence)


def run_backward(node: Context, adjoints: Adjoints) -> tuple[Any, ...]:
    """Call the node's backward: what it returns, one for each input."""
    if len(adjoints) == 1:
        results = node.function.backward(node, adjoints[0])
    else:
        if node._materialize_grads:
            adjoints = [
                Tensor(np.zeros(*output)) if a is None else a for a, output in zip(adjoints, node.outputs, strict=True)
            ]
        results = node.function.backward(node, *adjoints)
    if type(results) is not tuple:
        results = (results,)
    if len(results) != len(node.edges):
        raise GraphError(
            f"{node.name()}: backward returned {len(results)} adjoints for {len(node.edges)} inputs. "
            "Return one for each input, None where there is none."
        )
    return results


def as_adjoint(node: Context, position: int, result: Any, wanted: tuple[tuple[int, ...], np.dtype[Any]]) -> Tensor:
    """What backward returned for the input at `position`, as a Tensor of that input's shape and dtype."""
    shape, dtype = wanted
    if type(result) is np.ndarray and result.base is None and result.flags.carray and result.dtype == dtype:
        data, result = result, Tensor(result)
    elif isinstance(result, Tensor):
        data = result.data
        if data.dtype != dtype:
            result = Tensor(data.astype(dtype))
    else:
        data = result if type(result) is np.ndarray else np.asarray(result)
        flags = data.flags  # a writable view may be of scratch memory, used again soon
        if data.dtype != dtype or not flags.c_contiguous or (data.base is not None and flags.writeable):
            data = np.array(data, dtype, order="C")
        result = Tensor(data)
    if data.shape != shape:
        raise GraphError(
            f"{node.name()}: the adjoint of input {position} has shape {data.shape}, the input has shape "
            f"{shape}. Sum over broadcast axes, or return the right array."
        )
    return result


def _accumulate(leaf: Tensor, adjoint: Tensor | None) -> None:
    if adjoint is not None:  # a copy even at first: one adjoint may have reached several leaves
        leaf.grad = Tensor(np.array(adjoint.data) if leaf.grad is None else np.asarray(leaf.grad.data + adjoint.data))
