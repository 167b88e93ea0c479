"""`Context`: the node of a Function that is applied, with the values that it saves for backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy import ndarray

from .errors import GraphError
from .mode import switch
from .node import FREED, Node
from .tensor import Array, Tensor


class Context(Node):
    """One application of a Function: its saved state during `forward` and `backward`, and its node in the graph.

    Any attribute may be set in `forward` and read in `backward`. Tensors belong in `save_for_backward`, which guards
    them against change.
    """

    _saved_outputs: dict[int, int] | None = None  # position in _saved -> number of the output
    _versions: Sequence[int] = ()
    _writes = 0  # switch.writes when the values were saved
    _non_differentiable: tuple[Tensor, ...] = ()
    _dirty: tuple[Tensor, ...] = ()

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each input, True if `backward` has to return its adjoint."""
        return tuple([bool(edge) for edge in self.edges])

    def save_for_backward(self, *values: Any) -> None:
        """Keep Tensors for `backward`, with their versions, so that a later change to one raises.

        Arrays become Tensors (locked; a view is copied). Other values are kept as they are.
        """
        for value in values:
            if type(value) is ndarray:
                values = tuple([_as_guarded_tensor(v) if type(v) is ndarray else v for v in values])
                break
        self._saved = values
        writes = switch.writes
        if writes:  # else all are at version 0
            self._versions = [value.version if type(value) is Tensor else 0 for value in values]
        self._writes = writes

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values given to `save_for_backward`. Raises `GraphError` if one of these Tensors was written to since.

        While a second derivative is recorded, saved outputs are part of the graph, as saved inputs always are.
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
        """The saved values as arrays, or as Tensors while a second derivative is recorded, for rules that take both."""
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
        """Declare outputs that carry no gradient, such as integer indices and masks."""
        self._non_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that `forward` writes to; it must return each of them. They become outputs of this node.

        Nodes that saved one of them before raise in backward. A leaf that requires a gradient cannot be written to.
        """
        for tensor in tensors:
            if tensor._edge in self.edges and tensor.is_leaf and tensor.requires_grad:
                raise GraphError(
                    f"{self.function.__name__}: a leaf that requires a gradient (shape {tensor.shape}) cannot be "
                    "written to in place. Write to a clone() of it, or inside no_grad()."
                )
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """With False, missing adjoints and tangents are None instead of zeros.

        `backward` has none for outputs that the loss does not depend on, `jvp` none for inputs that do not move.
        """
        self._materialize_grads = value


def _as_guarded_tensor(array: Array) -> Tensor:
    return Tensor(array if array.base is None and array.flags.c_contiguous else array.copy(order="C"))
