"""A leapfrog step for the scalar wave equation u_tt = c^2 (laplace u + f):

    u' = 2 u - u_prev + kappa (k + F),   kappa = (c dt / dx)^2

k = dx^2 laplace u (see `curvature`), F = dx^2 f (see `source`), c speed [m/s]. The step is of second order in dt and
can be run backward in time: u_prev = 2 u - u' + kappa (k + F). Adjoint, for g = adj_u':

    adj_u = 2 g      adj_u_prev = -g      w = adj_k = adj_F = kappa g      l = w (k + F)      adj_c = 2 l / c

l is the adjoint of log kappa. Fused steps carry w in place of g. As the Laplacian is symmetric, w takes exactly the
same step backward in time as u does forward. Source: Alterman and Karal 1968.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from .model import Wave


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The element functions of a cell."""

    @ti.func
    def leap(u: real, before: real, kappa: real, k: real) -> real:
        return 2 * u - before + kappa * k

    @ti.func
    def adj_leap(kappa: real, k: real, g: real):
        """Return adj_u, adj_u_prev, adj_k and the adjoint of log kappa."""
        w = kappa * g
        return 2 * g, -g, w, adj_log_courant(k, w)

    @ti.func
    def adj_log_courant(k: real, w: real) -> real:
        return w * k

    @ti.func
    def jvp_leap(kappa: real, k: real, du: real, dbefore: real, dkappa: real, dk: real) -> real:
        return leap(du, dbefore, kappa, dk) + jvp_kappa(k, dkappa)

    @ti.func
    def jvp_kappa(k: real, dkappa: real) -> real:
        return dkappa * k

    return SimpleNamespace(
        leap=leap, adj_leap=adj_leap, adj_log_courant=adj_log_courant, jvp_leap=jvp_leap, jvp_kappa=jvp_kappa
    )


@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Loops over cells for the nested sub-step."""
    f, reals = functions(real), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(u: reals, before: reals, kappa: reals, k: reals, n: ti.i32, new: reals):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            new[i] = f.leap(u[i], before[i], kappa[i], k[i])

    @kernel
    def adjoint(
        kappa: reals, k: reals, n: ti.i32, g: reals, adj_u: reals, adj_before: reals, adj_k: reals, adj_log: reals
    ):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            gu, gbefore, gk, glog = f.adj_leap(kappa[i], k[i], g[i])
            adj_u[i] = gu
            adj_before[i] = gbefore
            adj_k[i] = gk
            adj_log[i] = glog

    @kernel
    def tangent(kappa: reals, k: reals, n: ti.i32, du: reals, dbefore: reals, dkappa: reals, dk: reals, dnew: reals):
        ti.loop_config(serialize=not parallel)
        for i in range(n):
            dnew[i] = f.jvp_leap(kappa[i], k[i], du[i], dbefore[i], dkappa[i], dk[i])

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


def courant(model: Wave, speed: Array) -> Array:
    """Compute kappa from arrays of speeds."""
    return (speed * (model.dt / model.spacing)) ** 2


def jvp_courant(model: Wave, speed: Array, dspeed: Array) -> Array:
    """Compute the tangent of kappa from arrays of speeds and their tangents."""
    return 2 * (model.dt / model.spacing) ** 2 * speed * dspeed


def adj_speed(speed: Array, adj_log: Array) -> Array:
    """Compute the adjoint of speed from that of log kappa, for arrays."""
    return 2 * adj_log / speed


CELL_US = 0.001
"""Serial cost [us] of a cell in a loop."""


class Advance(Function):
    """The next height [*cells] from height, previous, dx^2 (laplace u + f) and speed; saves the last two."""

    @staticmethod
    def forward(
        ctx: Context, model: Wave, height: Tensor, previous: Tensor, curvature: Tensor, speed: Tensor
    ) -> np.ndarray[Any, Any]:
        ctx.save_for_backward(curvature, speed, model)
        kappa = courant(model, speed.data)
        u, before, kappa, k = (x.reshape(-1) for x in (height.data, previous.data, kappa, curvature.data))
        new = np.empty_like(u)
        _kernels(u.size).forward(u, before, kappa, k, u.size, new)
        return new.reshape(model.cells)

    @staticmethod
    def backward(ctx: Context, adj_new: Tensor) -> tuple[Any, ...]:
        curvature, speed, model = ctx.saved_tensors
        kappa, k, g = (x.reshape(-1) for x in (courant(model, speed.data), curvature.data, adj_new.data))
        found = [np.empty_like(k) for _ in range(4)]
        _kernels(k.size).adjoint(kappa, k, k.size, g, *found)
        *adj_states, adj_log = [x.reshape(model.cells) for x in found]
        return None, *adj_states, adj_speed(speed.data, adj_log)

    @staticmethod
    def jvp(ctx: Context, _model: None, du: Any, dbefore: Any, dk: Any, dc: Any) -> np.ndarray[Any, Any]:
        curvature, speed, model = ctx.saved_tensors
        kappa, dkappa = courant(model, speed.data), jvp_courant(model, speed.data, dc)
        kappa, k, *given = (np.ravel(x) for x in (kappa, curvature.data, du, dbefore, dkappa, dk))
        dnew = np.empty_like(k)
        _kernels(k.size).tangent(kappa, k, k.size, *given, dnew)
        return dnew.reshape(model.cells)


def _kernels(cells: int) -> SimpleNamespace:
    return kernels(runtime.real(), runtime.parallel(CELL_US * cells))
