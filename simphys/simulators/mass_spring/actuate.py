"""Actuation: a control lengthens and shortens springs.

    L' = L (1 + A u)                                                        [m]

L rest length [m], u control of the spring's actuator, A amplitude of the spring [1/unit of the control]. A spring
without an actuator has u = 0. Adjoint, for g = adj_L':

    adj_L = (1 + A u) g      adj_A = L u g      adj_u = sum of L A g over the actuator's springs

Source: the actuated springs of Hu et al. 2020 (DiffTaichi).
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulator.actuators import extend_control

from .model import MassSpring


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The element functions."""

    @ti.func
    def rest_length(L: real, amp: real, u: real) -> real:
        return L * (1 + amp * u)

    @ti.func
    def adj_rest_length(L: real, amp: real, u: real, adj: real):
        return (1 + amp * u) * adj, L * u * adj, L * amp * adj

    @ti.func
    def jvp_rest_length(L: real, amp: real, u: real, dL: real, damp: real, du: real) -> real:
        return (1 + amp * u) * dL + L * (u * damp + amp * du)

    return SimpleNamespace(rest_length=rest_length, adj=adj_rest_length, jvp=jvp_rest_length)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels of the nested sub-step: serial loops over the springs."""
    f = functions(real)
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(L: reals, amp: reals, u: reals, act: ints, S: ti.i32, L_new: reals):
        ti.loop_config(serialize=True)
        for s in range(S):
            L_new[s] = f.rest_length(L[s], amp[s], u[act[s]])

    @kernel
    def adjoint(
        L: reals, amp: reals, u: reals, act: ints, S: ti.i32, adj_L_new: reals,
        adj_L: reals, adj_amp: reals, adj_u: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for s in range(S):
            gL, gamp, gu = f.adj(L[s], amp[s], u[act[s]], adj_L_new[s])
            adj_L[s] = gL
            adj_amp[s] = gamp
            adj_u[act[s]] = adj_u[act[s]] + gu

    @kernel
    def tangent(L: reals, amp: reals, u: reals, act: ints, S: ti.i32, dL: reals, damp: reals, du: reals, dL_new: reals):
        ti.loop_config(serialize=True)
        for s in range(S):
            dL_new[s] = f.jvp(L[s], amp[s], u[act[s]], dL[s], damp[s], du[act[s]])

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Actuate(Function):
    """Actuated rest lengths [S] [m] of a step, from rest length [S], amplitude [S] and control [A].

    Saved: the three inputs.
    """

    @staticmethod
    def forward(
        ctx: Context, model: MassSpring, rest_length: Tensor, amplitude: Tensor, control: Tensor
    ) -> np.ndarray[Any, Any]:
        ctx.model = model
        ctx.save_for_backward(rest_length, amplitude, control)
        actuated = np.empty(model.springs, rest_length.dtype)
        _kernels().forward(*_arguments(model, rest_length, amplitude, control), actuated)
        return actuated

    @staticmethod
    def backward(ctx: Context, adj_actuated: Tensor) -> tuple[Any, ...]:
        model: MassSpring = ctx.model
        rest_length, _, control = ctx.saved_tensors
        adj_L, adj_amp = (np.empty(model.springs, rest_length.dtype) for _ in range(2))
        adj_u = extend_control(np.zeros_like(control.data))
        _kernels().adjoint(*_arguments(model, *ctx.saved_tensors), adj_actuated, adj_L, adj_amp, adj_u)
        return None, adj_L, adj_amp, adj_u[:-1]

    @staticmethod
    def jvp(ctx: Context, _: None, dL: Any, damp: Any, du: Any) -> np.ndarray[Any, Any]:
        model: MassSpring = ctx.model
        saved = ctx.saved_tensors
        dactuated = np.empty(model.springs, saved[0].dtype)
        _kernels().tangent(*_arguments(model, *saved), dL, damp, extend_control(du), dactuated)
        return dactuated


def _arguments(model: MassSpring, rest_length: Tensor, amplitude: Tensor, control: Tensor) -> tuple[Any, ...]:
    return rest_length, amplitude, extend_control(control.data), model.control_columns, model.springs


def _kernels() -> SimpleNamespace:
    return kernels(runtime.real())
