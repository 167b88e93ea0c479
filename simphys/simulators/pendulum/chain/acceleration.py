"""Angular acceleration of the links: M(x) a = f, with the terms of terms.py and loads.py

    r_i = loads_i - sum_j [ P_ij cos(d_ij) a_j + P_ij sin(d_ij) v_j^2 ] = 0        [N m], a [rad/s^2]

M is symmetric and positive definite, and is solved by Cholesky factorization. The adjoint, for y = adj_a, follows from
the implicit function theorem for r = 0, where dr/da = -M. Solve M lambda = y; then all inputs get the adjoint of the
terms of r for lambda, with a held fixed. This takes one solve with the same factor and a sum over pairs; no inverse of
M, no derivative of its factor. Source: terms.py.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import linear, loads, terms
from .model import Chain


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The acceleration of a batch member, its adjoint and tangent, over flat arrays as in loads.py."""
    t, w, s = terms.functions(real), loads.functions(real), linear.functions(real)
    add = s.add

    @ti.func
    def accelerate(
        x: ti.template(), v: ti.template(), at, u: ti.template(), at_u, L: ti.template(), mu: ti.template(),
        c: ti.template(), g: ti.template(), e: ti.template(), par, b, n, A: ti.template(), at_A, a: ti.template(),
    ):
        """Write a from index `at` on, and the factor of M from `at_A` on."""
        for i in range(n):
            f = real(0.0)
            for j in range(n):
                P = t.coupling(mu[par + ti.max(i, j)], L[par + i], L[par + j])
                d, v_j = x[at + i] - x[at + j], v[at + j]
                f -= t.centrifugal(P, d, v_j, v_j)
                A[at_A + i * n + j] = t.inertia(P, d, 1.0)
            a[at + i] = f
        w.loads(1.0, x, v, at, u, at_u, L, mu, c, g, e, par, b, n, a, at)
        s.factor(A, at_A, n)
        s.solve(A, at_A, a, at, n)

    @ti.func
    def adj_accelerate(
        x: ti.template(), v: ti.template(), a: ti.template(), at, L: ti.template(), mu: ti.template(), c: ti.template(),
        g: ti.template(), e: ti.template(), par, b, n, A: ti.template(), at_A, y: ti.template(),
        adj_x: ti.template(), adj_v: ti.template(), adj_u: ti.template(), at_u, adj_L: ti.template(),
        adj_mu: ti.template(), adj_m: ti.template(), adj_c: ti.template(), adj_g: ti.template(), adj_e: ti.template(),
    ):
        """Add to adjoints. y: adjoint of a, overwritten by lambda; adj_mu: workspace."""
        s.solve(A, at_A, y, par, n)
        for i in range(n):
            adj_mu[par + i] = 0.0
        w.adj_loads(
            1.0, x, v, at, L, mu, c, g, e, par, b, n, y, adj_x, adj_v, adj_u, at_u, adj_L, adj_mu, adj_c, adj_g, adj_e
        )
        for i in range(n):
            adj_x_i, adj_L_i = real(0.0), real(0.0)
            for j in range(n):
                k, y_i, L_i, L_j = par + ti.max(i, j), y[par + i], L[par + i], L[par + j]
                P, d, v_j = t.coupling(mu[k], L_i, L_j), x[at + i] - x[at + j], v[at + j]
                adj_P, adj_d, _ = t.adj_inertia(P, d, a[at + j], -y_i)
                adj_P_too, adj_d_too, adj_v_j, adj_v_j_too = t.adj_centrifugal(P, d, v_j, v_j, -y_i)
                adj_mu_k, gL_i, gL_j = t.adj_coupling(mu[k], L_i, L_j, adj_P + adj_P_too)
                adj_x_i += adj_d + adj_d_too
                add(adj_x, par + j, -adj_d - adj_d_too)
                add(adj_v, par + j, adj_v_j + adj_v_j_too)
                add(adj_mu, k, adj_mu_k)
                adj_L_i += gL_i
                add(adj_L, par + j, gL_j)
            add(adj_x, par + i, adj_x_i)
            add(adj_L, par + i, adj_L_i)
        w.adj_sum_masses(adj_mu, par, n, adj_m)

    @ti.func
    def jvp_accelerate(
        x: ti.template(), v: ti.template(), a: ti.template(), at, L: ti.template(), mu: ti.template(), c: ti.template(),
        g: ti.template(), e: ti.template(), par, b, n, A: ti.template(), at_A,
        dx: ti.template(), dv: ti.template(), at_d, du: ti.template(), at_u, dL: ti.template(), dmu: ti.template(),
        dc: ti.template(), dg: ti.template(), de: ti.template(), da: ti.template(),
    ):
        """Write da from index `at_d` on."""
        for i in range(n):
            df = real(0.0)
            for j in range(n):
                k, L_i, L_j = par + ti.max(i, j), L[par + i], L[par + j]
                P, d, v_j = t.coupling(mu[k], L_i, L_j), x[at + i] - x[at + j], v[at + j]
                dP = t.jvp_coupling(mu[k], L_i, L_j, dmu[k], dL[par + i], dL[par + j])
                dd, dv_j = dx[at_d + i] - dx[at_d + j], dv[at_d + j]
                df -= t.jvp_inertia(P, d, a[at + j], dP, dd, 0.0)
                df -= t.jvp_centrifugal(P, d, v_j, v_j, dP, dd, dv_j, dv_j)
            da[at_d + i] = df
        w.jvp_loads(
            1.0, x, v, at, L, mu, c, g, e, par, b, n, dx, dv, at_d, du, at_u, dL, dmu, dc, dg, de, da, at_d
        )
        s.solve(A, at_A, da, at_d, n)

    return SimpleNamespace(accelerate=accelerate, adj=adj_accelerate, jvp=jvp_accelerate)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels of the nested sub-step. mu, M: workspace; adjoints must be zero on entry."""
    f, w = functions(real), loads.functions(real)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(
        x: reals, v: reals, u: reals, L: reals, m: reals, c: reals, g: reals, e: reals, n: ti.i32,
        mu: reals, M: reals, a: reals,
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            w.sum_masses(m, 0, n, mu)
            f.accelerate(x, v, 0, u, 0, L, mu, c, g, e, 0, b, n, M, 0, a)

    @kernel
    def adjoint(
        x: reals, v: reals, a: reals, L: reals, c: reals, g: reals, e: reals, n: ti.i32, mu: reals, M: reals, y: reals,
        adj_x: reals, adj_v: reals, adj_u: reals, adj_L: reals, adj_mu: reals, adj_m: reals, adj_c: reals,
        adj_g: reals, adj_e: reals,
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            f.adj(
                x, v, a, 0, L, mu, c, g, e, 0, b, n, M, 0, y,
                adj_x, adj_v, adj_u, 0, adj_L, adj_mu, adj_m, adj_c, adj_g, adj_e,
            )

    @kernel
    def tangent(
        x: reals, v: reals, a: reals, L: reals, c: reals, g: reals, e: reals, n: ti.i32, mu: reals, M: reals,
        dx: reals, dv: reals, du: reals, dL: reals, dm: reals, dc: reals, dg: reals, de: reals, dmu: reals, da: reals,
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            w.sum_masses(dm, 0, n, dmu)
            f.jvp(x, v, a, 0, L, mu, c, g, e, 0, b, n, M, 0, dx, dv, 0, du, 0, dL, dmu, dc, dg, de, da)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)
# fmt: on


class Acceleration(Function):
    """Angular acceleration [n] [rad/s^2] at angle and rate [n], under motor torques [n] or None.

    Saved: angle, rate, length, damping, gravity, tilt, the result, the carried masses and the factor of M.
    """

    @staticmethod
    def forward(
        ctx: Context, model: Chain, angle: Tensor, rate: Tensor, torque: Tensor | None, *params: Tensor
    ) -> np.ndarray[Any, Any]:
        n = model.links
        length, mass, damping, gravity, tilt = (each.data.reshape(-1) for each in params)
        mu, M, a = np.empty(n, mass.dtype), np.empty(n * n, mass.dtype), np.empty(n, mass.dtype)
        u = np.zeros(n, mass.dtype) if torque is None else torque
        kernels(runtime.real()).forward(angle, rate, u, length, mass, damping, gravity, tilt, n, mu, M, a)
        ctx.driven = torque is not None
        ctx.save_for_backward(angle, rate, a, length, damping, gravity, tilt, mu, M)
        return a

    @staticmethod
    def backward(ctx: Context, adj_a: Tensor) -> tuple[Any, ...]:
        *given, mu, M = ctx.saved_tensors
        n, y = adj_a.size, adj_a.data.copy()
        shapes = (n, n, n, n, n, n, n, 1, 1)
        adj_x, adj_v, adj_u, adj_L, adj_mu, adj_m, adj_c, adj_g, adj_e = (np.zeros(each, y.dtype) for each in shapes)
        kernels(runtime.real()).adjoint(
            *given, n, mu, M, y, adj_x, adj_v, adj_u, adj_L, adj_mu, adj_m, adj_c, adj_g, adj_e
        )
        adj_torque = adj_u if ctx.driven else None
        return None, adj_x, adj_v, adj_torque, adj_L, adj_m, adj_c, adj_g.reshape(()), adj_e.reshape(())

    @staticmethod
    def jvp(ctx: Context, _: None, dx: Any, dv: Any, dtorque: Any, *dparams: Any) -> np.ndarray[Any, Any]:
        *given, mu, M = ctx.saved_tensors
        n, real = mu.size, mu.dtype
        du = dtorque if ctx.driven else np.zeros(n, real)
        dots = [d.reshape(-1) for d in dparams]
        dmu, da = np.empty(n, real), np.empty(n, real)
        kernels(runtime.real()).tangent(*given, n, mu, M, dx, dv, du, *dots, dmu, da)
        return da
