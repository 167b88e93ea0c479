"""Calls of the rules of one node, backward and jvp: their arguments, hooks, and checks of their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from .context import Context
from .errors import GraphError, MissingJvp
from .function import Function, link
from .kernels import runtime
from .mode import no_grad, switch
from .node import Adjoints, Node, begin, sequence
from .tensor import Array, Tensor, wrap


def run_backward(node: Node, adjoints: Sequence[Any]) -> list[Any]:
    """The adjoint of each input, None where there is none, from the adjoints of the outputs.

    They are arrays, or Tensors where recording is on. Errors: GraphError for a wrong number of adjoints, or one of a
    wrong shape.
    """
    on_arrays = node.function._on_arrays
    return _as_adjoints(node, call_backward(node, adjoints, on_arrays), on_arrays)


def run_jvp(node: Node, tangents: Sequence[Array | None]) -> list[Array | None]:
    """The tangent of each output, None where there is none, from those of the inputs: None there stands for zeros.

    Errors: GraphError for a wrong number of tangents, or one of a wrong shape.
    """
    if node._session is not switch.session and node._session is not None and not node.function._on_arrays:
        with runtime.within(node._session, node.name()):
            node._session = switch.session
            return run_jvp(node, tangents)
    materialize = node._materialize_grads and node.function._materializes
    results = node.function.jvp(node, *(_fill_zeros(node, tangents) if materialize else tangents))
    if type(results) is not tuple:
        results = (results,)
    if len(results) != len(node.outputs):
        raise GraphError(
            f"{node.name()}: jvp returned {len(results)} tangents for {len(node.outputs)} outputs. Return one for each."
        )
    checked: list[Array | None] = []
    for index, (result, (shape, dtype)) in enumerate(zip(results, node.outputs, strict=True)):
        if result is not None:
            result = np.asarray(result.data if isinstance(result, Tensor) else result, dtype)
            if result.shape != shape:
                raise GraphError(
                    f"{node.name()}: the tangent of output {index} has shape {result.shape}, the output {shape}."
                )
        checked.append(result)
    return checked


def call_backward(node: Node, adjoints: Sequence[Any], on_arrays: bool) -> tuple[Any, ...]:
    """The results of backward, one for each input; `as_adjoint` makes an adjoint of a result.

    `on_arrays` is the Function's `_on_arrays`.
    """
    function = node.function
    if node._session is not switch.session and node._session is not None and not on_arrays:
        with runtime.within(node._session, node.name()):
            node._session = switch.session
            return call_backward(node, adjoints, on_arrays)
    if switch.enabled or switch.observers or node._hooks is not None:
        return _call_watched(node, adjoints, on_arrays)
    if on_arrays:
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
        raise _wrong_count(node, results)
    return results


def as_adjoint(node: Node, position: int, result: Any, on_arrays: bool) -> Any:
    """The result of backward for the input at `position`, as an array (while recording a Tensor) like that input."""
    upstream, index = node.edges[position]  # type: ignore[misc]
    shape, dtype = upstream.outputs[index]
    if type(result) is ndarray and result.dtype is dtype and result.shape == shape and not switch.enabled:
        return result if on_arrays else _lock(result)
    return _convert(node, position, result, shape, dtype)


def _as_adjoints(node: Node, results: Sequence[Any], on_arrays: bool) -> list[Any]:
    """The adjoint of each input, None where there is none."""
    return [
        as_adjoint(node, position, result, on_arrays) if edge and result is not None else None
        for position, (edge, result) in enumerate(zip(node.edges, results, strict=True))
    ]


def _call_watched(node: Node, adjoints: Sequence[Any], on_arrays: bool) -> tuple[Any, ...]:
    """The same while a graph of the gradient is made, or with hooks or observers."""
    observers = switch.observers
    try:
        for observer in observers:
            observer.before_backward(node, adjoints)
        results = _run_hooked(node, adjoints)
        if type(results) is not tuple:
            results = (results,)
        if len(results) != len(node.edges):
            raise _wrong_count(node, results)
        results = tuple(_as_adjoints(node, results, on_arrays))
        for observer in observers:
            observer.after_backward(node, adjoints, results)
    except BaseException:
        for observer in observers:
            observer.failed(node)
        raise
    return results


def _run_hooked(node: Node, adjoints: Sequence[Any]) -> Any:
    """Call backward between the node's hooks."""
    function, recording, hooks = node.function, switch.enabled, node._hooks
    arguments = _arguments(node, adjoints)
    if hooks is not None:
        for pre in tuple(hooks.pre.values()):
            arguments = _replacements(node, pre(arguments), arguments)
    if recording and function.once_differentiable:
        results = _run_once(node, arguments)
    elif function._on_arrays and not recording:
        results = function.backward(node, *[a.data for a in arguments])
    else:
        results = function.backward(node, *arguments)
    _check_unwritten(node, arguments)
    if hooks is not None and hooks.post:
        results = results if type(results) is tuple else (results,)
        results = tuple([None if r is None else _as_tensor(r) for r in results])
        for post in tuple(hooks.post.values()):
            results = _replacements(node, post(results, arguments), results)
    return results


def run_tensor_hook(node: Node, index: int, adjoint: Any) -> Any:
    """The adjoint of output `index`, an array or a Tensor, after the hooks on that output."""
    recorded = isinstance(adjoint, Tensor)
    found = adjoint if recorded else Tensor(np.array(adjoint, order="C"))
    for hook in tuple(node.hooks.tensor.get(index, {}).values()):
        found = _replacement(node, hook(found), found)
    return found if recorded else found.data


def _replacements(node: Node, replaced: Adjoints | None, adjoints: Adjoints) -> Adjoints:
    """The adjoints that a hook returned in place of others; None keeps them."""
    if replaced is None:
        return adjoints
    if len(replaced) != len(adjoints):
        raise GraphError(f"a hook on {node.name()} returned {len(replaced)} adjoints for {len(adjoints)}.")
    return tuple(
        [None if new is None else _replacement(node, new, old) for new, old in zip(replaced, adjoints, strict=True)]
    )


def _replacement(node: Node, replaced: Any, adjoint: Any) -> Any:
    """The Tensor that a hook returned in place of an adjoint; None keeps it."""
    if replaced is None:
        return adjoint
    if not isinstance(replaced, Tensor):
        raise GraphError(f"a hook on {node.name()} returned {replaced!r}. Return a Tensor, or None to change nothing.")
    if adjoint is not None and (replaced.shape != adjoint.shape or replaced.dtype != adjoint.dtype):
        raise GraphError(
            f"a hook on {node.name()} returned {replaced.dtype} of shape {replaced.shape} for an adjoint of "
            f"{adjoint.dtype} of shape {adjoint.shape}. Keep shape and dtype."
        )
    return replaced


def _arguments(node: Node, adjoints: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a backward that takes Tensors."""
    return tuple(
        [
            (Tensor(np.zeros(*spec)) if node._materialize_grads else None) if adjoint is None else _as_tensor(adjoint)
            for adjoint, spec in zip(adjoints, node.outputs, strict=True)
        ]
    )


def _fill_zeros(node: Node, tangents: Sequence[Array | None]) -> list[Array | None]:
    """The tangents with zeros for each real input that has none."""
    found = []
    for position, (edge, tangent) in enumerate(zip(node.edges, tangents, strict=True)):
        if tangent is None:
            spec = edge[0].outputs[edge[1]] if edge else node.constants[position] if node.constants else None
            tangent = None if spec is None else np.zeros(*spec)
        found.append(tangent)
    return found


def _check_unwritten(node: Node, adjoints: Sequence[Any]) -> None:
    """Raise if backward wrote to an adjoint, which other nodes may need."""
    for position, adjoint in enumerate(adjoints):
        if adjoint is not None and adjoint.version and not adjoint.requires_grad:
            raise GraphError(
                f"{node.name()}: backward wrote to its argument, the adjoint of output {position}, which other nodes "
                "may need. Write to a new array, or to a copy of it."
            )


def _wrong_count(node: Node, results: tuple[Any, ...]) -> GraphError:
    return GraphError(
        f"{node.name()}: backward returned {len(results)} adjoints for {len(node.edges)} inputs. "
        "Return one for each input, None where there is none."
    )


def _as_tensor(values: Any) -> Tensor:
    if type(values) is Tensor:
        return values
    data = values if type(values) is ndarray else np.asarray(values)
    return Tensor(data if data.flags.c_contiguous else data.copy(order="C"))


def _convert(node: Node, position: int, result: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A result of backward in the input's shape and dtype."""
    if switch.enabled:
        data = _require_tensor(node, position, result)
    elif type(result) is ndarray:
        data = result if node.function._on_arrays else _lock(result)
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
    """The adjoint of an operand of that shape: summed over the axes along which it was broadcast."""
    lead = adjoint.ndim - len(shape)
    if lead < 0:  # an operand of put may have more axes, of length 1
        adjoint, lead = adjoint.reshape((1,) * -lead + adjoint.shape), 0
    axes = (*range(lead), *[lead + i for i, n in enumerate(shape) if n == 1])
    return np.add.reduce(adjoint, axis=axes).reshape(shape)


def _lock(array: Array) -> Array:
    """An adjoint that a user's Function returned, locked against writing while it is needed."""
    if array.base is None:
        array.setflags(False)  # type: ignore[call-arg]  # to write to this memory again raises
    elif array.flags.writeable:  # a view may be of a workspace that is used again soon
        array = array.copy()
    return array


def _require_tensor(node: Node, position: int, result: Any) -> Any:
    """An adjoint that belongs to a graph."""
    if type(result) is not Tensor and not node.function._on_arrays:
        raise GraphError(
            f"{node.name()}: the adjoint of input {position} is {type(result).__name__}, not a Tensor, so a second "
            "derivative would miss it. With once_differentiable = False, write backward in Tensor operations."
        )
    return _as_tensor(result)


class OnceDifferentiable(Function):
    """The Function behind the results of a backward that was not recorded: differentiating them again raises."""

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Any) -> Any:
        raise GraphError(_describe_once(ctx.differentiated))

    @staticmethod
    def jvp(ctx: Context, *tangents: Any) -> Any:
        raise MissingJvp(_describe_once(ctx.differentiated))


def _describe_once(name: str) -> str:
    return (
        f"{name}: its backward is not recorded, so its gradient cannot be differentiated again. Of a rollout, and of "
        "sub-steps, take gauss_newton, or a jacobian of residuals, in place of the Hessian. In a Function of your own, "
        "write backward in Tensor operations and Functions, and set once_differentiable = False."
    )


def _run_once(node: Node, adjoints: Sequence[Any]) -> Any:
    """Call a backward without recording; its results still depend on the adjoints and on the node's inputs."""
    with no_grad():
        results = node.function.backward(node, *[None if a is None else a.detach() for a in adjoints])
    results = results if type(results) is tuple else (results,)
    edges = (*[None if a is None else a._edge for a in adjoints], *node.edges)
    end = begin(Context(), OnceDifferentiable, edges)
    end.differentiated = node.name()
    end.sequence = next(sequence)
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
