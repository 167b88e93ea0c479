"""Projection to the sphere: directions of length 1, and rates perpendicular to them.

    d' = d / |d|,   w' = w - (w.d') d'

A Runge-Kutta step leaves the sphere by its own error, which is of fifth order in the time step. The projection changes
this error, but not its order. Adjoint: adj_w = adj_w' - (adj_w'.d') d' and adj_d = (q - (q.d') d') / |d|, where
q = adj_d' - (w.d') adj_w' - (adj_w'.d') w is the total adjoint of d'. Source: Hairer, Lubich, Wanner, Geometric
Numerical Integration, section IV.4 (projection methods).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The projection, its adjoint and tangent."""
    vec = ti.types.vector(3, real)

    @ti.func
    def project(d: vec, w: vec):
        unit = d / ti.sqrt(d.dot(d))
        return unit, w - w.dot(unit) * unit

    @ti.func
    def adj_project(d: vec, w: vec, adj_unit: vec, adj_across: vec):
        size = ti.sqrt(d.dot(d))
        unit = d / size
        q = adj_unit - w.dot(unit) * adj_across - adj_across.dot(unit) * w
        return (q - q.dot(unit) * unit) / size, adj_across - adj_across.dot(unit) * unit

    @ti.func
    def jvp_project(d: vec, w: vec, dd: vec, dw: vec):
        size = ti.sqrt(d.dot(d))
        unit = d / size
        dunit = (dd - dd.dot(unit) * unit) / size
        return dunit, dw - (dw.dot(unit) + w.dot(dunit)) * unit - w.dot(unit) * dunit

    return SimpleNamespace(project=project, adj=adj_project, jvp=jvp_project)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels of the nested sub-step, for one pendulum."""
    f = functions(real)
    vectors = ti.types.ndarray(dtype=ti.types.vector(3, real), ndim=1)

    @kernel
    def forward(d: vectors, w: vectors, unit: vectors, across: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            unit_b, across_b = f.project(d[b], w[b])
            unit[b] = unit_b
            across[b] = across_b

    @kernel
    def adjoint(d: vectors, w: vectors, adj_unit: vectors, adj_across: vectors, adj_d: vectors, adj_w: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            gd, gw = f.adj(d[b], w[b], adj_unit[b], adj_across[b])
            adj_d[b] = gd
            adj_w[b] = gw

    @kernel
    def tangent(d: vectors, w: vectors, dd: vectors, dw: vectors, dunit: vectors, dacross: vectors):
        ti.loop_config(serialize=True)
        for b in range(1):
            dunit_b, dacross_b = f.jvp(d[b], w[b], dd[b], dw[b])
            dunit[b] = dunit_b
            dacross[b] = dacross_b

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class ProjectToSphere(Function):
    """Unit direction [3] and the perpendicular rate [3], from any direction and rate. Saved: the inputs."""

    @staticmethod
    def forward(ctx: Context, direction: Tensor, rate: Tensor) -> tuple[Any, Any]:
        runtime.require_precision("OntoSphere", direction, rate)
        ctx.save_for_backward(direction, rate)
        return _launch("forward", direction, rate)

    @staticmethod
    def backward(ctx: Context, adj_unit: Tensor, adj_across: Tensor) -> tuple[Any, Any]:
        return _launch("adjoint", *ctx.saved_tensors, adj_unit, adj_across)

    @staticmethod
    def jvp(ctx: Context, *tangents: Any) -> tuple[Any, Any]:
        return _launch("tangent", *ctx.saved_tensors, *tangents)


def _launch(name: str, *values: Any) -> tuple[Any, Any]:
    """Launch a kernel by name on single vectors, and return its two results."""
    arrays = [
        np.asarray(each.data if isinstance(each, Tensor) else each, runtime.real_dtype())[None] for each in values
    ]
    made = np.empty_like(arrays[0]), np.empty_like(arrays[0])
    getattr(kernels(runtime.real()), name)(*arrays, *made)
    return made[0][0], made[1][0]
