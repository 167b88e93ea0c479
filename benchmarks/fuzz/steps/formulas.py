"""Element functions of random steps, each of which fits numbers and vectors alike where it can."""

from __future__ import annotations

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element


@element
def blend(p, q, s):
    return s * ti.sin(p) + q


@blend.adjoint
def adj_blend(p, q, s, adj):
    return s * ti.cos(p) * adj, adj, ti.sin(p).dot(adj)


@blend.tangent
def jvp_blend(p, q, s, dp, dq, ds):
    return ds * ti.sin(p) + s * ti.cos(p) * dp + dq


@element
def merge(p, q, s):
    return s * p + p * q * q


@merge.adjoint
def adj_merge(p, q, s, adj):
    return (s + q * q) * adj, 2 * p * q * adj, p * adj


@element
def nudge(p, q, h):
    return p + h * ti.sin(q)


@nudge.adjoint
def adj_nudge(p, q, h, adj):
    return adj, h * ti.cos(q) * adj


@nudge.tangent
def jvp_nudge(p, q, h, dp, dq):
    return dp + h * ti.cos(q) * dq


@element
def squash(p):
    return ti.tanh(p)


@squash.adjoint
def adj_squash(p, y, adj_y):
    return (1 - y * y) * adj_y


@squash.tangent
def jvp_squash(p, y, dp):
    return (1 - y * y) * dp


@element
def swap(p, q, k):
    return k * q, ti.cos(p) - q


@swap.adjoint
def adj_swap(p, q, k, adj_first, adj_second):
    return -ti.sin(p) * adj_second, k * adj_first - adj_second, q * adj_first


@swap.tangent
def jvp_swap(p, q, k, dp, dq, dk):
    return dk * q + k * dq, -ti.sin(p) * dp - dq


@element
def swell(p, q, k):
    return k * q, ti.cos(p) - q


@swell.adjoint
def adj_swell(p, q, k, adj_first, adj_second):
    return -ti.sin(p) * adj_second, k * adj_first - adj_second, q.dot(adj_first)


@element
def weigh(m, v, g):
    return 0.5 * m * v.dot(v) + v.dot(g)


@weigh.adjoint
def adj_weigh(m, v, g, adj):
    return 0.5 * v.dot(v) * adj, (m * v + g) * adj, adj * v


@weigh.tangent
def jvp_weigh(m, v, g, dm, dv, dg):
    return 0.5 * dm * v.dot(v) + m * v.dot(dv) + dv.dot(g) + v.dot(dg)


@element
def carry(v, m):
    return ti.sin(m) * v


@carry.adjoint
def adj_carry(v, m, adj):
    return ti.sin(m) * adj, ti.cos(m) * v.dot(adj)


@element
def outer(p, q):
    return p.outer_product(q)


@outer.adjoint
def adj_outer(p, q, adj):
    return adj @ q, adj.transpose() @ p


@outer.tangent
def jvp_outer(p, q, dp, dq):
    return dp.outer_product(q) + p.outer_product(dq)


@element
def rotate(m, p):
    return m @ p


@rotate.adjoint
def adj_rotate(m, p, adj):
    return adj.outer_product(p), m.transpose() @ adj


@element
def conduct(d, k):
    return -k * ti.sin(d)


@conduct.adjoint
def adj_conduct(d, k, adj):
    return -k * ti.cos(d) * adj, -ti.sin(d).dot(adj)


@conduct.tangent
def jvp_conduct(d, k, dd, dk):
    return -dk * ti.sin(d) - k * ti.cos(d) * dd


@element
def seep(d, k):
    return -k * ti.sin(d)


@seep.adjoint
def adj_seep(d, k, adj):
    return -k * ti.cos(d) * adj, -ti.sin(d) * adj


@element
def advect(low, high, d, c):
    return c * low * high * high - d


@advect.adjoint
def adj_advect(low, high, d, c, adj):
    return c * high * high * adj, 2 * c * low * high * adj, -adj


@advect.tangent
def jvp_advect(low, high, d, c, dlow, dhigh, dd):
    return c * (dlow * high + 2 * low * dhigh) * high - dd


@element
def leak(u, s, k):
    return k * s - u * s * s


@leak.adjoint
def adj_leak(u, s, k, adj):
    return -s * s * adj, (k - 2 * u * s) * adj, s * adj


@element
def place_in(u, c, at, opened):
    return u + 0.05 * c * (at.dot(at) + opened.sum())


@place_in.adjoint
def adj_place_in(u, c, at, opened, adj):
    return adj, 0.05 * (at.dot(at) + opened.sum()) * adj


@place_in.tangent
def jvp_place_in(u, c, at, opened, du, dc):
    return du + 0.05 * dc * (at.dot(at) + opened.sum())


@element
def repel(d, u, a, b, k):
    return a * b * ti.sin(d) - k * u


@repel.adjoint
def adj_repel(d, u, a, b, k, adj):
    s = ti.sin(d).dot(adj)
    return a * b * ti.cos(d) * adj, -k * adj, b * s, a * s, -u.dot(adj)


@element
def push(d, u, a, b, k, rc):
    s = 1 - d.dot(d) / (rc * rc)
    return s * s * s * (a * b * d - k * u)


@push.adjoint
def adj_push(d, u, a, b, k, rc, adj):
    s = 1 - d.dot(d) / (rc * rc)
    w, t = s * s * s, d.dot(adj)
    slope = -6 * s * s / (rc * rc) * (a * b * t - k * u.dot(adj))
    return slope * d + w * a * b * adj, -w * k * adj, w * b * t, w * a * t, -w * u.dot(adj)


@push.tangent
def jvp_push(d, u, a, b, k, rc, dd, du, da, db, dk):
    s = 1 - d.dot(d) / (rc * rc)
    w, dw = s * s * s, -6 * s * s / (rc * rc) * d.dot(dd)
    change = (da * b + a * db) * d + a * b * dd - dk * u - k * du
    return dw * (a * b * d - k * u) + w * change


@element
def crowd(d, a, b, rc):
    s = 1 - d.dot(d) / (rc * rc)
    return a * b * s * s * s


@crowd.adjoint
def adj_crowd(d, a, b, rc, adj):
    s = 1 - d.dot(d) / (rc * rc)
    w = s * s * s * adj
    return -6 / (rc * rc) * a * b * s * s * adj * d, b * w, a * w
