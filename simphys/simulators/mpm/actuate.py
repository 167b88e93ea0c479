"""Actuation: a control adds stress to the particles of an actuator, along their fibres.

    tau' = tau + u (F f) (F f)^T                                            [Pa]

f unit vector of the fibre at rest, F deformation gradient, u control of the particle's actuator [Pa]; a positive u
contracts the fibre. Adjoint, for G = adj_tau':

    adj_tau = G      adj_F = u (G + G^T) F f f^T      adj_u = sum of (F f)^T G (F f) over the actuator's particles

Source: the soft robots of Hu et al. 2020 (DiffTaichi).
"""

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import memory
from simphys.simulator.actuators import extend_control, find_control_columns

from .arrays import empty_like, flatten

if TYPE_CHECKING:
    from .model import MPM


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """The element functions of the stress added to tau."""
    vec, mat = ti.types.vector(dim, real), ti.types.matrix(dim, dim, real)

    @ti.func
    def stress(F: mat, f: vec, u: real) -> mat:
        a = F @ f
        return u * a.outer_product(a)

    @ti.func
    def adj_stress(F: mat, f: vec, u: real, G: mat):
        a = F @ f
        Ga = G @ a
        return (u * (Ga + G.transpose() @ a)).outer_product(f), a.dot(Ga)  # of F, u

    @ti.func
    def jvp_stress(F: mat, f: vec, u: real, dF: mat, du: real) -> mat:
        a, da = F @ f, dF @ f
        return du * a.outer_product(a) + u * (da.outer_product(a) + a.outer_product(da))

    return SimpleNamespace(stress=stress, adj=adj_stress, jvp=jvp_stress)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int) -> SimpleNamespace:
    """Loops over particles for the nested sub-step; the last entry of u is 0, for particles without an actuator."""
    f, at = functions(real, dim), memory.functions(real, dim)
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(tau: reals, F: reals, u: reals, act: ints, fibre: reals, n: ti.i32, tau_new: reals):
        ti.loop_config(serialize=True)
        for i in range(n):
            added = f.stress(at.matrix(F, i), at.vector(fibre, i), u[act[i]])
            at.put_matrix(tau_new, i, at.matrix(tau, i) + added)

    @kernel
    def adjoint(F: reals, u: reals, act: ints, fibre: reals, n: ti.i32, adj_tau_new: reals, adj_F: reals, adj_u: reals):
        ti.loop_config(serialize=True)
        for i in range(n):
            gF, gu = f.adj(at.matrix(F, i), at.vector(fibre, i), u[act[i]], at.matrix(adj_tau_new, i))
            at.put_matrix(adj_F, i, gF)
            adj_u[act[i]] = adj_u[act[i]] + gu

    @kernel
    def tangent(
        F: reals, u: reals, act: ints, fibre: reals, n: ti.i32, dtau: reals, dF: reals, du: reals, dtau_new: reals
    ):
        ti.loop_config(serialize=True)
        for i in range(n):
            added = f.jvp(at.matrix(F, i), at.vector(fibre, i), u[act[i]], at.matrix(dF, i), du[act[i]])
            at.put_matrix(dtau_new, i, at.matrix(dtau, i) + added)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Actuate(Function):
    """tau [Pa] and F, each [n, dim, dim], and the control [A] [Pa] -> tau' [n, dim, dim]. Saves F and the control."""

    @staticmethod
    def forward(
        ctx: Context, model: "MPM", stress: Tensor, deformation: Tensor, control: Tensor
    ) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(deformation, control)
        (actuated,) = empty_like(stress)
        _kernels(model).forward(flatten(stress), *_arguments(model, deformation, control), flatten(actuated))
        return actuated

    @staticmethod
    def backward(ctx: Context, adj_actuated: Tensor) -> tuple[Any, ...]:
        deformation, control = ctx.saved_tensors
        (adj_F,), adj_u = empty_like(deformation), extend_control(np.zeros_like(control.data))
        _kernels(ctx.model).adjoint(
            *_arguments(ctx.model, deformation, control), flatten(adj_actuated), flatten(adj_F), adj_u
        )
        return None, adj_actuated, adj_F, adj_u[:-1]

    @staticmethod
    def jvp(ctx: Context, _: None, dtau: Any, dF: Any, du: Any) -> np.ndarray[Any, Any]:
        deformation, control = ctx.saved_tensors
        (dactuated,) = empty_like(deformation)
        arguments = _arguments(ctx.model, deformation, control)
        _kernels(ctx.model).tangent(*arguments, flatten(dtau), flatten(dF), extend_control(du), flatten(dactuated))
        return dactuated


def control_columns(model: "MPM") -> np.ndarray[Any, Any]:
    """Return the index of each particle's entry in an extended control, see `simulator.actuators`, [n]."""
    assert model.actuator is not None, "called only for a model with actuators"
    return find_control_columns(model.actuator, model.actuators)


def fibres(model: "MPM") -> np.ndarray[Any, Any]:
    """Return the direction of each particle's fibre at rest, [n, dim]."""
    if model.fibre is not None:
        return np.asarray(model.fibre, runtime.real_dtype())
    up = np.zeros((model.particles, model.dim), runtime.real_dtype())
    up[:, -1] = 1
    return up


def _arguments(model: "MPM", deformation: Tensor, control: Tensor) -> tuple[Any, ...]:
    return (
        flatten(deformation),
        extend_control(control.data),
        control_columns(model),
        flatten(fibres(model)),
        model.particles,
    )


def _kernels(model: "MPM") -> SimpleNamespace:
    return kernels(runtime.real(), model.dim)
