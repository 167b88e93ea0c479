"""An element function of kernels as a Function, so that gradcheck holds its adjoint and its tangent."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

Pack = Callable[[Any], SimpleNamespace]


def element(pack: Pack, width: int) -> Callable[[Tensor], Tensor]:
    """`pack(real)` has `f(x)`, `adj(x, g)` and `jvp(x, dx)` of vectors; the result maps rows [n, ...] to [n, width]."""

    class Element(Function):
        @staticmethod
        def forward(ctx: Context, x: Tensor) -> np.ndarray[Any, Any]:
            ctx.save_for_backward(x)
            y = np.empty((len(x.data), width), x.dtype)
            _kernels(pack, x.shape[1], width).forward(x, len(y), y)
            return y

        @staticmethod
        def backward(ctx: Context, g: Tensor) -> np.ndarray[Any, Any]:
            (x,) = ctx.saved_tensors
            adj_x = np.empty(x.shape, x.dtype)
            _kernels(pack, x.shape[1], width).adjoint(x, len(adj_x), g, adj_x)
            return adj_x

        @staticmethod
        def jvp(ctx: Context, dx: Any) -> np.ndarray[Any, Any]:
            (x,) = ctx.saved_tensors
            dy = np.empty((len(dx), width), x.dtype)
            _kernels(pack, x.shape[1], width).tangent(x, len(dy), dx, dy)
            return dy

    return Element.apply


@functools.cache
@no_type_check
def _kernels(pack: Pack, inputs: int, outputs: int) -> SimpleNamespace:
    real = runtime.real()
    f = pack(real)
    xs = ti.types.ndarray(dtype=ti.types.vector(inputs, real), ndim=1)
    ys = ti.types.ndarray(dtype=ti.types.vector(outputs, real), ndim=1)

    def forward(x, n, y):
        for i in range(n):
            y[i] = f.f(x[i])

    def adjoint(x, n, g, adj_x):
        for i in range(n):
            adj_x[i] = f.adj(x[i], g[i])

    def tangent(x, n, dx, dy):
        for i in range(n):
            dy[i] = f.jvp(x[i], dx[i])

    forward.__annotations__ = {"x": xs, "n": ti.i32, "y": ys}
    adjoint.__annotations__ = {"x": xs, "n": ti.i32, "g": ys, "adj_x": xs}
    tangent.__annotations__ = {"x": xs, "n": ti.i32, "dx": xs, "dy": ys}
    return SimpleNamespace(forward=kernel(forward), adjoint=kernel(adjoint), tangent=kernel(tangent))


def define(text: str, **names: Any) -> Any:
    """Define the function `formula` that this source text defines, which sees these names."""
    file = f"<formula {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), names)
    return names["formula"]
