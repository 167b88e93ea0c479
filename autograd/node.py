"""One node's backward: what it is handed, what it may return, and what a Function does that differentiates once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from .context import Context, sequence
from .errors import GraphError
from .function import Function, link
from .kernels import runtime
from .mode import no_grad, switch
from .tensor import Array, Tensor, wrap


def run_backward(node: Context, adjoints: Sequence[Any]) -> list[Any]:
    """The adjoint of each input, None where there is none, from those of the outputs.

    Arrays; Tensors where recording is on. Errors: GraphError for a wrong number of adjoints, or one of a wrong shape.
    """
    return [
        None if edge is None or result is None else as_adjoint(node, position, result)
        for position, (edge, result) in enumerate(zip(node.edges, call_backward(node, adjoints), strict=True))
    ]


def call_backward(node: Context, adjoints: Sequence[Any]) -> tuple[Any, ...]:
    """What backward returns for each input; `as_adjoint` makes an adjoint of it."""
    function = node.function
    if node._session is not switch.session and node._session is not None and not function._on_arrays:
        with runtime.within(node._session, node.name()):
            node._session = switch.session
            return call_backward(node, adjoints)
    if switch.enabled or switch.observers or node._hooks is not None:
        return _call_watched(node, adjoints)
    if function._on_arrays:
        results = function.backward(node, *adjoints)
    elif len(adjoints) == 1:
        adjoint = adjoints[0]
        argument = wrap(adjoint if adjoint.flags.c_contiguous else adjoint.copy(order="C"))
        results = function.backward(node, argument)
        if argument._version is not None:
            _check_unwritten(node, (argument,))
    else:
        arguments = _arguments(node, adjoints)
        results = function.backward(node, *arguments)
        _check_unwritten(node, arguments)
    if type(results) is not tuple:
        results = (results,)
    if len(results) != len(node.edges):
        raise _count(node, results)
    return results


def as_adjoint(node: Context, position: int, result: Any) -> Any:
    """What backward returned for the input at `position`, as an array (while recording a Tensor) like that input."""
    upstream, index = node.edges[position]  # type: ignore[misc]
    shape, dtype = upstream.outputs[index]
    if type(result) is ndarray and result.dtype is dtype and result.shape == shape and not switch.enabled:
        return result if node.function._on_arrays else _locked(result)
    return _converted(node, position, result, shape, dtype)


def _call_watched(node: Context, adjoints: Sequence[Any]) -> tuple[Any, ...]:
    """The same while a graph is made or somebody looks on."""
    observers = switch.observers
    try:
        for observer in observers:
            observer.before_backward(node, adjoints)
        results = _run_hooked(node, adjoints)
        if type(results) is not tuple:
            results = (results,)
        if len(results) != len(node.edges):
            raise _count(node, results)
        results = tuple(
            [
                None if edge is None or result is None else as_adjoint(node, position, result)
                for position, (edge, result) in enumerate(zip(node.edges, results, strict=True))
            ]
        )
        for observer in observers:
            observer.after_backward(node, adjoints, results)
    except BaseException:
        for observer in observers:
            observer.failed(node)
        raise
    return results


def _run_hooked(node: Context, adjoints: Sequence[Any]) -> Any:
    """Call backward between the node's hooks."""
    function, recording, hooks = node.function, switch.enabled, node._hooks
    arguments = _arguments(node, adjoints)
    if hooks is not None:
        arguments = hooks.run_pre(node, arguments)
    if recording and function.once_differentiable:
        results = _run_once(node, arguments)
    elif function._on_arrays and not recording:
        results = function.backward(node, *[a.data for a in arguments])
    else:
        results = function.backward(node, *arguments)
    _check_unwritten(node, arguments)
    if hooks is not None and hooks.post:
        results = results if type(results) is tuple else (results,)
        results = hooks.run_post(node, tuple([None if r is None else _as_tensor(r) for r in results]), arguments)
    return results


def _arguments(node: Context, adjoints: Sequence[Any]) -> tuple[Any, ...]:
    """What a backward that takes Tensors receives."""
    return tuple(
        [
            (Tensor(np.zeros(*spec)) if node._materialize_grads else None) if adjoint is None else _as_tensor(adjoint)
            for adjoint, spec in zip(adjoints, node.outputs, strict=True)
        ]
    )


def _check_unwritten(node: Context, adjoints: Sequence[Any]) -> None:
    """Raise where backward wrote to an adjoint, which may flow elsewhere, too."""
    for position, adjoint in enumerate(adjoints):
        if adjoint is not None and adjoint.version and not adjoint.requires_grad:
            raise GraphError(
                f"{node.name()}: backward wrote to the adjoint of output {position} that it was given, which other "
                "nodes may need. Write to a new array, or to a copy of it."
            )


def _count(node: Context, results: tuple[Any, ...]) -> GraphError:
    return GraphError(
        f"{node.name()}: backward returned {len(results)} adjoints for {len(node.edges)} inputs. "
        "Return one for each input, None where there is none."
    )


def _as_tensor(values: Any) -> Tensor:
    if type(values) is Tensor:
        return values
    data = values if type(values) is ndarray else np.asarray(values)
    return Tensor(data if data.flags.c_contiguous else data.copy(order="C"))


def _converted(node: Context, position: int, result: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """What backward returned, in the input's shape and dtype."""
    if switch.enabled:
        data = _recorded(node, position, result)
    elif type(result) is ndarray:
        data = result if node.function._on_arrays else _locked(result)
    else:
        data = result.data if type(result) is Tensor else np.asarray(result)
    if data.dtype is not dtype and data.dtype != dtype:
        data = data.astype(dtype)
    if data.shape != shape and node.function._on_arrays:
        data = _unbroadcast(data, shape)
    if data.shape != shape:
        raise GraphError(
            f"{node.name()}: the adjoint of input {position} has shape {data.shape}, the input has shape "
            f"{shape}. Sum over broadcast axes, or return the right array."
        )
    return data


def _unbroadcast(adjoint: Any, shape: tuple[int, ...]) -> Any:
    """The adjoint of an operand: summed over the axes along which it was broadcast."""
    lead = adjoint.ndim - len(shape)
    if lead < 0:  # an operand of put may have more axes, of length 1
        adjoint, lead = adjoint.reshape((1,) * -lead + adjoint.shape), 0
    axes = (*range(lead), *[lead + i for i, n in enumerate(shape) if n == 1])
    return np.add.reduce(adjoint, axis=axes).reshape(shape)


def _locked(array: Array) -> Array:
    """An adjoint that a user's Function returned, so that it cannot be written to while it is needed."""
    if array.base is None:
        array.setflags(False)  # type: ignore[call-arg]  # who wants to use this memory again is told
    elif array.flags.writeable:  # a view may be of scratch memory, used again soon
        array = array.copy()
    return array


def _recorded(node: Context, position: int, result: Any) -> Any:
    """An adjoint that belongs to a graph."""
    if type(result) is not Tensor and not node.function._on_arrays:
        raise GraphError(
            f"{node.name()}: the adjoint of input {position} is {type(result).__name__}, not a Tensor, so a second "
            "derivative would miss it. With once_differentiable = False, write backward in Tensor operations."
        )
    return _as_tensor(result)


class OnceDifferentiable(Function):
    """Stands behind the results of a backward that was not recorded: to differentiate them again is an error."""

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Any) -> Any:
        raise GraphError(
            f"{ctx.differentiated}: its backward is not recorded, so its gradient cannot be differentiated again. "
            "Write that backward in Tensor operations and Functions, and set once_differentiable = False on the "
            "Function."
        )


def _run_once(node: Context, adjoints: Sequence[Any]) -> Any:
    """Call a backward without recording; its results depend on the adjoints and on the node's inputs all the same."""
    with no_grad():
        results = node.function.backward(node, *[None if a is None else a.detach() for a in adjoints])
    results = results if type(results) is tuple else (results,)
    end = OnceDifferentiable._node()
    end.differentiated = node.name()
    end.sequence = next(sequence)
    end.edges = (*[None if a is None else a._edge for a in adjoints], *node.edges)
    outputs: list[Any] = []
    linked = []
    for result in results:
        if result is not None:
            result = Tensor(np.array(result.data if type(result) is Tensor else result, order="C"))
            linked.append(result)
        outputs.append(result)
    end.outputs = tuple([(result.shape, result.dtype) for result in linked])
    for index, result in enumerate(linked):
        link(end, result, index)
    return tuple(outputs)
