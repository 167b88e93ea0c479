"""Putting functions together: `pipe` and `compose` nest them, `checkpoint` and `combine` make one node of them.

`compare.compare` tells what the one costs against the other. In all of them a plain tuple of results becomes the
arguments of the next function, as in `g(*f(x))`; anything else is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from .errors import GraphError, InputError
from .function import AccumulateGrad, Context, Function, leaf_node
from .graph import ancestors, grad
from .mode import enable_grad, is_grad_enabled, no_grad
from .tensor import Array, Tensor

Step = Callable[..., Any]
Adjoints = tuple[Tensor | None, ...]


def pipe(x: Any, *functions: Step) -> Any:
    """`pipe(x, f, g, h)` is `h(g(f(x)))`, and so is its graph. Several arguments of f are given as a tuple."""
    for function in functions:
        x = function(*x) if type(x) is tuple else function(x)
    return x


def compose(*functions: Step) -> Step:
    """`compose(h, g, f)(*x)` is `h(g(f(*x)))`, and so is its graph. Errors: InputError without functions."""
    if not functions:
        raise InputError("compose", "one function or more", "none", "Pass the functions, the last one first.")
    first, *rest = functions[::-1]

    def composed(*inputs: Any) -> Any:
        x = first(*inputs)
        for function in rest:  # as in pipe, without the cost of a call
            x = function(*x) if type(x) is tuple else function(x)
        return x

    composed.__name__ = f"compose({', '.join(map(_name, functions))})"
    return composed


def checkpoint(fn: Step, *inputs: Any) -> Any:
    """`fn(*inputs)` as one node that keeps only the inputs: backward runs fn again to have its intermediate results.

    `inputs` are Tensors or anything else; arrays are copied, other objects must not change until backward. fn returns
    a Tensor or a plain tuple of Tensors, depends on nothing but its inputs, and gives the same results each time.
    Errors: GraphError when fn depends on a Tensor that requires a gradient and is not among `inputs` (alone or inside
    another object, found by backward at the latest), or gives other results when it runs again; InputError when it
    returns something else. Results count as the same when sum and sum of magnitudes agree to half of the digits.
    """
    return _apply(Checkpoint, fn, inputs)


def combine(*functions: Step, save: Literal["inputs", "all"] = "inputs") -> Step:
    """A function that applies `functions` one after another, the first one first, as one node of the graph.

    With save="inputs" it is a `checkpoint`: little memory, and backward runs the functions again. With save="all" it
    keeps what their backward needs, as the nested graph would. The node is called Combine(f, g, ...)Backward.
    Errors: those of `checkpoint`, with save="all" already when the functions run; InputError without functions.
    """
    if not functions or save not in ("inputs", "all"):
        constraint = 'one function or more, and save="inputs" or save="all"'
        raise InputError("combine", constraint, f"{len(functions)} functions, save={save!r}", "Pass these.")
    node: type[Function] = type(
        f"Combine({', '.join(map(_name, functions))})", (Checkpoint if save == "inputs" else Keep,), {}
    )
    composed = compose(*functions[::-1])

    def combined(*inputs: Any) -> Any:
        return _apply(node, composed, inputs)

    return combined


def _name(function: Step) -> str:
    owner = getattr(function, "__self__", None)  # of Square.apply: the Function
    return owner.__name__ if isinstance(owner, type) else getattr(function, "__name__", type(function).__name__)


class Checkpoint(Function):
    """fn(*inputs), replayed by backward."""

    @staticmethod
    def forward(ctx: Context, fn: Step, *inputs: Any) -> Any:
        arguments = detached(inputs)
        saved: list[Any] = [*arguments, fn]
        ctx.save_for_backward(*saved)  # before the run: it must not write to its inputs
        result = fn(*arguments)
        outputs = outputs_of(fn, result)
        ctx.set_materialize_grads(False)
        ctx.sums = _sums(outputs) if any(ctx.needs_input_grad) else None
        return _results(result, outputs)

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Tensor | None) -> tuple[Tensor | None, ...]:
        *saved, fn = ctx.saved_tensors
        arguments = detached(saved)
        with enable_grad():
            outputs = outputs_of(fn, fn(*arguments))
        _refuse_captured(fn, outputs, arguments)
        same = tuple([(y.shape, y.dtype) for y in outputs]) == ctx.outputs
        if not same or not _agree(ctx.sums, _sums(outputs), outputs):
            raise GraphError(
                f"{ctx.name()}: {_name(fn)} gave other results when it ran again for backward. Let it depend on its "
                "inputs alone: pass what changes (also the variable of a loop) as an input, and draw no random numbers."
            )
        return None, *pull_back(outputs, arguments, adj_outputs)


class Keep(Function):
    """fn(*inputs) with its inner graph kept for backward."""

    @staticmethod
    def forward(ctx: Context, fn: Step, *inputs: Any) -> Any:
        arguments = detached(inputs)
        recorded = any(ctx.needs_input_grad)
        with enable_grad() if recorded else no_grad():
            result = fn(*arguments)
        outputs = outputs_of(fn, result)
        if recorded:
            _refuse_captured(fn, outputs, arguments)
        ctx.save_for_backward(*arguments, *outputs)  # the outputs hold the inner graph, which free() thus drops
        ctx.set_materialize_grads(False)
        results = _results(result, outputs)
        constant = [y for y, inner in zip(_tuple(results), outputs, strict=True) if not inner.requires_grad]
        ctx.mark_non_differentiable(*constant)
        return results

    @staticmethod
    def backward(ctx: Context, *adj_outputs: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        count = len(ctx.edges) - 1
        return None, *pull_back(saved[count:], saved[:count], adj_outputs)


def _apply(node: type[Function], fn: Step, inputs: tuple[Any, ...]) -> Any:
    if is_grad_enabled() and not any([isinstance(x, Tensor) and x.requires_grad for x in inputs]):
        result = fn(*inputs)  # no node is made, so nothing later would notice a captured Tensor
        _refuse_captured(fn, outputs_of(fn, result), inputs)
        return result
    return node.apply(fn, *inputs)


def detached(inputs: Sequence[Any]) -> list[Any]:
    """What fn gets: leaves over the memory and version of Tensors, copies of arrays, all else as it is."""
    return [
        x.detach().requires_grad_(x.requires_grad)
        if isinstance(x, Tensor)
        else (x.copy() if isinstance(x, np.ndarray) else x)  # an array has no version that would tell of a change
        for x in inputs
    ]


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if type(result) is tuple else (result,)


def outputs_of(fn: Step, result: Any) -> tuple[Tensor, ...]:
    outputs = _tuple(result)
    if not outputs or not all([isinstance(y, Tensor) for y in outputs]):
        remedy = "Return its Tensors as a plain tuple."
        raise InputError(_name(fn), "a Tensor or a plain tuple of Tensors is returned", result, remedy)
    return outputs


def _results(result: Any, outputs: tuple[Tensor, ...]) -> Any:
    """What forward returns: Tensors of their own, so that linking them leaves fn's Tensors as they are."""
    results = tuple([y.detach() for y in outputs])
    return results if type(result) is tuple else results[0]


def _refuse_captured(fn: Step, outputs: tuple[Tensor, ...], arguments: Sequence[Any]) -> None:
    """Raise if the outputs depend on a leaf besides the arguments, whose reference cycles are cut on the way."""
    own = {leaf_node(x).sequence: leaf_node(x) for x in arguments if isinstance(x, Tensor) and x.requires_grad}
    for node in ancestors(outputs):
        if node.function is AccumulateGrad and node.sequence not in own:
            raise GraphError(
                f"{_name(fn)}: its results depend on a tensor of shape {node.outputs[0][0]} that requires a gradient "
                "and is not among the inputs (captured by a closure, or inside another object), so one node cannot "
                "give that gradient. Pass all such tensors as inputs, or detach() them."
            )
    for node in own.values():
        node.variable = None  # only backward() into leaves reads it, and the leaf would hold itself alive by it


def pull_back(outputs: Sequence[Tensor], arguments: Sequence[Any], adjoints: Sequence[Tensor | None]) -> Adjoints:
    """The adjoint of each argument through the recorded outputs, None where there is none."""
    wanted = [x for x in arguments if isinstance(x, Tensor) and x.requires_grad]
    pairs = [(y, adj) for y, adj in zip(outputs, adjoints, strict=True) if adj is not None and y.requires_grad]
    found: Adjoints = (None,) * len(wanted)
    if pairs:
        found = grad([y for y, _ in pairs], wanted, [adj for _, adj in pairs], retain_graph=True)
    adjoint = {id(x): adj for x, adj in zip(wanted, found, strict=True)}
    return tuple([adjoint.get(id(x)) for x in arguments])


def _sums(outputs: Sequence[Tensor]) -> Array:
    """For each output its sum and sum of magnitudes: tells, at little cost, whether a replay went another way."""
    with np.errstate(all="ignore"):
        return np.array([(np.sum(y.data, dtype="f8"), np.sum(abs(y.data), dtype="f8")) for y in outputs])


def _agree(first: Array, second: Array, outputs: Sequence[Tensor]) -> bool:
    eps = np.array([[eps_of(y.dtype)] for y in outputs])
    with np.errstate(all="ignore"):
        near = abs(first - second) <= np.sqrt(eps) * first[:, 1:]
    return bool(np.all(near | (first == second) | (np.isnan(first) & np.isnan(second))))


# --- what the one costs against the other


def eps_of(dtype: np.dtype[Any]) -> float:
    """The rounding unit of a dtype, 0 of integers."""
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
