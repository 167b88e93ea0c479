"""Deformation: the deformation gradient of a particle follows its velocity gradient.

    F~ = (I + h C) F

F deformation gradient, C velocity gradient [1/s], h time step [s]; F~ is the trial deformation of the constitutive law.
Adjoint, for G = adj_F~:

    adj_F = G + h C^T G      adj_C = h G F^T

Source: Hu et al. 2018 (MLS-MPM), eq. 17.
"""

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import memory

from .arrays import empty_like, flatten

if TYPE_CHECKING:
    from .model import MPM

COST_US = 0.005
"""Serial cost of a particle [us]."""


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions."""
    mat = ti.types.matrix(dim, dim, real)

    @ti.func
    def deform(C: mat, F: mat, h: real) -> mat:
        return F + h * (C @ F)

    @ti.func
    def adj_deform(C: mat, F: mat, h: real, G: mat):
        return h * (G @ F.transpose()), G + h * (C.transpose() @ G)  # of C, F

    @ti.func
    def jvp_deform(C: mat, F: mat, h: real, dC: mat, dF: mat) -> mat:
        return dF + h * (dC @ F + C @ dF)

    return SimpleNamespace(deform=deform, adj=adj_deform, jvp=jvp_deform)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, parallel: bool) -> SimpleNamespace:
    """Loops over particles for the nested sub-step."""
    f, at, reals = functions(real, dim), memory.functions(real, dim), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(C: reals, F: reals, h: real, n: ti.i32, F_new: reals):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            at.put_matrix(F_new, i, f.deform(at.matrix(C, i), at.matrix(F, i), h))

    @kernel
    def adjoint(C: reals, F: reals, h: real, n: ti.i32, adj_F_new: reals, adj_C: reals, adj_F: reals):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            gC, gF = f.adj(at.matrix(C, i), at.matrix(F, i), h, at.matrix(adj_F_new, i))
            at.put_matrix(adj_C, i, gC)
            at.put_matrix(adj_F, i, gF)

    @kernel
    def tangent(C: reals, F: reals, h: real, n: ti.i32, dC: reals, dF: reals, dF_new: reals):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            moved = f.jvp(at.matrix(C, i), at.matrix(F, i), h, at.matrix(dC, i), at.matrix(dF, i))
            at.put_matrix(dF_new, i, moved)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Deform(Function):
    """C [1/s] and F, each [n, dim, dim] -> F~ [n, dim, dim]. Saves both inputs."""

    @staticmethod
    def forward(ctx: Context, model: "MPM", affine: Tensor, deformation: Tensor) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(affine, deformation)
        (trial,) = empty_like(deformation)
        _kernels(model).forward(flatten(affine), flatten(deformation), model.dt, model.particles, flatten(trial))
        return trial

    @staticmethod
    def backward(ctx: Context, adj_trial: Tensor) -> tuple[Any, ...]:
        affine, deformation = ctx.saved_tensors
        adj_C, adj_F = empty_like(affine, deformation)
        _kernels(ctx.model).adjoint(
            flatten(affine),
            flatten(deformation),
            ctx.model.dt,
            ctx.model.particles,
            flatten(adj_trial),
            flatten(adj_C),
            flatten(adj_F),
        )
        return None, adj_C, adj_F

    @staticmethod
    def jvp(ctx: Context, _: None, dC: Any, dF: Any) -> np.ndarray[Any, Any]:
        affine, deformation = ctx.saved_tensors
        (dtrial,) = empty_like(deformation)
        _kernels(ctx.model).tangent(
            flatten(affine),
            flatten(deformation),
            ctx.model.dt,
            ctx.model.particles,
            flatten(dC),
            flatten(dF),
            flatten(dtrial),
        )
        return dtrial


def _kernels(model: "MPM") -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, runtime.parallel(COST_US * model.particles))
