"""PyTorch both ways: a function on Tensors as a torch function, a torch function or module as a Function.

Values are copied in both directions, so that in-place operations of one side do not change the saved state of the
other. Shapes and dtypes stay the same. Tensors of torch are on the CPU. PyTorch is needed only if these functions are
called: `pip install 'simphys[torch]'`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compose.pipe import combine
from ..compose.replay import Step, copy_arrays, name_of
from ..errors import InputError
from ..function import Context, Function
from ..graph import grad
from ..kernels.runtime import settings
from ..mode import enable_grad, no_grad
from ..tensor import Array, Tensor
from .torch_func import is_transformed, transformable_node, tuple_of
from .torch_records import FlatArguments, flattened, holds_tensors
from .torch_values import from_torch_value, to_torch_value

TorchStep = Callable[..., Any]


def to_torch(fn: Step, *, dtype: Any = None) -> TorchStep:
    """`fn` on tensors of torch, as one node of torch's graph: a Function's `apply`, a composed step, a rollout.

    Tensors of torch among the arguments become Tensors, also those that are fields of a record, such as
    `params.replace(mass=torch_mass)`; other arguments are passed on unchanged. fn returns a Tensor, a plain tuple of
    Tensors, or a record, whose fields become tensors of torch. It depends on no other Tensor that requires a gradient.
    Its graph is freed when torch frees its own. With create_graph, gradients of gradients are those of fn, which runs
    again for them.
    dtype, such as torch.float32: arguments of any floating dtype are converted to the precision of the runtime for fn,
    and its results to dtype; gradients have the dtypes of the arguments.
    Under torch.func (grad, vjp, jvp, vmap, jacrev, jacfwd, hessian) fn runs again for each derivative, and once for
    each element of vmap; torch.compile leaves it alone.
    Errors: InputError without PyTorch, for a tensor on another device than the CPU or of a dtype that NumPy lacks, and
    for another result; GraphError for a captured Tensor, and for a second derivative through a Function that is
    `once_differentiable`.
    """
    torch = _torch("to_torch")
    single = _to_torch(plain := flattened(fn), dtype)

    def call(*inputs: Any) -> Any:
        if not any([holds_tensors(x, torch.Tensor) for x in inputs]):
            return plain.rebuild(single(*inputs))
        flat = FlatArguments(inputs, torch.Tensor)
        own = flattened(fn, flat.rebuild)
        return own.rebuild(_to_torch(own, dtype)(*flat.values))

    call.__name__ = f"to_torch({name_of(fn)})"
    return torch.compiler.disable(call)  # torch.compile breaks its graph here, and leaves it alone


def _to_torch(fn: Step, dtype: Any) -> TorchStep:
    torch = _torch("to_torch")
    name = name_of(fn)
    base = _torch_node()
    node = type(base)(name, (base,), {})
    combined = combine(fn, save="all")  # refuses captured tensors and other results, which would be silently wrong

    @functools.wraps(fn)
    def refuse_captured(*arguments: Any) -> Any:
        recorded = any([isinstance(x, Tensor) and x.requires_grad for x in arguments])
        return fn(*arguments) if recorded else combined(*arguments)

    def call(*inputs: Any) -> Any:
        def apply(*given: Any) -> Any:
            if is_transformed(torch):
                return transformable_node().apply(refuse_captured, *given)
            return node.apply(fn, combined, torch.is_grad_enabled(), *given)

        if dtype is None:
            return apply(*inputs)
        own = torch.float64 if settings().precision == "f64" else torch.float32
        moved = [x.to(own) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
        found = apply(*moved)
        results = [y.to(dtype) if y.is_floating_point() else y for y in (found if type(found) is tuple else (found,))]
        return tuple(results) if type(found) is tuple else results[0]

    return call


def from_torch(fn: TorchStep) -> Step:
    """`fn` on Tensors, as one node of the graph: a torch module, or any function on tensors of torch.

    Tensors among the arguments become tensors of torch; other arguments are passed on unchanged. fn returns a tensor or
    a plain tuple of them. Each backward through the node also adds to `.grad` of the module's parameters, and of all
    else that fn depends on in torch: in `jacobian` and `gradcheck`, too. So fn cannot be part of a `checkpoint` or of
    `combine`, unless it is a module without parameters that require a gradient. Gradients are differentiable once;
    forward mode works if torch differentiates fn twice.
    Errors: InputError without PyTorch, and for results that are not tensors on the CPU of a dtype that NumPy has.
    """
    torch = _torch("from_torch")
    node: Any = type(f"Torch({name_of(fn)})", (_FromTorch,), {})
    # A stand-in for all that fn captures: it makes a node even if no input requires a gradient.
    captured = Tensor(np.zeros(())).requires_grad_()
    constant = captured.detach()

    def call(*inputs: Any) -> Any:
        frozen = isinstance(fn, torch.nn.Module) and not any(p.requires_grad for p in fn.parameters())
        return node.apply(fn, constant if frozen else captured, *inputs)

    call.__name__ = f"from_torch({name_of(fn)})"
    return call


# --- fn on Tensors as a node of torch


@functools.cache
def _torch_node() -> Any:
    """The base class of the nodes of `to_torch`."""
    torch = _torch("to_torch")

    class ToTorch(torch.autograd.Function):  # type: ignore[name-defined]  # torch is imported here
        """fn(*inputs) with its graph kept for backward."""

        @staticmethod
        def forward(ctx: Any, fn: Step, combined: Step, recording: bool, *inputs: Any) -> Any:
            ctx.fn, ctx.combined = fn, combined
            ctx.needed = [recording and need for need in ctx.needs_input_grad[3:]]
            ctx.set_materialize_grads(False)
            arguments, result = _record(combined, inputs, ctx.needed)
            outputs = tuple_of(result)
            results = tuple([to_torch_value(y) for y in outputs])
            ctx.mark_non_differentiable(*[r for r, y in zip(results, outputs, strict=True) if not y.requires_grad])
            # The graph hangs on a tensor that torch saves, so that torch frees it with all else that it saved.
            graph = torch.empty(0, device="cpu")
            graph.of_simphys = arguments, result
            ctx.save_for_backward(graph, *[x if isinstance(x, torch.Tensor) else None for x in inputs])
            ctx.others = copy_arrays([None if isinstance(x, torch.Tensor) else x for x in inputs])
            return results if type(result) is tuple else results[0]

        @staticmethod
        def backward(ctx: Any, *adjoints: Any) -> tuple[Any, ...]:
            graph, *tensors = ctx.saved_tensors
            inputs = [other if x is None else x for x, other in zip(tensors, ctx.others, strict=True)]
            if torch.is_grad_enabled():  # create_graph: the adjoint is a function on Tensors, too
                found = iter(to_torch(_adjoint_of(ctx.fn, adjoints))(*[a for a in adjoints if a is not None], *inputs))
            else:
                # A hook on saved tensors, as of torch.utils.checkpoint, may have replaced `graph` by a copy.
                recorded = getattr(graph, "of_simphys", None) or _record(ctx.combined, inputs, ctx.needed)
                arguments, result = recorded
                seeds = [None if adj is None else from_torch_value("to_torch", adj) for adj in adjoints]
                pulled = _pull(arguments, result, seeds)
                found = iter([None if adj is None else to_torch_value(adj) for adj in pulled])
            return None, None, None, *[next(found) if needed else None for needed in ctx.needed]

    return ToTorch


def _record(combined: Step, inputs: Sequence[Any], needed: Sequence[bool]) -> tuple[list[Any], Any]:
    """Run the function: its arguments, and its result, which is one node if a gradient is needed."""
    torch = _torch("to_torch")
    arguments = [
        from_torch_value("to_torch", x).requires_grad_(need) if isinstance(x, torch.Tensor) else x
        for x, need in zip(inputs, needed, strict=True)
    ]
    with enable_grad() if any(needed) else no_grad():
        return arguments, combined(*arguments)


def _pull(
    arguments: Sequence[Any], result: Any, seeds: Sequence[Tensor | None], *, create_graph: bool = False
) -> tuple[Tensor | None, ...]:
    """The adjoint of each argument that requires a gradient, through the recorded result."""
    wanted = [x for x in arguments if isinstance(x, Tensor) and x.requires_grad]
    pairs = [(y, seed) for y, seed in zip(tuple_of(result), seeds, strict=True) if seed is not None and y.requires_grad]
    if not pairs:
        return (None,) * len(wanted)
    ys, seeds = zip(*pairs, strict=True)
    return grad(ys, wanted, seeds, retain_graph=True, create_graph=create_graph, allow_unused=True)


def _adjoint_of(fn: Step, adjoints: Sequence[Any]) -> Step:
    """The adjoint of fn as a function of the given adjoints (not None) and the inputs."""
    given = [adj is not None for adj in adjoints]

    def adjoint(*values: Any) -> tuple[Tensor, ...]:
        seeds, inputs = iter(values[: sum(given)]), values[sum(given) :]
        pulled = _pull(inputs, fn(*inputs), [next(seeds) if g else None for g in given], create_graph=True)
        wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
        return tuple(
            [Tensor(np.zeros_like(x.data)) if adj is None else adj for x, adj in zip(wanted, pulled, strict=True)]
        )

    adjoint.__name__ = f"{name_of(fn)}Backward"
    return adjoint


# --- fn in torch as a node of ours


class _FromTorch(Function):
    """fn(*inputs), where fn computes and differentiates in torch. Saved: torch's graph, by its ends."""

    @staticmethod
    def forward(ctx: Context, fn: TorchStep, captured: Tensor, *inputs: Any) -> Any:
        torch = _torch("from_torch")
        recorded = any(ctx.needs_input_grad)
        needed = ctx.needs_input_grad[2:]
        arguments = [
            to_torch_value(x).requires_grad_(need) if isinstance(x, Tensor) else x
            for x, need in zip(inputs, needed, strict=True)
        ]
        with torch.enable_grad() if recorded else torch.no_grad():
            result = fn(*arguments)
        outputs = tuple_of(result)
        if not outputs or not all([isinstance(y, torch.Tensor) for y in outputs]):
            remedy = "Return tensors of torch as a plain tuple."
            raise InputError(name_of(fn), "a tensor of torch or a plain tuple of them is returned", result, remedy)
        results = tuple([from_torch_value(name_of(fn), y) for y in outputs])
        ctx.save_for_backward([x if need else None for x, need in zip(arguments, needed, strict=True)], outputs)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[r for r, y in zip(results, outputs, strict=True) if not y.requires_grad])
        return results if type(result) is tuple else results[0]

    @staticmethod
    def backward(ctx: Context, *adjoints: Tensor | None) -> tuple[Any, ...]:
        leaves, outputs = ctx.saved_tensors
        for x in leaves:
            if x is not None:
                x.grad = None
        pairs = [(y, adj) for y, adj in zip(outputs, adjoints, strict=True) if adj is not None]
        # Not torch.autograd.grad, which would skip the parameters and all else that fn captures.
        _torch("from_torch").autograd.backward(
            [y for y, _ in pairs], [to_torch_value(adj) for _, adj in pairs], retain_graph=True
        )
        found = [None if x is None or x.grad is None else from_torch_value("from_torch", x.grad) for x in leaves]
        return None, None, *found

    @staticmethod
    def jvp(ctx: Context, _fn: None, _captured: None, *tangents: Array | None) -> tuple[Array | None, ...]:
        # The adjoint is linear in its seeds: its own adjoint with respect to them pushes tangents forward.
        torch = _torch("from_torch")
        leaves, outputs = ctx.saved_tensors
        seeds = [torch.zeros_like(y, requires_grad=True) if y.requires_grad else None for y in outputs]
        ys, us = [y for y in outputs if y.requires_grad], [u for u in seeds if u is not None]
        moved = [(x, torch.from_numpy(np.array(dx))) for x, dx in zip(leaves, tangents, strict=True) if dx is not None]
        adjoints = torch.autograd.grad(ys, [x for x, _ in moved], us, create_graph=True, allow_unused=True)
        pairs = [
            (adj, dx)
            for adj, (_, dx) in zip(adjoints, moved, strict=True)
            if adj is not None and adj.requires_grad  # else no output moves with it
        ]
        pushed = torch.autograd.grad([adj for adj, _ in pairs], us, [dx for _, dx in pairs], allow_unused=True)
        found = iter([None if dy is None else dy.numpy() for dy in pushed])
        return tuple([None if u is None else next(found) for u in seeds])


def _torch(source: str) -> Any:
    try:
        import torch
    except ImportError as error:
        remedy = "Install it: pip install 'simphys[torch]'."
        raise InputError(source, "PyTorch is needed", f"ImportError: {error}", remedy) from error
    return torch
