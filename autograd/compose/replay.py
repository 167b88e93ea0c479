"""The nodes of `checkpoint` and `combine`: a function as one node, its inner graph replayed or kept.

Both run the function on Tensors that are cut from the surrounding graph, and differentiate the graph recorded between
these and the results. So forward mode and further derivatives come from the Functions inside, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ..errors import GraphError, InputError
from ..function import Context, Function
from ..graph import grad, origin
from ..mode import enable_grad, is_grad_enabled, no_grad
from ..tensor import Array, Tensor
from .functional import linearize

Step = Callable[..., Any]
Outputs = tuple[Tensor, ...]
Adjoints = tuple[Tensor | None, ...]


class Checkpoint(Function):
    """fn(*inputs), replayed by backward."""

    once_differentiable = False

    @staticmethod
    def forward(ctx: Context, *inputs_and_fn: Any) -> Any:
        *inputs, fn = copy_arrays(inputs_and_fn)
        ctx.save_for_backward(*inputs, fn)  # before the run: it must not write to its inputs
        result = fn(*detach_inputs(inputs))
        outputs = outputs_of(fn, result)
        ctx.set_materialize_grads(False)
        ctx.sums = _sums(outputs) if any(ctx.needs_input_grad) else None
        return _results(result, outputs)

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Tensor | None) -> Adjoints:
        *inputs, fn = ctx.saved_tensors
        outputs, arguments = _replay(ctx, fn, inputs, ctx.sums)
        return *pull_back(outputs, arguments, adj_outputs, create_graph=is_grad_enabled()), None

    @staticmethod
    def jvp(ctx: Context, *tangents: Array | None) -> tuple[Array, ...]:
        *inputs, fn = ctx.saved_tensors
        return _push_forward(*_replay(ctx, fn, inputs, ctx.sums), tangents[:-1])


class Keep(Function):
    """fn(*inputs) with its inner graph kept for backward."""

    once_differentiable = False

    @staticmethod
    def forward(ctx: Context, *inputs_and_fn: Any) -> Any:
        *inputs, fn = copy_arrays(inputs_and_fn)
        arguments = detach_inputs(inputs)
        if any(ctx.needs_input_grad):
            outputs, result = _record(fn, arguments)
        else:
            with no_grad():
                result = fn(*arguments)
            outputs = outputs_of(fn, result)
        # The outputs hold the inner graph, which free() thus drops; a second derivative begins at the inputs.
        ctx.save_for_backward(*inputs, *arguments, *outputs, fn)
        ctx.set_materialize_grads(False)
        results = _results(result, outputs)
        constant = [y for y, inner in zip(_tuple(results), outputs, strict=True) if not inner.requires_grad]
        ctx.mark_non_differentiable(*constant)
        return results

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Tensor | None) -> Adjoints:
        fn, inputs, arguments, outputs = Keep._saved_parts(ctx)
        if is_grad_enabled():  # the kept graph is cut from that of the inputs, where a second derivative must lead
            outputs, arguments = _replay(ctx, fn, inputs, _sums(outputs))
            return *pull_back(outputs, arguments, adj_outputs, create_graph=True), None
        return *pull_back(outputs, arguments, adj_outputs, retain_graph=True), None

    @staticmethod
    def jvp(ctx: Context, *tangents: Array | None) -> tuple[Array, ...]:
        arguments, outputs = Keep._saved_parts(ctx)[2:]
        return _push_forward(outputs, arguments, tangents[:-1])

    @staticmethod
    def _saved_parts(ctx: Context) -> tuple[Step, list[Any], list[Any], Outputs]:
        *saved, fn = ctx.saved_tensors
        count = len(ctx.edges) - 1
        return fn, saved[:count], saved[count : 2 * count], tuple(saved[2 * count :])


def apply(node: type[Function], fn: Step, inputs: tuple[Any, ...]) -> Any:
    """fn(*inputs) as a node of that kind, if a gradient is needed."""
    if is_grad_enabled() and not any([isinstance(x, Tensor) and x.requires_grad for x in inputs]):
        result = fn(*inputs)  # no node is made, so no later check would find a captured Tensor
        _refuse_captured(fn, outputs_of(fn, result), inputs)
        return result
    return node.apply(*inputs, fn)  # fn last, so that the numbers of inputs in messages are the caller's


def name_of(function: Step) -> str:
    """The name of a function in messages: of the Function for its `apply`, of the inner function for a partial."""
    if isinstance(function, partial):
        return name_of(function.func)
    owner = getattr(function, "__self__", None)  # of Square.apply: the Function
    return owner.__name__ if isinstance(owner, type) else getattr(function, "__name__", type(function).__name__)


# --- running a function by itself


def copy_arrays(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Copies of arrays, which have no version that would show a change; other values as they are."""
    return tuple([x.copy() if isinstance(x, np.ndarray) else x for x in inputs])


def detach_inputs(inputs: Sequence[Any]) -> list[Any]:
    """The arguments of fn: leaves over the memory and version of Tensors, copies of arrays, other values unchanged."""
    return [x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in copy_arrays(inputs)]


def _clone_inputs(inputs: Sequence[Any]) -> list[Any]:
    """The arguments of fn if its adjoint is to be differentiated: copies inside the graph of the inputs.

    A gradient with respect to such a copy does not pass through the graph of other inputs.
    """
    return [x.clone() if isinstance(x, Tensor) and x.requires_grad else x for x in copy_arrays(inputs)]


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if type(result) is tuple else (result,)


def outputs_of(fn: Step, result: Any) -> Outputs:
    """The results of fn, which must be Tensors."""
    outputs = _tuple(result)
    if not outputs or not all([isinstance(y, Tensor) for y in outputs]):
        remedy = "Return its Tensors as a plain tuple."
        raise InputError(name_of(fn), "a Tensor or a plain tuple of Tensors is returned", result, remedy)
    return outputs


def _results(result: Any, outputs: Outputs) -> Any:
    """The results of forward: aliases, so that linking them leaves fn's Tensors as they are."""
    results = tuple([y.detach() for y in outputs])
    return results if type(result) is tuple else results[0]


def _record(fn: Step, arguments: Sequence[Any]) -> tuple[Outputs, Any]:
    """The outputs of fn with their graph, which begins at the arguments, and its result as it is."""
    with enable_grad():
        result = fn(*arguments)
    outputs = outputs_of(fn, result)
    _refuse_captured(fn, outputs, arguments)
    return outputs, result


def _replay(ctx: Context, fn: Step, inputs: Sequence[Any], sums: Array) -> tuple[Outputs, list[Any]]:
    """The outputs and the arguments of fn in a graph of their own, or of the inputs if backward is recorded."""
    arguments = _clone_inputs(inputs) if is_grad_enabled() else detach_inputs(inputs)
    outputs, _ = _record(fn, arguments)
    same = tuple([(y.shape, y.dtype) for y in outputs]) == ctx.outputs
    if not same or not _agree(sums, _sums(outputs), outputs):
        raise GraphError(
            f"{ctx.name()}: {name_of(fn)} gave other results when it ran again for backward. Let it depend on its "
            "inputs alone: pass changing values (also the variable of a loop) as inputs, and draw no random numbers."
        )
    return outputs, arguments


def _refuse_captured(fn: Step, outputs: Outputs, arguments: Sequence[Any]) -> None:
    """Raise GraphError if the graph of the outputs reaches beyond the arguments."""
    seen = {origin(x)[0] for x in arguments if isinstance(x, Tensor) and x.requires_grad}
    waiting = [y._edge[0] for y in outputs if y._edge is not None]
    while waiting:
        node = waiting.pop()
        if node.sequence in seen:
            continue
        seen.add(node.sequence)
        if node.freed:
            raise GraphError(
                f"{name_of(fn)}: its results depend on a {node.name()} that was freed by an earlier backward. "
                "Pass results computed outside as inputs, and retain_graph=True to that backward."
            )
        if node.is_accumulator:
            raise GraphError(
                f"{name_of(fn)}: its results depend on a tensor of shape {node.outputs[0][0]} that requires a gradient "
                "and is not among the inputs (captured by a closure, or inside another object), so one node cannot "
                "give that gradient. Pass all such tensors as inputs, or detach() them."
            )
        waiting.extend([parent for parent, _ in node.parents()])


# --- derivatives of the recorded graph


def pull_back(
    outputs: Sequence[Tensor],
    arguments: Sequence[Any],
    adjoints: Sequence[Tensor | None],
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> Adjoints:
    """The adjoint of each argument through the recorded outputs, None where there is none. Options: those of `grad`."""
    wanted = [x for x in arguments if isinstance(x, Tensor) and x.requires_grad]
    pairs = [(y, adj) for y, adj in zip(outputs, adjoints, strict=True) if adj is not None and y.requires_grad]
    found: Adjoints = (None,) * len(wanted)
    if pairs:
        found = grad(
            [y for y, _ in pairs],
            wanted,
            [adj for _, adj in pairs],
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    adjoint = {id(x): adj for x, adj in zip(wanted, found, strict=True)}
    return tuple([adjoint.get(id(x)) for x in arguments])


def _push_forward(
    outputs: Sequence[Tensor], arguments: Sequence[Any], tangents: Sequence[Array | None]
) -> tuple[Array, ...]:
    """The tangent of each output. Errors: MissingJvp, naming a Function inside that has none."""
    pairs = [(x, dx) for x, dx in zip(arguments, tangents, strict=True) if dx is not None]
    return linearize(outputs, [x for x, _ in pairs])(*[dx for _, dx in pairs])


# --- comparison of a replay with the first run


def _sums(outputs: Sequence[Tensor]) -> Array:
    """Weighted sums of values and magnitudes of each output: a cheap comparison of a replay with the first run."""
    with np.errstate(all="ignore"):
        return np.array([_weighted_sums(y.data.reshape(-1)) for y in outputs])


def _weighted_sums(values: Array) -> tuple[float, float]:
    """Sums with weights that differ from place to place, so that the same values in other places give other sums."""
    total = magnitude = 0.0
    for number, begin in enumerate(range(0, values.size, _CHUNK), start=1):
        part = values[begin : begin + _CHUNK].astype("f8", copy=False)
        weights, factor = _weights()[: part.size], 1 + number * _GOLDEN % 1
        total += factor * float(weights @ part)
        magnitude += factor * float(weights @ abs(part))
    return total, magnitude


_CHUNK = 1 << 16
_GOLDEN = (5**0.5 - 1) / 2  # its multiples modulo 1 are all different, and spread evenly


@cache
def _weights() -> Array:
    return 1 + np.arange(_CHUNK) * _GOLDEN % 1


def _agree(first: Array, second: Array, outputs: Sequence[Tensor]) -> bool:
    eps = np.array([[eps_of(y.dtype)] for y in outputs])
    with np.errstate(all="ignore"):
        near = abs(first - second) <= np.sqrt(eps) * first[:, 1:]
    return bool(np.all(near | (first == second) | (np.isnan(first) & np.isnan(second))))


def eps_of(dtype: np.dtype[Any]) -> float:
    """The rounding unit of a dtype, 0 for integers."""
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
