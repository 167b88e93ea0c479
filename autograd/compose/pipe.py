"""Composition of functions: nested, combined or hybrid. `compare` measures the cost of one against the other.

- Nested: a graph of small nodes. `pipe` and `compose` are plain Python, so their graph is that of the nested calls.
- Combined: one node. Write a `Function` with the adjoint of the whole, or let `checkpoint` or `combine` make the node
  of nested functions. Their own rules then give its backward, its forward mode and its further derivatives.
- Hybrid: one node, a `Function` whose forward applies other Functions and whose backward uses theirs:

      class SumHybrid(Function):  # x^2 + sin y
          @staticmethod
          def forward(ctx, x, y):
              x, y = x.detach().requires_grad_(), y.detach().requires_grad_()  # where the inner graph begins
              with enable_grad():  # off inside a forward
                  z = Square.apply(x) + ops.sin(y)
              ctx.save_for_backward(x, y, z)  # z holds the inner graph
              return z.detach()

          @staticmethod
          def backward(ctx, adj):
              x, y, z = ctx.saved_tensors
              return grad(z, (x, y), [adj], retain_graph=True)  # freed with this node, not before

  It serves where `combine` cannot: with an adjoint written by hand for a part of the way, before or behind that `grad`.

A plain tuple of results becomes the arguments of the next function, as in `g(*f(x))`; anything else is passed on
unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any, Literal

from ..errors import InputError
from ..function import Function
from .replay import Checkpoint, Keep, Step, apply, name_of

_LAMBDA = "<lambda>"


def pipe(x: Any, *functions: Step) -> Any:
    """`pipe(x, f, g, h)` is `h(g(f(x)))`, with the same graph. Several arguments of f are passed as a tuple."""
    for function in functions:
        x = function(*x) if type(x) is tuple else function(x)
    return x


def compose(*functions: Step) -> Step:
    """`compose(h, g, f)(*x)` is `h(g(f(*x)))`, with the same graph. Errors: InputError without functions."""
    if not functions:
        raise InputError("compose", "one function or more", "none", "Pass the functions, the last one first.")
    first, *rest = functions[::-1]

    def composed(*inputs: Any) -> Any:
        x = first(*inputs)
        for function in rest:  # as in pipe, without the cost of a call
            x = function(*x) if type(x) is tuple else function(x)
        return x

    composed.__name__ = f"compose({', '.join(map(name_of, functions))})"
    return composed


def checkpoint(fn: Step, *inputs: Any) -> Any:
    """`fn(*inputs)` as one node that keeps only the inputs: backward runs fn again for its intermediate results.

    `inputs` are Tensors or other objects. Arrays are copied; other objects must not change until backward. fn returns
    a Tensor or a plain tuple of Tensors, depends only on its inputs, and gives the same results each time. Results
    count as the same if sum and sum of magnitudes agree to half of the digits.
    Errors: GraphError if fn depends on a Tensor that requires a gradient and is not among `inputs` (found by backward
    at the latest), or gives other results when it runs again; MissingJvp, in forward mode, for a Function inside
    without a jvp; InputError if fn returns something else.
    """
    return apply(Checkpoint, fn, inputs)


def combine(*functions: Step, save: Literal["inputs", "all"] | Collection[str] = "inputs") -> Step:
    """Make a function that applies `functions` one after another, the first one first, as one node of the graph.

    `save` selects the results that the node keeps for backward, which computes the others again:

    - "inputs": only the inputs, like a `checkpoint`. Backward holds the graph of all functions at once.
    - names of some of the functions: also their results. Backward goes from one kept result to the one before it, and
      holds the graph between the two. The name is `__name__`, for an `apply` that of the Function; a name that several
      functions share stands for all of these. The last function's result is not kept, as backward does not read it.
    - "all": the inner graph with all saved state, as if the functions were nested. Backward computes nothing again.

    The node is called Combine(f, g, ...)Backward. Each function is differentiated as often as its Functions can be. A
    second derivative (create_graph=True) runs all functions again, whatever was kept.
    Errors: those of `checkpoint`, with save="all" already when the functions run; InputError without functions, for
    names that none of them has, and for lambdas, which have none.
    """
    if not functions:
        raise InputError("combine", "one function or more", "none", "Pass the functions, the first one first.")
    base: type[Function] = Keep
    fn = _chain(functions)
    if save != "all":
        segments = _segments(functions, () if save == "inputs" else save)
        if len(segments) == 1:
            base = Checkpoint
        else:
            fn = _chain([_as_checkpoint(segment) for segment in segments])
    node = type(f"Combine({', '.join(map(name_of, functions))})", (base,), {})

    def combined(*inputs: Any) -> Any:
        return apply(node, fn, inputs)

    combined.__name__ = node.__name__
    return combined


def _chain(functions: Sequence[Step]) -> Step:
    return compose(*functions[::-1])


def _as_checkpoint(functions: Sequence[Step]) -> Step:
    fn = _chain(functions)

    def replayed(*inputs: Any) -> Any:
        return checkpoint(fn, *inputs)

    replayed.__name__ = fn.__name__
    return replayed


def _segments(functions: Sequence[Step], save: Collection[str]) -> list[Sequence[Step]]:
    """The functions, cut behind those that are named in `save`."""
    names = [name_of(function) for function in functions]
    known = [name for name in names if name != _LAMBDA]
    if isinstance(save, str) or not isinstance(save, Collection) or any(name not in known for name in save):
        raise InputError(
            "combine",
            f'save is "inputs", "all" or a list of names out of {known}',
            repr(save),
            "Name functions whose results are to be kept; define a lambda by def to name it.",
        )
    cuts = [i for i, name in enumerate(names[:-1], start=1) if name in save]
    return [functions[start:end] for start, end in pairwise([0, *cuts, len(functions)])]
