"""Momenta conjugate to the angles, p = M(x) v [kg m^2/s], and the rates of given momenta, v = M(x)^-1 p.

    p_i = sum_j P_ij cos(d_ij) v_j

Adjoint of p, for y = adj_p: that of each term, with y_i as its adjoint. The adjoint of v follows from the equation
p - M(x) v = 0: with M lambda = adj_v, adj_p = lambda, and all other inputs get the adjoint of M(x) v for y = -lambda.
Source: terms.py.
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
    """Momenta and rates of a member, over flat arrays as in loads.py: x, v begin at `at`, p and adjoints at `par`."""
    t, s = terms.functions(real), linear.functions(real)
    add = s.add

    @ti.func
    def momentum(
        factor, x: ti.template(), v: ti.template(), at, L: ti.template(), mu: ti.template(), par, n, p: ti.template(),
    ):
        """Add factor * M v to p."""
        for i in range(n):
            total = real(0.0)
            for j in range(n):
                P = t.coupling(mu[par + ti.max(i, j)], L[par + i], L[par + j])
                total += t.inertia(P, x[at + i] - x[at + j], v[at + j])
            add(p, par + i, factor * total)

    @ti.func
    def adj_momentum(
        factor, x: ti.template(), v: ti.template(), at, L: ti.template(), mu: ti.template(), par, n, y: ti.template(),
        adj_x: ti.template(), adj_v: ti.template(), adj_L: ti.template(), adj_mu: ti.template(),
    ):
        """Add to adjoints; with factor = -1 and y = lambda, adj_v is not needed."""
        for i in range(n):
            adj_x_i, adj_L_i = real(0.0), real(0.0)
            for j in range(n):
                k, L_i, L_j = par + ti.max(i, j), L[par + i], L[par + j]
                P = t.coupling(mu[k], L_i, L_j)
                adj_P, adj_d, adj_v_j = t.adj_inertia(P, x[at + i] - x[at + j], v[at + j], factor * y[par + i])
                adj_mu_k, gL_i, gL_j = t.adj_coupling(mu[k], L_i, L_j, adj_P)
                adj_x_i += adj_d
                add(adj_x, par + j, -adj_d)
                add(adj_v, par + j, adj_v_j)
                add(adj_mu, k, adj_mu_k)
                adj_L_i += gL_i
                add(adj_L, par + j, gL_j)
            add(adj_x, par + i, adj_x_i)
            add(adj_L, par + i, adj_L_i)

    @ti.func
    def jvp_momentum(
        factor, x: ti.template(), v: ti.template(), at, L: ti.template(), mu: ti.template(), par, n,
        dx: ti.template(), dv: ti.template(), at_d, dL: ti.template(), dmu: ti.template(), dp: ti.template(),
    ):
        """Add factor * the tangent of M v to dp."""
        for i in range(n):
            total = real(0.0)
            for j in range(n):
                k, L_i, L_j = par + ti.max(i, j), L[par + i], L[par + j]
                P = t.coupling(mu[k], L_i, L_j)
                dP = t.jvp_coupling(mu[k], L_i, L_j, dmu[k], dL[par + i], dL[par + j])
                d, dd = x[at + i] - x[at + j], dx[at_d + i] - dx[at_d + j]
                total += t.jvp_inertia(P, d, v[at + j], dP, dd, dv[at_d + j])
            add(dp, par + i, factor * total)

    @ti.func
    def factor(x: ti.template(), at, L: ti.template(), mu: ti.template(), par, n, A: ti.template(), at_A):
        """Write the Cholesky factor of M to A."""
        for i in range(n):
            for j in range(i + 1):
                P = t.coupling(mu[par + i], L[par + i], L[par + j])
                A[at_A + i * n + j] = t.inertia(P, x[at + i] - x[at + j], 1.0)
        s.factor(A, at_A, n)

    return SimpleNamespace(momentum=momentum, adj=adj_momentum, jvp=jvp_momentum, factor=factor)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels of the nested sub-steps. mu, M: workspace; results and adjoints must be zero on entry."""
    f, w, s = functions(real), loads.functions(real), linear.functions(real)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(x: reals, v: reals, L: reals, m: reals, n: ti.i32, mu: reals, p: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            w.sum_masses(m, 0, n, mu)
            f.momentum(1.0, x, v, 0, L, mu, 0, n, p)

    @kernel
    def adjoint(
        x: reals, v: reals, L: reals, n: ti.i32, mu: reals, y: reals,
        adj_x: reals, adj_v: reals, adj_L: reals, adj_mu: reals, adj_m: reals,
    ):
        ti.loop_config(serialize=True)
        for _ in range(1):
            f.adj(1.0, x, v, 0, L, mu, 0, n, y, adj_x, adj_v, adj_L, adj_mu)
            w.adj_sum_masses(adj_mu, 0, n, adj_m)

    @kernel
    def tangent(
        x: reals, v: reals, L: reals, n: ti.i32, mu: reals,
        dx: reals, dv: reals, dL: reals, dm: reals, dmu: reals, dp: reals,
    ):
        ti.loop_config(serialize=True)
        for _ in range(1):
            w.sum_masses(dm, 0, n, dmu)
            f.jvp(1.0, x, v, 0, L, mu, 0, n, dx, dv, 0, dL, dmu, dp)

    @kernel
    def inverse(x: reals, L: reals, m: reals, n: ti.i32, mu: reals, M: reals, v: reals):
        ti.loop_config(serialize=True)
        for _ in range(1):
            w.sum_masses(m, 0, n, mu)
            f.factor(x, 0, L, mu, 0, n, M, 0)
            s.solve(M, 0, v, 0, n)

    @kernel
    def adj_inverse(
        x: reals, v: reals, L: reals, n: ti.i32, mu: reals, M: reals, y: reals,
        adj_x: reals, adj_v: reals, adj_L: reals, adj_mu: reals, adj_m: reals,
    ):
        ti.loop_config(serialize=True)
        for _ in range(1):
            s.solve(M, 0, y, 0, n)
            f.adj(-1.0, x, v, 0, L, mu, 0, n, y, adj_x, adj_v, adj_L, adj_mu)
            w.adj_sum_masses(adj_mu, 0, n, adj_m)

    @kernel
    def jvp_inverse(
        x: reals, v: reals, L: reals, n: ti.i32, mu: reals, M: reals,
        dx: reals, zeros: reals, dL: reals, dm: reals, dmu: reals, dv: reals,
    ):
        ti.loop_config(serialize=True)
        for _ in range(1):
            w.sum_masses(dm, 0, n, dmu)
            f.jvp(-1.0, x, v, 0, L, mu, 0, n, dx, zeros, 0, dL, dmu, dv)
            s.solve(M, 0, dv, 0, n)

    return SimpleNamespace(
        forward=forward, adjoint=adjoint, tangent=tangent,
        inverse=inverse, adj_inverse=adj_inverse, jvp_inverse=jvp_inverse,
    )
# fmt: on


class Momentum(Function):
    """Momenta [n] [kg m^2/s] at angle and rate [n]. Saved: angle, rate, length, the carried masses."""

    @staticmethod
    def forward(
        ctx: Context, model: Chain, angle: Tensor, rate: Tensor, length: Tensor, mass: Tensor
    ) -> np.ndarray[Any, Any]:
        mu, p = np.empty_like(mass.data), np.zeros_like(mass.data)
        kernels(runtime.real()).forward(angle, rate, length, mass, model.links, mu, p)
        ctx.save_for_backward(angle, rate, length, mu)
        return p

    @staticmethod
    def backward(ctx: Context, adj_p: Tensor) -> tuple[Any, ...]:
        *given, mu = ctx.saved_tensors
        adj_x, adj_v, adj_L, adj_mu, adj_m = (np.zeros_like(mu.data) for _ in range(5))
        kernels(runtime.real()).adjoint(*given, mu.size, mu, adj_p, adj_x, adj_v, adj_L, adj_mu, adj_m)
        return None, adj_x, adj_v, adj_L, adj_m

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> np.ndarray[Any, Any]:
        *given, mu = ctx.saved_tensors
        dmu, dp = np.empty_like(mu.data), np.zeros_like(mu.data)
        kernels(runtime.real()).tangent(*given, mu.size, mu, *tangents, dmu, dp)
        return dp


class Rate(Function):
    """Rates [n] [rad/s] of given momenta [n] at angle [n].

    Saved: angle, the result, length, the carried masses and the factor of M.
    """

    @staticmethod
    def forward(
        ctx: Context, model: Chain, angle: Tensor, momentum: Tensor, length: Tensor, mass: Tensor
    ) -> np.ndarray[Any, Any]:
        n, real = model.links, mass.dtype
        mu, M, v = np.empty(n, real), np.empty(n * n, real), momentum.data.copy()
        kernels(runtime.real()).inverse(angle, length, mass, n, mu, M, v)
        ctx.save_for_backward(angle, v, length, mu, M)
        return v

    @staticmethod
    def backward(ctx: Context, adj_v: Tensor) -> tuple[Any, ...]:
        *given, mu, M = ctx.saved_tensors
        adj_p = adj_v.data.copy()
        adj_x, unused, adj_L, adj_mu, adj_m = (np.zeros_like(mu.data) for _ in range(5))
        kernels(runtime.real()).adj_inverse(*given, mu.size, mu, M, adj_p, adj_x, unused, adj_L, adj_mu, adj_m)
        return None, adj_x, adj_p, adj_L, adj_m

    @staticmethod
    def jvp(ctx: Context, _: None, dx: Any, dp: Any, dL: Any, dm: Any) -> np.ndarray[Any, Any]:
        *given, mu, M = ctx.saved_tensors
        zero = np.zeros_like(mu.data)
        dmu, dv = np.empty_like(mu.data), dp.copy()
        kernels(runtime.real()).jvp_inverse(*given, mu.size, mu, M, dx, zero, dL, dm, dmu, dv)
        return dv
