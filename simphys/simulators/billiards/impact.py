"""Impact of two balls, without friction: an impulse along the line of centres.

With d = x_i - x_j, n = d / |d|, w = n.(v_i - v_j) < 0 and the reduced mass m = m_i m_j / (m_i + m_j), the impulse

    J = (1 + c) m w                                                         [N s]
    v_i' = v_i - J n / m_i,     v_j' = v_j + J n / m_j                      [m/s]

c restitution [1]: n.(v_i' - v_j') = -c w. Adjoint, for g = adj_v_i', h = adj_v_j', z = h / m_j - g / m_i:

    adj_J = n.z     adj_w = (1 + c) m adj_J     adj_n = J z + adj_w (v_i - v_j)
    adj_v_i = g + adj_w n      adj_v_j = h - adj_w n     adj_x_i = -adj_x_j = (adj_n - n (n.adj_n)) / |d|
    adj_c = m w adj_J          adj_m_i = J n.g / m_i^2 + (1 + c) w adj_J (m_j / (m_i + m_j))^2
                               adj_m_j = -J n.h / m_j^2 + (1 + c) w adj_J (m_i / (m_i + m_j))^2

Tangent, with M = m_i + m_j:

    dn = (dd - n (n.dd)) / |d|       dw = dn.(v_i - v_j) + n.(dv_i - dv_j)       dm = (m_j^2 dm_i + m_i^2 dm_j) / M^2
    dJ = m w dc + (1 + c) (w dm + m dw)                        dv_i' = dv_i - ((dJ - J dm_i / m_i) n + J dn) / m_i
                                                               dv_j' = dv_j + ((dJ - J dm_j / m_j) n + J dn) / m_j

These are derivatives at a fixed time; time_of_impact.py adds the dependence of that time on the state. Source: Newton's
law of restitution and the balance of momentum (Goldsmith 1960, Impact, chapter 1).
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
    """Return the element functions of two balls."""
    vec = ti.types.vector(2, real)

    @ti.func
    def impact(d: vec, v_i: vec, v_j: vec, m_i: real, m_j: real, c: real):
        n = d / d.norm()
        J = (1 + c) * n.dot(v_i - v_j) * (m_i * m_j / (m_i + m_j))
        return v_i - (J / m_i) * n, v_j + (J / m_j) * n

    @ti.func
    def adj_impact(d: vec, v_i: vec, v_j: vec, m_i: real, m_j: real, c: real, g: vec, h: vec):
        distance = d.norm()
        n = d / distance
        w, m = n.dot(v_i - v_j), m_i * m_j / (m_i + m_j)
        J = (1 + c) * m * w
        z = h / m_j - g / m_i
        adj_J = n.dot(z)
        adj_w = (1 + c) * m * adj_J
        adj_n = J * z + adj_w * (v_i - v_j)
        adj_m = (1 + c) * w * adj_J / ((m_i + m_j) * (m_i + m_j))
        adj_d = (adj_n - n.dot(adj_n) * n) / distance
        adj_m_i = J * n.dot(g) / (m_i * m_i) + adj_m * m_j * m_j
        adj_m_j = -J * n.dot(h) / (m_j * m_j) + adj_m * m_i * m_i
        return adj_d, g + adj_w * n, h - adj_w * n, adj_m_i, adj_m_j, m * w * adj_J

    @ti.func
    def jvp_impact(
        d: vec, v_i: vec, v_j: vec, m_i: real, m_j: real, c: real,
        dd: vec, dv_i: vec, dv_j: vec, dm_i: real, dm_j: real, dc: real,
    ):  # fmt: skip
        distance = d.norm()
        n = d / distance
        dn = (dd - n.dot(dd) * n) / distance
        w, m = n.dot(v_i - v_j), m_i * m_j / (m_i + m_j)
        dw = dn.dot(v_i - v_j) + n.dot(dv_i - dv_j)
        dm = (m_j * m_j * dm_i + m_i * m_i * dm_j) / ((m_i + m_j) * (m_i + m_j))
        J = (1 + c) * m * w
        dJ = m * w * dc + (1 + c) * (w * dm + m * dw)
        dv_i_new = dv_i - ((dJ - J * dm_i / m_i) * n + J * dn) / m_i
        dv_j_new = dv_j + ((dJ - J * dm_j / m_j) * n + J * dn) / m_j
        return dv_i_new, dv_j_new

    return SimpleNamespace(impact=impact, adj_impact=adj_impact, jvp_impact=jvp_impact)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Return the kernels of the nested sub-step for one pair."""
    vec = ti.types.vector(2, real)
    f = functions(real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def forward(x: vectors, v: vectors, m: reals, c: real, i: ti.i32, j: ti.i32, v_new: vectors):
        v_new[i], v_new[j] = f.impact(x[i] - x[j], v[i], v[j], m[i], m[j], c)

    @kernel
    def adjoint(
        x: vectors, v: vectors, m: reals, c: real, i: ti.i32, j: ti.i32, adj_v_new: vectors,
        adj_x: vectors, adj_v: vectors, adj_m: reals, adj_c: reals,
    ):  # fmt: skip
        gd, g, h, gm_i, gm_j, gc = f.adj_impact(x[i] - x[j], v[i], v[j], m[i], m[j], c, adj_v_new[i], adj_v_new[j])
        adj_x[i] = gd
        adj_x[j] = -gd
        adj_v[i] = g
        adj_v[j] = h
        adj_m[i] = gm_i
        adj_m[j] = gm_j
        adj_c[0] = gc

    @kernel
    def tangent(
        x: vectors, v: vectors, m: reals, c: real, i: ti.i32, j: ti.i32,
        dx: vectors, dv: vectors, dm: reals, dc: real, dv_new: vectors,
    ):  # fmt: skip
        dv_new[i], dv_new[j] = f.jvp_impact(
            x[i] - x[j], v[i], v[j], m[i], m[j], c, dx[i] - dx[j], dv[i], dv[j], dm[i], dm[j], dc
        )

    return SimpleNamespace(forward=forward, adjoint=adjoint, tangent=tangent)


class Impact(Function):
    """Velocity [n, 2] after an impact of balls i and j at position [n, 2], with mass [n] and restitution []."""

    @staticmethod
    def forward(
        ctx: Context, i: int, j: int, position: Tensor, velocity: Tensor, mass: Tensor, restitution: Tensor
    ) -> np.ndarray[Any, Any]:
        ctx.pair = i, j
        ctx.save_for_backward(position, velocity, mass, restitution)
        v_new = velocity.data.copy()
        kernels(runtime.real()).forward(position, velocity, mass, float(restitution), i, j, v_new)
        return v_new

    @staticmethod
    def backward(ctx: Context, adj_v_new: Tensor) -> tuple[Any, ...]:
        position, velocity, mass, restitution = ctx.saved_tensors
        adj_x, adj_v = np.zeros_like(position.data), adj_v_new.data.copy()
        adj_m, adj_c = np.zeros_like(mass.data), np.empty(1, mass.dtype)
        kernels(runtime.real()).adjoint(
            position, velocity, mass, float(restitution), *ctx.pair, adj_v_new, adj_x, adj_v, adj_m, adj_c
        )
        return None, None, adj_x, adj_v, adj_m, adj_c[0]

    @staticmethod
    def jvp(ctx: Context, _: None, __: None, dx: Any, dv: Any, dm: Any, dc: Any) -> np.ndarray[Any, Any]:
        position, velocity, mass, restitution = ctx.saved_tensors
        dv_new = dv.copy()
        kernels(runtime.real()).tangent(
            position, velocity, mass, float(restitution), *ctx.pair, dx, dv, dm, float(dc), dv_new
        )
        return dv_new
