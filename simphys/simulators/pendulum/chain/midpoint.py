"""The midpoint rate of a step of the variational integrator.

The discrete Lagrangian is h (T - V)((x + x')/2, (x' - x)/h), with the loads F of motors and joints as forces at the
midpoint. Let v = (x' - x)/h, y = x + k v, k = h/2, and p and p' the momenta before and after the step. Then the
discrete Euler-Lagrange equations are

    p = M(y) v - k (d(T - V)/dx + F),   p' = M(y) v + k (d(T - V)/dx + F) = 2 M(y) v - p       (both at y, v)

so that v is the root of the residual, with d_ij = y_i - y_j,

    R_i = p_i + k loads_i(y, v) - sum_j [ P_ij cos(d_ij) v_j + k P_ij sin(d_ij) v_i v_j ]              [kg m^2/s]

Newton's method finds it with K = -dR/dv: v <- v + K^-1 R. It starts from the rate before the step, and stops when a
correction turns all links by less than the square root of the rounding error, k |dv|. As Newton's method converges
quadratically, only rounding is then left. v becomes NaN after MAX_CORRECTIONS of these, or after one that turns a link
by more than a radian and may lead to an unphysical root. The time step is then too long to be solved, and the motion
ends.

The adjoint follows from the implicit function theorem rather than from the iterations. Solve K^T lambda = adj_v; then
adj_p = lambda, and all other inputs get the adjoint of the terms of R for lambda, with v held fixed. Source: Marsden
and West, Discrete mechanics and variational integrators, Acta Numerica 2001, sections 1.6 (midpoint rule) and 3.2
(forcing).
"""

import functools
import math
from types import SimpleNamespace
from typing import Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti

from . import linear, loads, terms
from .model import Chain

MAX_CORRECTIONS = 20
"""Largest number of Newton corrections; four or five are usual."""


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The midpoint rate of a batch member, its adjoint and tangent, over flat arrays as in loads.py.

    x begins at index `at`; p, v, the midpoint y, the residual and adjoints begin at `par`.
    """
    t, w, s = terms.functions(real), loads.functions(real), linear.functions(real)
    add = s.add
    tolerance = 1e-9 if real == ti.f64 else 1e-4

    @ti.func
    def find_midpoint(x: ti.template(), at, v: ti.template(), par, n, k, y: ti.template()):
        for i in range(n):
            y[par + i] = x[at + i] + k * v[par + i]

    @ti.func
    def residual(
        y: ti.template(), v: ti.template(), p: ti.template(), u: ti.template(), at_u, L: ti.template(),
        mu: ti.template(), c: ti.template(), g: ti.template(), e: ti.template(), par, b, n, k, R: ti.template(),
    ):
        for i in range(n):
            total = p[par + i]
            for j in range(n):
                P = t.coupling(mu[par + ti.max(i, j)], L[par + i], L[par + j])
                d, v_i, v_j = y[par + i] - y[par + j], v[par + i], v[par + j]
                total -= t.inertia(P, d, v_j) + k * t.centrifugal(P, d, v_i, v_j)
            R[par + i] = total
        w.loads(k, y, v, par, u, at_u, L, mu, c, g, e, par, b, n, R, par)

    @ti.func
    def rate_jacobian(
        y: ti.template(), v: ti.template(), L: ti.template(), mu: ti.template(), c: ti.template(), g: ti.template(),
        e: ti.template(), par, b, n, k, K: ti.template(), at_K,
    ):
        """Compute K = -dR/dv, including the change of the midpoint with v."""
        for i in range(n):
            diagonal = real(0.0)
            for j in range(n):
                P = t.coupling(mu[par + ti.max(i, j)], L[par + i], L[par + j])
                d, v_i, v_j = y[par + i] - y[par + j], v[par + i], v[par + j]
                _, adj_d, adj_v_j = t.adj_inertia(P, d, v_j, 1.0)
                _, adj_d_too, adj_v_i, adj_v_j_too = t.adj_centrifugal(P, d, v_i, v_j, k)
                adj_y = k * (adj_d + adj_d_too)
                K[at_K + i * n + j] = adj_v_j + adj_v_j_too - adj_y
                diagonal += adj_v_i + adj_y
            _, _, adj_weight = t.adj_weight(mu[par + i] * L[par + i], g[b], y[par + i] - e[b], -k)
            _, adj_turn = t.adj_joint(c[par + i], 0.0, -k)
            ii = at_K + i * n + i
            add(K, ii, diagonal + k * adj_weight + adj_turn)
            if i > 0:
                add(K, ii - 1, -adj_turn)
                add(K, ii - n, -adj_turn)
                add(K, ii - n - 1, adj_turn)

    @ti.func
    def solve_rate(
        x: ti.template(), at, v: ti.template(), p: ti.template(), u: ti.template(), at_u, L: ti.template(),
        mu: ti.template(), c: ti.template(), g: ti.template(), e: ti.template(), par, b, n, k,
        y: ti.template(), R: ti.template(), K: ti.template(), at_K, nan,
    ):
        """Solve for v from a first guess, and compute y; v becomes `nan`, which is NaN, if the solve fails."""
        status = 1  # 1 while iterating, 0 when converged, 2 when failed
        for _ in range(MAX_CORRECTIONS):
            if status == 1:
                find_midpoint(x, at, v, par, n, k, y)
                residual(y, v, p, u, at_u, L, mu, c, g, e, par, b, n, k, R)
                rate_jacobian(y, v, L, mu, c, g, e, par, b, n, k, K, at_K)
                s.eliminate(K, at_K, R, par, n)
                turn = real(0.0)
                for i in range(n):
                    add(v, par + i, R[par + i])
                    turn = ti.max(turn, k * ti.abs(R[par + i]))
                if turn < tolerance:
                    status = 0
                elif not turn < 1.0:
                    status = 2
        for i in range(n):
            if status != 0:
                v[par + i] = nan
        find_midpoint(x, at, v, par, n, k, y)

    @ti.func
    def adj_solve_rate(
        y: ti.template(), v: ti.template(), L: ti.template(), mu: ti.template(), c: ti.template(), g: ti.template(),
        e: ti.template(), par, b, n, k, K: ti.template(), at_K, adj: ti.template(),
        adj_x: ti.template(), unused: ti.template(), adj_u: ti.template(), at_u, adj_L: ti.template(),
        adj_mu: ti.template(), adj_c: ti.template(), adj_g: ti.template(), adj_e: ti.template(),
    ):
        """Add to adjoints. adj: adjoint of v, overwritten by lambda, the adjoint of p."""
        rate_jacobian(y, v, L, mu, c, g, e, par, b, n, k, K, at_K)
        s.transpose(K, at_K, n)
        s.eliminate(K, at_K, adj, par, n)
        w.adj_loads(
            k, y, v, par, L, mu, c, g, e, par, b, n, adj, adj_x, unused, adj_u, at_u, adj_L, adj_mu, adj_c, adj_g, adj_e
        )
        for i in range(n):
            adj_x_i, adj_L_i = real(0.0), real(0.0)
            for j in range(n):
                q, L_i, L_j, lam = par + ti.max(i, j), L[par + i], L[par + j], adj[par + i]
                P, d = t.coupling(mu[q], L_i, L_j), y[par + i] - y[par + j]
                adj_P, adj_d, _ = t.adj_inertia(P, d, v[par + j], -lam)
                adj_P_too, adj_d_too, _, _ = t.adj_centrifugal(P, d, v[par + i], v[par + j], -k * lam)
                adj_mu_q, gL_i, gL_j = t.adj_coupling(mu[q], L_i, L_j, adj_P + adj_P_too)
                adj_x_i += adj_d + adj_d_too
                add(adj_x, par + j, -adj_d - adj_d_too)
                add(adj_mu, q, adj_mu_q)
                adj_L_i += gL_i
                add(adj_L, par + j, gL_j)
            add(adj_x, par + i, adj_x_i)
            add(adj_L, par + i, adj_L_i)

    @ti.func
    def jvp_solve_rate(
        y: ti.template(), v: ti.template(), L: ti.template(), mu: ti.template(), c: ti.template(), g: ti.template(),
        e: ti.template(), par, b, n, k, K: ti.template(), at_K,
        dx: ti.template(), at_d, zero: ti.template(), dp: ti.template(), du: ti.template(), at_u, dL: ti.template(),
        dmu: ti.template(), dc: ti.template(), dg: ti.template(), de: ti.template(), dy: ti.template(),
        dv: ti.template(),
    ):
        """Write dv from index `par` on. zero: zeros; dy: workspace."""
        for i in range(n):
            dy[par + i] = dx[at_d + i]
        for i in range(n):
            total = dp[par + i]
            for j in range(n):
                q, L_i, L_j = par + ti.max(i, j), L[par + i], L[par + j]
                P, d = t.coupling(mu[q], L_i, L_j), y[par + i] - y[par + j]
                dP = t.jvp_coupling(mu[q], L_i, L_j, dmu[q], dL[par + i], dL[par + j])
                dd = dy[par + i] - dy[par + j]
                total -= t.jvp_inertia(P, d, v[par + j], dP, dd, 0.0)
                total -= k * t.jvp_centrifugal(P, d, v[par + i], v[par + j], dP, dd, 0.0, 0.0)
            dv[par + i] = total
        w.jvp_loads(
            k, y, v, par, L, mu, c, g, e, par, b, n, dy, zero, par, du, at_u, dL, dmu, dc, dg, de, dv, par
        )
        rate_jacobian(y, v, L, mu, c, g, e, par, b, n, k, K, at_K)
        s.eliminate(K, at_K, dv, par, n)

    return SimpleNamespace(solve_rate=solve_rate, adj=adj_solve_rate, jvp=jvp_solve_rate)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Kernels of the nested sub-step. mu, y, R, K: workspace; adjoints must be zero on entry."""
    f, w = functions(real), loads.functions(real)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(
        x: reals, p: reals, u: reals, L: reals, m: reals, c: reals, g: reals, e: reals, n: ti.i32, k: real, nan: real,
        mu: reals, y: reals, R: reals, K: reals, v: reals,
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            w.sum_masses(m, 0, n, mu)
            f.solve_rate(x, 0, v, p, u, 0, L, mu, c, g, e, 0, b, n, k, y, R, K, 0, nan)

    @kernel
    def adjoint(
        y: reals, v: reals, L: reals, c: reals, g: reals, e: reals, mu: reals, n: ti.i32, k: real, K: reals,
        adj: reals, adj_x: reals, unused: reals, adj_u: reals, adj_L: reals, adj_mu: reals, adj_m: reals, adj_c: reals,
        adj_g: reals, adj_e: reals,
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            f.adj(
                y, v, L, mu, c, g, e, 0, b, n, k, K, 0, adj,
                adj_x, unused, adj_u, 0, adj_L, adj_mu, adj_c, adj_g, adj_e,
            )
            w.adj_sum_masses(adj_mu, 0, n, adj_m)

    @kernel
    def tangent(
        y: reals, v: reals, L: reals, c: reals, g: reals, e: reals, mu: reals, n: ti.i32, k: real, K: reals,
        dx: reals, dp: reals, du: reals, dL: reals, dm: reals, dc: reals, dg: reals, de: reals,
        zero: reals, dmu: reals, dy: reals, dv: reals,
    ):
        ti.loop_config(serialize=True)
        for b in range(1):
            w.sum_masses(dm, 0, n, dmu)
            f.jvp(
                y, v, L, mu, c, g, e, 0, b, n, k, K, 0,
                dx, 0, zero, dp, du, 0, dL, dmu, dc, dg, de, dy, dv,
            )

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)
# fmt: on


class MidpointRate(Function):
    """Midpoint rate [n] [rad/s] of a step, from angle and momentum [n] before it, under torques [n] or None.

    guess [n]: starting point of Newton's method; the result does not depend on it. Saved: the midpoint, the result,
    length, damping, gravity, tilt and the carried masses.
    """

    @staticmethod
    def forward(
        ctx: Context,
        model: Chain,
        guess: Tensor,
        angle: Tensor,
        momentum: Tensor,
        torque: Tensor | None,
        *params: Tensor,
    ) -> np.ndarray[Any, Any]:
        n, ctx.k = model.links, model.dt / 2
        length, mass, damping, gravity, tilt = (each.data.reshape(-1) for each in params)
        real = mass.dtype
        u = np.zeros(n, real) if torque is None else torque
        mu, y, R, K, v = (
            np.empty(n, real),
            np.empty(n, real),
            np.empty(n, real),
            np.empty(n * n, real),
            guess.data.copy(),
        )
        kernels(runtime.real()).forward(
            angle, momentum, u, length, mass, damping, gravity, tilt, n, ctx.k, math.nan, mu, y, R, K, v
        )
        ctx.driven = torque is not None
        ctx.save_for_backward(y, v, length, damping, gravity, tilt, mu)
        return v

    @staticmethod
    def backward(ctx: Context, adj_v: Tensor) -> tuple[Any, ...]:
        n, adj_p = adj_v.size, adj_v.data.copy()
        K = np.empty(n * n, adj_p.dtype)
        shapes = (n, n, n, n, n, n, n, 1, 1)
        adj_x, unused, adj_u, adj_L, adj_mu, adj_m, adj_c, adj_g, adj_e = (np.zeros(k, adj_p.dtype) for k in shapes)
        kernels(runtime.real()).adjoint(
            *ctx.saved_tensors, n, ctx.k, K, adj_p, adj_x, unused, adj_u, adj_L, adj_mu, adj_m, adj_c, adj_g, adj_e
        )
        adj_torque = adj_u if ctx.driven else None
        return None, None, adj_x, adj_p, adj_torque, adj_L, adj_m, adj_c, adj_g.reshape(()), adj_e.reshape(())

    @staticmethod
    def jvp(ctx: Context, _: None, __: Any, dx: Any, dp: Any, dtorque: Any, *dparams: Any) -> np.ndarray[Any, Any]:
        mu = ctx.saved_tensors[-1]
        n, real = mu.size, mu.dtype
        du = dtorque if ctx.driven else np.zeros(n, real)
        dots = [d.reshape(-1) for d in dparams]
        K, zero, dmu, dy, dv = np.empty(n * n, real), np.zeros(n, real), *(np.empty(n, real) for _ in range(3))
        kernels(runtime.real()).tangent(*ctx.saved_tensors, n, ctx.k, K, dx, dp, du, *dots, zero, dmu, dy, dv)
        return dv
