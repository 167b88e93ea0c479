"""`Function`: a forward with its hand-written adjoint."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numpy as np
from numpy import ndarray

from .context import Context
from .errors import GraphError, MissingJvp
from .kernels.memory import held
from .mode import switch, take_over
from .node import NO_TENSOR, Edge, Node, begin, sequence
from .tensor import Tensor, wrap

_F64 = np.dtype(np.float64)


class Observer:
    """Base class of observers: those in `switch.observers` are called around each forward and backward.

    The AccumulateGrad nodes of leaves are not reported. If forward or backward raises, `failed` is called instead of
    `after_*`.
    """

    def before_forward(self, ctx: Context, inputs: tuple[Any, ...]) -> None:
        """Observe the arguments of `apply`; a recorded node has its edges and sequence already."""

    def after_forward(self, ctx: Context, inputs: tuple[Any, ...], outputs: tuple[Tensor, ...]) -> None:
        """Observe the outputs, which are linked to the node."""

    def before_backward(self, node: Node, adjoints: Sequence[Any]) -> None:
        """Observe the adjoint of each output: an array, a Tensor or None."""

    def after_backward(self, node: Node, adjoints: Sequence[Any], results: Sequence[Any]) -> None:
        """Observe the adjoint of each input: an array, a Tensor or None."""

    def failed(self, node: Node) -> None:
        """Observe that forward or backward of this node raised an error."""


class Function:
    """A differentiable operation: subclass it with static `forward` and `backward`, call it by `apply`.

    `forward(ctx, *inputs)` receives the arguments of `apply`, with recording off, and returns one array or Tensor, or a
    tuple of them. Results own their memory: a view of an input is copied. `backward(ctx, *adj_outputs)` receives a
    Tensor for each result and returns an adjoint (array, Tensor or None) for each input.

    The optional `jvp(ctx, *tangent_inputs)` pushes tangents forward with the same saved state. It receives an array for
    each input that is a Tensor of real numbers, zeros if this does not move, and None for any other input.
    `ctx.set_materialize_grads(False)` replaces these zeros by None.

    A gradient of a gradient through it raises, unless `once_differentiable = False`: then `backward` is written in
    Tensor operations and Functions, which are recorded where a gradient is taken with create_graph=True.
    """

    once_differentiable = True
    _on_arrays = False  # True if backward takes arrays where nothing is recorded, and reads `ctx.read_saved()`
    _other_edge: tuple[()] | None = NO_TENSOR  # the entry in `edges` for an input that is no Tensor
    _materializes = True  # False if jvp takes None for an input without a tangent

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Any:
        raise TypeError("a Function must define forward(ctx, *inputs)")

    @staticmethod
    def backward(ctx: Any, *adj_outputs: Any) -> Any:
        raise TypeError("a Function must define backward(ctx, *adj_outputs)")

    jvp: Any = None

    @classmethod
    def require_jvp(cls, name: str) -> None:
        """Raise MissingJvp, which says what to do, if there is no jvp; `name` is that of the node."""
        if cls.jvp is None:
            raise MissingJvp(
                f"{name}: {cls.__name__} has no jvp, so no tangent can be pushed through it. "
                'Define its static jvp(ctx, *tangents), or differentiate in reverse: vjp or jacobian(mode="reverse").'
            )

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Run `forward` and record the node if an input requires a gradient. Returns a Tensor or a tuple of Tensors."""
        if get_ident() != switch.thread:
            take_over(cls.__name__)
        recording = switch.enabled
        observers = switch.observers
        writes = switch.writes
        edges: list[Edge | tuple[()] | None] = []
        moving = 0  # the number of inputs that require a gradient
        for value in inputs:
            edge = value._edge if type(value) is Tensor else cls._other_edge
            edges.append(edge)
            if edge:
                moving += 1
        record = recording and moving > 0
        ctx = begin(Context(), cls, edges if record else [None] * len(edges))
        if record:
            ctx.sequence = next(sequence)
            if moving < len(edges) and cls._materializes and cls.jvp is not None:
                ctx.constants = _constants(cls, inputs, edges)
            switch.enabled = False
        try:
            if observers:
                for observer in observers:
                    observer.before_forward(ctx, inputs)
            result = cls.forward(ctx, *inputs)
            ctx._session = switch.session
            if ctx._taken:
                ctx.separate(result)
            if writes != switch.writes or ctx._dirty:
                _check_writes(ctx, inputs, result, writes)
            if type(result) is tuple:
                outputs = _several(ctx, inputs, result, record)
                for observer in observers:
                    observer.after_forward(ctx, inputs, outputs)
                return outputs
            if type(result) is ndarray and result.base is None and result.flags.carray and id(result) not in held:
                output = wrap(result)  # new: saved nowhere, marked nowhere
                if record:
                    dtype = result.dtype
                    ctx.outputs = ((result.shape, dtype),)
                    if dtype is _F64 or dtype.kind == "f":
                        output._edge = (ctx, 0)
            else:
                output = _own(ctx, result, inputs)
                if record:
                    ctx.outputs = ((output.data.shape, output.data.dtype),)
                    link(ctx, output, 0)
            if observers:
                for observer in observers:
                    observer.after_forward(ctx, inputs, (output,))
            return output
        except BaseException:
            for observer in observers:
                observer.failed(ctx)
            raise
        finally:
            switch.enabled = recording


def _constants(function: type[Function], inputs: tuple[Any, ...], edges: list[Any]) -> list[Any]:
    """Shape and dtype of each input without an edge that is a Tensor of real numbers, or counts as one."""
    number = None if function._other_edge is NO_TENSOR else ((), _F64)
    constants: list[Any] = []
    for x, edge in zip(inputs, edges, strict=True):
        if type(x) is Tensor:
            is_constant = not edge and x.data.dtype.kind == "f"
            constants.append((x.data.shape, x.data.dtype) if is_constant else None)
        else:
            constants.append(number)
    return constants


def _several(ctx: Context, inputs: tuple[Any, ...], result: tuple[Any, ...], record: bool) -> tuple[Tensor, ...]:
    """The outputs of a Function that returned a tuple."""
    outputs = tuple([_own(ctx, value, inputs) for value in result])
    if len(set(map(id, outputs))) != len(outputs):  # one Tensor returned twice cannot be two results
        outputs = tuple([Tensor(output.data.copy()) for output in outputs])
    if record:
        ctx.outputs = tuple([(output.data.shape, output.data.dtype) for output in outputs])
        for index, output in enumerate(outputs):
            link(ctx, output, index)
    return outputs


def _own(ctx: Context, value: Any, inputs: tuple[Any, ...]) -> Tensor:
    """Make a Tensor of a result of `forward`; memory of an input, a leaf or a view is copied."""
    output = _owned(ctx, value, inputs)
    if output is not value and any([value is marked for marked in ctx._non_differentiable]):
        ctx._non_differentiable += (output,)
    return output


def _owned(ctx: Context, value: Any, inputs: tuple[Any, ...]) -> Tensor:
    if type(value) is ndarray:
        for saved in ctx._saved:
            if type(saved) is Tensor and saved.data is value:
                if any([type(other) is Tensor and other.data is value for other in inputs]):
                    break  # an input's memory
                return saved  # the Tensor that the array became when it was saved
        # A locked array belongs to another Tensor already; a view may be of an input's memory.
        return Tensor(value if value.base is None and value.flags.carray else value.copy(order="C"))
    if type(value) is Tensor:
        if ctx._dirty and any([value is tensor for tensor in ctx._dirty]):
            return value
        data = value.data
        fresh = value._edge is None and data.base is None
        if fresh and not any([type(other) is Tensor and data is other.data for other in inputs]):
            return value
        return Tensor(data.copy())
    array = np.array(value)
    if array.dtype.kind == "O":
        name = ctx.function.__name__
        raise TypeError(f"{name}.forward returned {value!r}. Return an array, a Tensor or a tuple of them.")
    return Tensor(array)


def link(ctx: Context, output: Tensor, index: int) -> None:
    """Make `ctx` the origin of an output. A saved output becomes an alias: else the node would hold itself alive."""
    if output.data.dtype.kind != "f":
        return
    if ctx._non_differentiable and any([output is tensor for tensor in ctx._non_differentiable]):
        return
    for position, value in enumerate(ctx._saved):
        if value is output:
            saved = list(ctx._saved)
            saved[position] = output.detach()
            ctx._saved = tuple(saved)
            if ctx._saved_outputs is None:
                ctx._saved_outputs = {}
            ctx._saved_outputs[position] = index
    before = output._edge
    output._edge = (ctx, index)
    if before is not None and before[0]._hooks is not None and before[0].hooks.retained.pop(before[1], False):
        output.retain_grad()  # of the values that it has from now on


def _check_writes(ctx: Context, inputs: tuple[Any, ...], result: Any, writes: int) -> None:
    """Raise if `forward` wrote to an input that it did not mark as dirty; raise the versions of dirty inputs."""
    name, dirty = ctx.function.__name__, ctx._dirty
    for position, value in enumerate(inputs):
        written = type(value) is Tensor and value._version is not None and value._version[1] > writes
        if written and not any([value is tensor for tensor in dirty]):
            raise GraphError(
                f"{name}: forward wrote to input {position} (shape {value.shape}). Write to a new array, or, if the "
                "input is to be changed in place, call ctx.mark_dirty on it and return it."
            )
    if not dirty:
        return
    returned = result if type(result) is tuple else (result,)
    for tensor in dirty:
        if not any([tensor is value for value in inputs]) or not any([tensor is value for value in returned]):
            raise GraphError(
                f"{name}: a Tensor that is marked as dirty (shape {tensor.shape}) must be an input of forward and be "
                "returned by it. Pass and return the Tensor itself."
            )
        if tensor._version is None or tensor._version[1] <= writes:
            tensor.raise_version()
    ctx._versions = [value.version if type(value) is Tensor else 0 for value in ctx._saved]  # as forward leaves it
    ctx._writes = switch.writes
