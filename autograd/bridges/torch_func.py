"""A function on Tensors under torch.func: its node has setup_context, backward, jvp and vmap that compose.

The node keeps no graph of ours, as torch may transform each of its calls: backward and jvp run the function again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..compose.functional import linearize
from ..compose.pipe import combine
from ..compose.replay import Step, name_of
from ..errors import GraphError
from ..function import Context, Function
from ..graph import grad
from ..mode import enable_grad, is_grad_enabled, no_grad
from ..tensor import Tensor
from .torch_values import from_torch_value, to_torch_value


def is_transformed(torch: Any) -> bool:
    """True inside a transformation of torch.func, and where torch pushes tangents."""
    return bool(torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0)


@functools.cache
def transformable_node() -> Any:
    """Make the torch Function for calls under torch.func."""
    import torch

    def apply(fn: Step, *inputs: Any) -> tuple[Any, ...]:
        return tuple_of(Transformable.apply(fn, *inputs))

    class Transformable(torch.autograd.Function):  # torch is imported here
        """fn(*inputs), without a graph."""

        @staticmethod
        def forward(fn: Step, *inputs: Any) -> Any:
            arguments = [from_torch_value("to_torch", x) if isinstance(x, torch.Tensor) else x for x in inputs]
            result = fn(*arguments)
            found = tuple([to_torch_value(y) for y in tuple_of(result)])
            return found if type(result) is tuple else found[0]

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.fn, *given = inputs
            ctx.others = [None if isinstance(x, torch.Tensor) else x for x in given]
            tensors = [x if isinstance(x, torch.Tensor) else None for x in given]
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            ctx.mark_non_differentiable(*[y for y in tuple_of(output) if not y.is_floating_point()])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx: Any, *adjoints: Any) -> tuple[Any, ...]:
            needed, inputs = ctx.needs_input_grad[1:], _inputs(ctx)
            given = [adj is not None and adj.is_floating_point() for adj in adjoints]
            seeds = [adj for adj, there in zip(adjoints, given, strict=True) if there]
            found = iter(apply(_adjoint(ctx.fn, given, needed), *seeds, *inputs))
            return None, *[next(found) if need else None for need in needed]

        @staticmethod
        def jvp(ctx: Any, _: None, *tangents: Any) -> Any:
            moved = [dx is not None for dx in tangents]
            found = apply(_tangent(ctx.fn, moved), *[dx for dx in tangents if dx is not None], *_inputs(ctx))
            return found if len(found) > 1 else found[0]

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], fn: Step, *inputs: Any) -> Any:
            rows = []
            for row in range(info.batch_size):
                own = [x if at is None else x.select(at, row) for x, at in zip(inputs, in_dims[1:], strict=True)]
                rows.append(Transformable.apply(fn, *own))
            if type(rows[0]) is tuple:
                return tuple([torch.stack(parts) for parts in zip(*rows, strict=True)]), (0,) * len(rows[0])
            return torch.stack(rows), 0

    return Transformable


def tuple_of(result: Any) -> tuple[Any, ...]:
    """Return a result as a tuple."""
    return result if type(result) is tuple else (result,)


def _inputs(ctx: Any) -> list[Any]:
    return [other if x is None else x for x, other in zip(ctx.saved_tensors, ctx.others, strict=True)]


def _leaves(inputs: Sequence[Any], needed: Sequence[bool]) -> list[Any]:
    """Let the inputs that are needed require a gradient."""
    return [
        x.detach().requires_grad_() if need and not x.requires_grad else x
        for x, need in zip(inputs, needed, strict=True)
    ]


def _adjoint(fn: Step, given: Sequence[bool], needed: Sequence[bool]) -> Step:
    """Make the adjoint of fn by the needed inputs: a function of the given adjoints, and the inputs."""

    def adjoint(*values: Any) -> tuple[Tensor, ...]:
        seeds = list(values[: sum(given)])
        recording = is_grad_enabled() and any([isinstance(x, Tensor) and x.requires_grad for x in values])
        arguments = _leaves(values[sum(given) :], needed)
        with enable_grad():
            outputs = tuple_of((fn if recording else combine(fn, save="all"))(*arguments))
        wanted = [x for x, need in zip(arguments, needed, strict=True) if need]
        chosen = [y for y, there in zip(outputs, given, strict=True) if there]
        pairs = [(y, seed) for y, seed in zip(chosen, seeds, strict=True) if y.requires_grad]
        if not pairs:
            return tuple([x.detach() * 0.0 for x in wanted])
        ys, own = zip(*pairs, strict=True)
        with enable_grad() if recording else no_grad():
            found = grad(ys, wanted, own, retain_graph=True, create_graph=recording, allow_unused=True)
        return tuple([x.detach() * 0.0 if adj is None else adj for x, adj in zip(wanted, found, strict=True)])

    adjoint.__name__ = f"{name_of(fn)}Backward"
    return adjoint


def _tangent(fn: Step, moved: Sequence[bool]) -> Callable[..., Any]:
    """Make the tangent of fn: a function of the tangents of the inputs that move, and the inputs."""

    def tangent(*values: Any) -> Any:
        return _Push.apply(fn, tuple(moved), *values)

    tangent.__name__ = f"{name_of(fn)}Tangent"
    return tangent


class _Push(Function):
    """Tangents of the results of fn, from those of its inputs."""

    @staticmethod
    def forward(ctx: Context, fn: Step, moved: tuple[bool, ...], *values: Any) -> Any:
        tangents, inputs = values[: sum(moved)], values[sum(moved) :]
        arguments = _leaves([x.detach() if isinstance(x, Tensor) else x for x in inputs], moved)
        with enable_grad():
            outputs = tuple_of(combine(fn, save="all")(*arguments))
        push = linearize(outputs, [x for x, moves in zip(arguments, moved, strict=True) if moves])
        return push(*[dx.data for dx in tangents])

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor) -> tuple[None, ...]:
        raise GraphError("tangents of to_torch are not differentiated in reverse; use torch.func.vjp inside of jvp.")
