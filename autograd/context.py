"""`Context`: the node of a Function that is applied, with the values that it saves for backward."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from numpy import ndarray

from .errors import GraphError, InputError
from .mode import switch
from .node import FREED, Node
from .tensor import Array, Tensor


class Context(Node):
    """One application of a Function: its saved state during `forward` and `backward`, and its node in the graph.

    Any attribute may be set in `forward` and read in `backward`. Tensors belong in `save_for_backward`, which guards
    them against change.
    """

    __slots__ = ()
    _saved_outputs: dict[int, int] | None = None  # position in _saved -> number of the output
    _non_differentiable: tuple[Tensor | Array, ...] = ()

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """For each input, True if `backward` has to return its adjoint."""
        return tuple([bool(edge) for edge in self.edges])

    def save_for_backward(self, *values: Any) -> None:
        """Keep Tensors for `backward`, with their versions, so that a later change to one raises.

        Arrays become Tensors (locked). A copy is saved of a view, and of an array that something else still uses at
        the end of forward: a Tensor, a view, a bound launch, the caller. Other values are kept as they are.
        Errors: InputError for Tensors inside a list, a tuple or a dictionary; GraphError for one that is open for
        writing, since it may change at any moment.
        """
        for value in values:
            if type(value) is not Tensor and type(value) in _CHECKED:
                self._taken = [position for position, v in enumerate(values) if type(v) is ndarray]
                values = tuple([_as_guarded_tensor(self, v) if type(v) in _CHECKED else v for v in values])
                break
        self.keep(values)

    def keep(self, values: tuple[Any, ...]) -> None:
        """Save values of which none is an array, or a collection of Tensors."""
        self._saved = values
        self._versions = ()  # all are at version 0
        self._writes = switch.writes
        if self._writes:
            self._versions = [value.version if type(value) is Tensor else 0 for value in values]
            if switch.open and any(self.edges):
                self._refuse_open()

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The values given to `save_for_backward`. Raises `GraphError` if one of these Tensors was written to since.

        While a second derivative is recorded, saved outputs are part of the graph, as saved inputs always are.
        """
        if self._saved and self._writes != switch.writes:
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

    def read_saved(self) -> Sequence[Any]:
        """The saved values as arrays, or as Tensors while a second derivative is recorded, for rules that take both."""
        if switch.enabled or not self._saved or self._writes != switch.writes:
            values = self.saved_tensors
            if switch.enabled:
                return values
        arrays = []
        for value in self._saved:
            arrays.append(value.data if type(value) is Tensor else value)
        return arrays

    def _refuse_open(self) -> None:
        for position, value in enumerate(self._saved):
            if type(value) is Tensor and value.is_open:
                raise GraphError(
                    f"{self.function.__name__}: saved tensor {position} (shape {value.shape}) is open for writing. "
                    "Compute with it after the `with x.writable()` block, or inside no_grad()."
                )

    def separate(self, result: Any) -> None:
        """Replace saved arrays by copies that something besides this node and the `result` of forward still uses.

        It may write to them: through a view, for example, which the lock does not reach.
        """
        results = result if type(result) is tuple else ()
        saved = list(self._saved)
        for position in self._taken:
            references = sys.getrefcount(saved[position].data)
            users = sum([saved[position].data is each for each in results]) + 2 * (saved[position].data is result)
            if references > 2 + users:
                saved[position] = Tensor(saved[position].data.copy())
        self._saved = tuple(saved)
        self._taken = ()

    def _check_versions(self) -> None:
        versions = self._versions or (0,) * len(self._saved)
        for position, (value, version) in enumerate(zip(self._saved, versions, strict=True)):
            if type(value) is Tensor and value.version != version:
                raise GraphError(
                    f"{self.name()}: saved tensor {position} (shape {value.shape}) was changed after forward: it is at "
                    f"version {value.version}, saved at version {version}. Write to a copy, or run forward again."
                )

    def mark_non_differentiable(self, *outputs: Tensor | Array) -> None:
        """Declare outputs that carry no gradient, such as integer indices and masks."""
        for output in outputs:
            if type(output) is ndarray:
                output.setflags(write=False)  # it counts as a Tensor's from now on
        self._non_differentiable = outputs

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


_CHECKED = frozenset((ndarray, list, tuple, dict))


def _as_guarded_tensor(ctx: Context, value: Any) -> Any:
    """A Tensor in place of an array."""
    if type(value) is ndarray:
        return Tensor(value if value.base is None and value.flags.carray else value.copy(order="C"))
    for each in value.values() if type(value) is dict else value:
        if type(each) is Tensor:
            constraint = "each saved Tensor is an argument, so that a change of it is noticed"
            found = f"one inside a {type(value).__name__}"
            remedy = "Unpack it: save_for_backward(*tensors)."
            raise InputError(f"{ctx.function.__name__}, save_for_backward", constraint, found, remedy)
    return value
