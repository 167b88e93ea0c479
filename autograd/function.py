"""`Function`: a forward with its hand-written adjoint. `Context`: what one application saved, a node of the graph."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import GraphError
from .mode import switch
from .tensor import Tensor

_sequence = itertools.count(1)
_leaf_sequence = itertools.count(-1, -1)

Edge = tuple["Context", int]


class Context:
    """One application of a Function: its saved state during `forward` and `backward`, and its node in the graph.

    `grad_fn` of a result is the Context that made it. Any attribute may be set in `forward` and read in `backward`;
    tensors belong in `save_for_backward`, which guards them against change.
    """

    function: type[Function]
    sequence: int  # creation order; every node is younger than its inputs, so descending order is topological
    edges: tuple[Edge | None, ...] = ()
    outputs: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...] = ()
    freed = False
    _saved: tuple[Any, ...] = ()
    _versions: list[int] = []
    _non_differentiable: tuple[Tensor, ...] = ()
    _materialize_grads = True
    _retained: dict[int, Tensor] | None = None

    if TYPE_CHECKING:  # what a Function keeps for itself

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Whether `backward` has to give an adjoint, for each input."""
        return tuple([edge is not None for edge in self.edges])

    def save_for_backward(self, *values: Tensor | float | None) -> None:
        """Keep Tensors (or plain numbers) for `backward`, with their versions: a later change to one is noticed."""
        self._saved = values
        self._versions = [value._version[0] if type(value) is Tensor else 0 for value in values]

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What `save_for_backward` kept. Raises `GraphError` if one of them was written to since."""
        for value, version in zip(self._saved, self._versions, strict=True):
            if type(value) is Tensor and value._version[0] != version:
                raise GraphError(
                    f"{self.name()}: saved tensor {self._saved.index(value)} (shape {value.shape}) was changed after "
                    f"forward: it is at version {value._version[0]}, saved at version {version}. "
                    "Write to a copy, or run forward again."
                )
        return self._saved

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare results (integer indices, masks) that carry no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """With False, `backward` receives None for results that the loss does not depend on, instead of zeros."""
        self._materialize_grads = value

    def name(self) -> str:
        """As in PyTorch, without its numeric suffix: MulBackward, SumBackward; AccumulateGrad for a leaf's node."""
        return "AccumulateGrad" if self.function is AccumulateGrad else self.function.__name__ + "Backward"

    @property
    def next_functions(self) -> tuple[tuple[Context | None, int], ...]:
        """For each input, the node that made it and which of its outputs it was; (None, 0) where no gradient flows."""
        return tuple([(None, 0) if edge is None else edge for edge in self.edges])

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def free(self) -> None:
        """Drop the saved tensors and the links to earlier nodes."""
        self.edges = self._saved = ()
        self.freed = True


class Function:
    """A differentiable operation: subclass it with static `forward` and `backward`, call it by `apply`.

    `forward(ctx, *inputs)` receives what `apply` was given, with recording off, and returns one array or Tensor, or a
    tuple of them. `backward(ctx, *adj_outputs)` receives a Tensor for each result and returns an adjoint (array, Tensor
    or None) for each input. The optional `jvp(ctx, *tangent_inputs)` pushes tangents (arrays, or None: no tangent)
    forward with the same saved state. Results own their memory: a view of an input is copied.
    """

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        raise TypeError("a Function must define forward(ctx, *inputs)")

    @staticmethod
    def backward(ctx: Any, *adj_outputs: Any) -> Any:
        raise TypeError("a Function must define backward(ctx, *adj_outputs)")

    jvp: Any = None

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Run `forward` and record the node if an input requires a gradient. Returns a Tensor or a tuple of Tensors."""
        recording = switch.enabled
        record = False
        ctx = Context()
        ctx.function = cls
        edges: list[Edge | None] = []
        for value in inputs:
            if recording and isinstance(value, Tensor) and value.requires_grad:
                node = value.grad_fn
                edges.append((leaf_node(value), 0) if node is None else (node, value.output_index))
                record = True
            else:
                edges.append(None)
        ctx.edges = tuple(edges)
        if record:
            ctx.sequence = next(_sequence)
        switch.enabled = False
        try:
            result = cls.forward(ctx, *inputs)
        finally:
            switch.enabled = recording
        if type(result) is not tuple:
            fresh = type(result) is np.ndarray and result.base is None and result.flags.carray
            output = Tensor(result) if fresh else cls._own(result, inputs)
            if record:
                data = output.data
                ctx.outputs = ((data.shape, data.dtype),)
                _link(ctx, output, 0)
            return output
        outputs = tuple([cls._own(value, inputs) for value in result])
        if len(set(map(id, outputs))) != len(outputs):  # one Tensor returned twice cannot be two results
            outputs = tuple([Tensor(output.data.copy()) for output in outputs])
        if record:
            ctx.outputs = tuple([(output.data.shape, output.data.dtype) for output in outputs])
            for index, output in enumerate(outputs):
                _link(ctx, output, index)
        return outputs

    @classmethod
    def _own(cls, value: Any, inputs: tuple[Any, ...]) -> Tensor:
        """Make a Tensor of what `forward` returned; memory of an input, a leaf or a view is copied."""
        if type(value) is np.ndarray:
            # A locked array belongs to another Tensor already; a view may be of an input's memory.
            return Tensor(value if value.base is None and value.flags.carray else value.copy(order="C"))
        if isinstance(value, Tensor):
            data = value.data
            fresh = value.grad_fn is None and not value.requires_grad and data.base is None
            if fresh and not any([isinstance(other, Tensor) and data is other.data for other in inputs]):
                return value
            return Tensor(data.copy())
        array = np.array(value)
        if array.dtype.kind == "O":
            raise TypeError(f"{cls.__name__}.forward returned {value!r}. Return an array, a Tensor or a tuple of them.")
        return Tensor(array)


def _link(ctx: Context, output: Tensor, index: int) -> None:
    """Make `ctx` the origin of an output. A saved output becomes an alias, else the node would hold itself alive."""
    if output.data.dtype.kind != "f":
        return
    if ctx._non_differentiable and any([output is tensor for tensor in ctx._non_differentiable]):
        return
    for tensor in ctx._saved:
        if tensor is output:
            ctx._saved = tuple([output.detach() if t is output else t for t in ctx._saved])
            break
    output.grad_fn = ctx
    output.output_index = index
    output.requires_grad = True


class AccumulateGrad(Function):
    """The end of every path: adds what arrives to `.grad` of a leaf."""


def leaf_node(leaf: Tensor) -> Context:
    """The AccumulateGrad node of a leaf, made once."""
    node = leaf._accumulator
    if node is None:
        node = Context()
        node.function = AccumulateGrad
        node.sequence = next(_leaf_sequence)  # below all others: a leaf is processed last, with its whole gradient
        node.outputs = ((leaf.shape, leaf.dtype),)
        node.variable = leaf
        leaf._accumulator = node
    return node
