"""One node's backward: what it is handed, what it may return, and what a Function does that differentiates once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import GraphError
from .function import Context, Function, _link, _sequence
from .mode import no_grad, switch
from .tensor import Array, Tensor

Spec = tuple[tuple[int, ...], np.dtype[Any]]


def run_backward(node: Context, adjoints: Sequence[Any]) -> list[Any]:
    """The adjoint of each input, None where there is none, from those of the outputs.

    Arrays; Tensors where recording is on. Errors: GraphError for a wrong number of adjoints, or one of a wrong shape.
    """
    function = node.function
    observers = switch.observers
    for observer in observers:
        observer.before_backward(node, adjoints)
    try:
        if function._on_arrays and node._hooks is None:
            results = function.backward(node, *adjoints)
        else:
            results = _run_on_tensors(node, adjoints)
    except BaseException:
        for observer in observers:
            observer.failed(node)
        raise
    if type(results) is not tuple:
        results = (results,)
    edges = node.edges
    if len(results) != len(edges):
        raise GraphError(
            f"{node.name()}: backward returned {len(results)} adjoints for {len(edges)} inputs. "
            "Return one for each input, None where there is none."
        )
    checked = [
        None if edge is None or result is None else _as_adjoint(node, position, result, edge[0].outputs[edge[1]])
        for position, (edge, result) in enumerate(zip(edges, results, strict=True))
    ]
    for observer in observers:
        observer.after_backward(node, adjoints, checked)
    return checked


def _run_on_tensors(node: Context, adjoints: Sequence[Any]) -> Any:
    """Call a backward that takes Tensors, between the node's hooks."""
    function, recording = node.function, switch.enabled
    arguments: tuple[Any, ...] = tuple([None if a is None else _as_tensor(a) for a in adjoints])
    if None in arguments and node._materialize_grads:
        arguments = tuple(
            [Tensor(np.zeros(*spec)) if a is None else a for a, spec in zip(arguments, node.outputs, strict=True)]
        )
    hooks = node._hooks
    if hooks is not None:
        arguments = hooks.run_pre(node, arguments)
    if recording and function.once_differentiable:
        results = _run_once(node, arguments)
    elif function._on_arrays and not recording:
        results = function.backward(node, *[a.data for a in arguments])
    else:
        results = function.backward(node, *arguments)
    if hooks is not None and hooks.post:
        results = results if type(results) is tuple else (results,)
        results = hooks.run_post(node, tuple([None if r is None else _as_tensor(r) for r in results]), arguments)
    return results


def _as_tensor(values: Any) -> Tensor:
    if type(values) is Tensor:
        return values
    data = values if type(values) is np.ndarray else np.asarray(values)
    return Tensor(data if data.flags.c_contiguous else data.copy(order="C"))


def _as_adjoint(node: Context, position: int, result: Any, wanted: Spec) -> Any:
    """What backward returned for the input at `position`, as an array (while recording a Tensor) like that input."""
    shape, dtype = wanted
    if switch.enabled:
        data = _recorded(node, position, result)
    elif type(result) is np.ndarray:
        data = result if node.function._on_arrays else _locked(result)
    else:
        data = result.data if type(result) is Tensor else np.asarray(result)
    if data.dtype is not dtype and data.dtype != dtype:
        data = data.astype(dtype)
    if data.shape != shape:
        raise GraphError(
            f"{node.name()}: the adjoint of input {position} has shape {data.shape}, the input has shape "
            f"{shape}. Sum over broadcast axes, or return the right array."
        )
    return data


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
    end.sequence = next(_sequence)
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
        _link(end, result, index)
    return tuple(outputs)
