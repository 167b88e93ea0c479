"""Particles to grid: each particle scatters mass and momentum to the nodes of its stencil.

    m_i = sum over particles of w_ip m_p
    p_i = sum over particles of w_ip (m_p v_p + A_p (x_i - x_p))        [kg m/s]
    A_p = m_p C_p - (4 h / dx^2) V_p tau_p                              [kg/s]

w_ip quadratic B-splines (numerics/bspline.py), C velocity gradient [1/s], tau Kirchhoff stress [Pa], V volume at rest
[m^dim], h time step. The adjoint is a gather, with g_i = adj_p_i, k_i = adj_m_i, r = x_i - x_p, and sums over the nodes
i in the stencil of p:

    adj_v = m sum w g            adj_A = sum w g r^T            adj_m = sum w (v g + k) + C : adj_A
    adj_x = sum grad_w (g (m v + A r) + k m) - A^T sum w g
    adj_C = m adj_A              adj_tau = -(4 h / dx^2) V adj_A            adj_V = -(4 h / dx^2) tau : adj_A

with grad_w the derivative of w_ip by x_p. Source: Hu et al. 2018 (MLS-MPM), eqs. 16 and 18.
"""

import functools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from simphys.autograd import Context, Function, Tensor, kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.numerics import bspline, memory

from . import arrays, transfer
from .arrays import empty_like, flatten

if TYPE_CHECKING:
    from .model import MPM


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any, dim: int, cells: tuple[int, ...]) -> SimpleNamespace:
    """The element functions. A grid G holds momentum and mass of each node, [dim + 1] numbers, from G[at] on."""
    vec, mat = ti.types.vector(dim, real), ti.types.matrix(dim, dim, real)
    spline, lines, size = bspline.functions(real, dim, cells), bspline.count_lines(dim), dim + 1
    sums = transfer.functions(real, dim, cells)

    @ti.func
    def stress_factor(h: real, dx: real) -> real:
        """Return the factor of stress times volume in A."""
        return 4.0 * h / (dx * dx)

    @ti.func
    def affine(C: mat, tau: mat, m: real, V: real, h: real, dx: real) -> mat:
        """Return A."""
        return m * C - (stress_factor(h, dx) * V) * tau

    @ti.func
    def compute_shares(x: vec, v: vec, C: mat, tau: mat, m: real, V: real, h: real, dx: real):
        """Return the first node of the particle's stencil, and the table of shares that `scatter` adds."""
        return sums.spread(x, 1.0 / dx, m * v, dx * affine(C, tau, m, V, h, dx))

    @ti.func
    def scatter(G: ti.template(), at: ti.i32, first: ti.i32, shares: ti.template(), m: real, atomic: ti.template()):
        sums.scatter(G, at, dim + 1, first, shares, m, atomic)

    @ti.func
    def adj_shares(
        adj_G: ti.template(), x: vec, v: vec, C: mat, tau: mat, m: real, V: real, h: real, dx: real,
    ):
        """Gather the adjoints of x, v, C, tau, m and V from the nodes."""
        k, A = stress_factor(h, dx), affine(C, tau, m, V, h, dx)
        g, gr, adj_f, back = sums.gather_derivatives(adj_G, dim + 1, x, 1.0 / dx, m * v, dx * A, m)
        adj_A = dx * gr
        adj_x, adj_m = adj_f / dx - A.transpose() @ g, v.dot(g) + back + (C * adj_A).sum()
        return adj_x, m * g, m * adj_A, (-k * V) * adj_A, adj_m, -k * (tau * adj_A).sum()

    @ti.func
    def jvp_shares(
        dG: ti.template(), particle: ti.template(), dparticle: ti.template(), h: real, dx: real, atomic: ti.template(),
    ):
        """Scatter the tangents of mass and momentum, from the tangents of one particle."""
        x, v, C, tau, m, V = particle.x, particle.v, particle.C, particle.tau, particle.m, particle.V
        d = ti.static(dparticle)
        tx, tv, tC, ttau, tm, tV = d.x, d.v, d.C, d.tau, d.m, d.V
        A, tA = affine(C, tau, m, V, h, dx), tm * C + m * tC - stress_factor(h, dx) * (tV * tau + V * ttau)
        inv_dx = 1.0 / dx
        base = spline.base(x, inv_dx)
        f = x * inv_dx - base
        w, s, tf = spline.weights(f), spline.slopes(f), inv_dx * tx
        mv, Adx, tmv, tAdx = m * v, dx * A, tm * v + m * tv - A @ tx, dx * tA
        for number in range(lines):
            o = spline.offset(number)
            weight, tweight = spline.line_weight(w, o), real(0.0)
            for d in ti.static(range(dim - 1)):
                tweight += spline.line_slope(w, s, o, d) * tf[d]
            q, tq = sums.value_on_line(mv, Adx, f, o), sums.value_on_line(tmv, tAdx, f, o)
            i = (spline.start(base) + spline.line_offset(o)) * size
            for k in ti.static(range(3)):
                r = k - f[dim - 1]
                here, there = weight * w[k, dim - 1], tweight * w[k, dim - 1] + weight * s[k, dim - 1] * tf[dim - 1]
                for d in ti.static(range(dim)):
                    tp = there * (q[d] + r * Adx[d, dim - 1]) + here * (tq[d] + r * tAdx[d, dim - 1])
                    add(dG, i + k * size + d, tp, atomic)
                add(dG, i + k * size + dim, there * m + here * tm, atomic)

    @ti.func
    def add(dG: ti.template(), i: ti.i32, value: real, atomic: ti.template()):
        if ti.static(atomic):
            ti.atomic_add(dG[i], value)
        else:
            dG[i] = dG[i] + value

    return SimpleNamespace(compute_shares=compute_shares, scatter=scatter, adj=adj_shares, jvp=jvp_shares)


@functools.cache
@no_type_check
def kernels(real: Any, dim: int, cells: tuple[int, ...], on_gpu: bool) -> SimpleNamespace:
    """Loops over particles for the nested sub-step; a GPU adds to nodes by atomics."""
    f, at = functions(real, dim, cells), memory.functions(real, dim)
    types = arrays.types(real)
    reals, stressed_type = types.reals, types.stressed

    @kernel
    def forward(given: stressed_type, h: real, dx: real, n: ti.i32, G: reals):
        ti.loop_config(serialize=not on_gpu)
        for i in range(n):
            m = given.m[i]
            first, shares = f.compute_shares(
                at.vector(given.x, i), at.vector(given.v, i), at.matrix(given.C, i), at.matrix(given.tau, i), m,
                given.V[i], h, dx,
            )
            f.scatter(G, 0, first, shares, m, on_gpu)

    @kernel
    def adjoint(given: stressed_type, h: real, dx: real, n: ti.i32, adj_G: reals, adj_given: stressed_type):
        ti.loop_config(serialize=not on_gpu)
        for i in range(n):
            gx, gv, gC, gtau, gm, gV = f.adj(
                adj_G, at.vector(given.x, i), at.vector(given.v, i), at.matrix(given.C, i), at.matrix(given.tau, i),
                given.m[i], given.V[i], h, dx,
            )
            at.put_vector(adj_given.x, i, gx)
            at.put_vector(adj_given.v, i, gv)
            at.put_matrix(adj_given.C, i, gC)
            at.put_matrix(adj_given.tau, i, gtau)
            adj_given.m[i] = gm
            adj_given.V[i] = gV

    @kernel
    def tangent(given: stressed_type, h: real, dx: real, n: ti.i32, dgiven: stressed_type, dG: reals):
        ti.loop_config(serialize=not on_gpu)
        for i in range(n):
            x, v, C, tau = (
                at.vector(given.x, i), at.vector(given.v, i), at.matrix(given.C, i), at.matrix(given.tau, i)
            )
            tx, tv, tC, ttau = (
                at.vector(dgiven.x, i), at.vector(dgiven.v, i), at.matrix(dgiven.C, i), at.matrix(dgiven.tau, i)
            )
            particle = ti.static(arrays.Particles(x, v, C, tau=tau, m=given.m[i], V=given.V[i]))
            dparticle = ti.static(arrays.Particles(tx, tv, tC, tau=ttau, m=dgiven.m[i], V=dgiven.V[i]))
            f.jvp(dG, particle, dparticle, h, dx, on_gpu)

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)
# fmt: on


class ParticleToGrid(Function):
    """x, v [n, dim], C, tau [n, dim, dim], mass, volume [n] -> mass [nodes], momentum [nodes, dim]. Saves all six."""

    @staticmethod
    def forward(ctx: Context, model: "MPM", *inputs: Tensor) -> tuple[np.ndarray[Any, Any], ...]:
        ctx.model = model
        ctx.save_for_backward(*inputs)
        grid = np.zeros((model.nodes, model.dim + 1), inputs[0].dtype)
        _kernels(model).forward(*_arguments(model, inputs), flatten(grid))
        return grid[:, -1].copy(), grid[:, :-1].copy()

    @staticmethod
    def backward(ctx: Context, adj_mass: Tensor, adj_momentum: Tensor) -> tuple[Any, ...]:
        inputs = ctx.saved_tensors
        adj_grid = np.concatenate([adj_momentum.data, adj_mass.data[:, None]], axis=1)
        adjoints = empty_like(*inputs)
        _kernels(ctx.model).adjoint(*_arguments(ctx.model, inputs), flatten(adj_grid), _particles(adjoints))
        return None, *adjoints

    @staticmethod
    def jvp(ctx: Context, _: None, *tangents: Any) -> tuple[np.ndarray[Any, Any], ...]:
        inputs, model = ctx.saved_tensors, ctx.model
        dgrid = np.zeros((model.nodes, model.dim + 1), inputs[0].dtype)
        _kernels(model).tangent(*_arguments(model, inputs), _particles(tangents), flatten(dgrid))
        return dgrid[:, -1].copy(), dgrid[:, :-1].copy()


def _arguments(model: "MPM", inputs: Any) -> tuple[Any, ...]:
    return _particles(inputs), model.dt, model.spacing, model.particles


def _particles(values: Any) -> arrays.Particles:
    """Return the record of the inputs, or of their adjoints or tangents."""
    x, v, C, tau, m, V = map(flatten, values)
    return arrays.Particles(x, v, C, tau=tau, m=m, V=V)


def _kernels(model: "MPM") -> SimpleNamespace:
    return kernels(runtime.real(), model.dim, model.cells, runtime.settings().on_gpu)
