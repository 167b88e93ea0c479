"""`Context`: what one application of a Function saved; a node of the graph."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from .errors import GraphError
from .hooks import Hooks, PostHook, PreHook, RemovableHandle
from .mode import switch
from .tensor import Array, Tensor

if TYPE_CHECKING:
    from .function import Function

sequence = itertools.count(1)

Edge = tuple["Context", int]
Outputs = tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]

FREED = (
    "{}: its saved state was freed by an earlier backward through it. "
    "Pass retain_graph=True to that backward, or run forward again."
)


class Context:
    """One application of a Function: its saved state during `forward` and `backward`, and its node in the graph.

    `grad_fn` of a result is the Context that made it. Any attribute may be set in `forward` and read in `backward`;
    tensors belong in `save_for_backward`, which guards them against change.
    """

    function: type[Function]
    is_accumulator = False
    sequence: int  # creation order; every node is younger than its inputs, so descending order is topological
    edges: Sequence[Edge | None] = ()
    outputs: Outputs = ()
    freed = False
    _saved: tuple[Any, ...] = ()
    _saved_outputs: dict[int, int] | None = None  # position in _saved -> which output it is
    _versions: Sequence[int] = ()
    _writes = 0  # switch.writes when the values were saved
    _non_differentiable: tuple[Tensor, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _materialize_grads = True
    _hooks: Hooks | None = None
    _session: Any = None  # settings in force at the end of forward, in which backward runs, too

    if TYPE_CHECKING:  # what a Function keeps for itself

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Whether `backward` has to give an adjoint, for each input."""
        return tuple([edge is not None for edge in self.edges])

    def save_for_backward(self, *values: Any) -> None:
        """Keep Tensors for `backward`, with their versions: a later change to one is noticed.

        Arrays become Tensors (locked; a view is copied). Other values are kept as they are.
        """
        for value in values:
            if type(value) is ndarray:
                values = tuple([_guarded(v) if type(v) is ndarray else v for v in values])
                break
        self._saved = values
        writes = switch.writes
        if writes:  # else all are at version 0
            self._versions = [value.version if type(value) is Tensor else 0 for value in values]
        self._writes = writes

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept. Raises `GraphError` if a Tensor among it was written to since.

        While a second derivative is recorded, saved results are part of the graph, as saved inputs always are.
        """
        if self._writes != switch.writes:
            self._check_versions()
        if self.freed:
            raise GraphError(FREED.format(self.name()))
        if switch.enabled and self._saved_outputs:
            saved = list(self._saved)
            for position, index in self._saved_outputs.items():
                saved[position] = saved[position].detach()
                saved[position]._edge = (self, index)
            return tuple(saved)
        return self._saved

    @property
    def saved(self) -> Sequence[Any]:
        """The saved values as arrays; as Tensors while a second derivative is recorded. For rules that take both."""
        if switch.enabled or self.freed or self._writes != switch.writes:
            values = self.saved_tensors
            if switch.enabled:
                return values
        return [v.data if type(v) is Tensor else v for v in self._saved]

    def _check_versions(self) -> None:
        versions = self._versions or (0,) * len(self._saved)
        for position, (value, version) in enumerate(zip(self._saved, versions, strict=True)):
            if type(value) is Tensor and value.version != version:
                raise GraphError(
                    f"{self.name()}: saved tensor {position} (shape {value.shape}) was changed after forward: it is at "
                    f"version {value.version}, saved at version {version}. Write to a copy, or run forward again."
                )

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare results (integer indices, masks) that carry no gradient."""
        self._non_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that `forward` writes to; it must return each of them. They become results of this node.

        What was saved of them before raises in backward. A leaf that requires a gradient cannot be written to.
        """
        for tensor in tensors:
            if tensor._edge in self.edges and tensor.is_leaf and tensor.requires_grad:
                raise GraphError(
                    f"{self.function.__name__}: a leaf that requires a gradient (shape {tensor.shape}) cannot be "
                    "written to in place. Write to a clone() of it, or inside no_grad()."
                )
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """With False, `backward` receives None for results that the loss does not depend on, instead of zeros."""
        self._materialize_grads = value

    def name(self) -> str:
        """As in PyTorch, without its numeric suffix: MulBackward, SumBackward; AccumulateGrad for a leaf's node."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Context | None, int], ...]:
        """For each input, the node that made it and which of its outputs it was; (None, 0) where no gradient flows."""
        return tuple([(None, 0) if edge is None else edge for edge in self.edges])

    @property
    def hooks(self) -> Hooks:
        """The hooks of this node, to add to."""
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_hook(self, hook: PostHook) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after this node's backward; it may return other grad_inputs."""
        return self.hooks.after(self, hook)

    def register_prehook(self, hook: PreHook) -> RemovableHandle:
        """Call `hook(grad_outputs)` before this node's backward; it may return others in their place."""
        return self.hooks.before(self, hook)

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def free(self) -> None:
        """Drop the saved tensors and the links to earlier nodes."""
        self.edges = self._saved = ()
        self.freed = True


def _guarded(array: Array) -> Tensor:
    return Tensor(array if array.base is None and array.flags.c_contiguous else array.copy(order="C"))
