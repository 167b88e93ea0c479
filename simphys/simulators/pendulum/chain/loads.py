"""Loads on the links besides inertia: weight, motors and damping; and the masses that each link carries.

    f_i = -s_i g sin(x_i - e) + t_i - t_{i+1},   t_i = u_i - c_i (v_i - v_{i-1}),   v_{-1} = t_n = 0       [N m]

Adjoint, for y = adj_f: with z_i = y_i - y_{i-1}, the adjoint of t_i,

    adj_u_i = z_i   adj_c_i = -(v_i - v_{i-1}) z_i   adj_v_i = -c_i z_i + c_{i+1} z_{i+1}
    adj_x_i = -s_i g cos(x_i - e) y_i   adj_e = -sum_i adj_x_i   adj_g = -sum_i s_i sin(x_i - e) y_i

and that of s_i = mu_i L_i goes to mu and L. The adjoint of mu_i = sum_{k >= i} m_k is adj_m_k = sum_{i <= k} adj_mu_i.

The functions work on flat arrays: x and v begin at index `at`, the arrays of a batch member at `par`, torques at
`at_u`; scalars are at b. Nested sub-steps and fused loops share them.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti

from . import linear, terms


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The loads on all links, times a factor."""
    t = terms.functions(real)
    add = linear.functions(real).add

    @ti.func
    def sum_masses(m: ti.template(), par, n, mu: ti.template()):
        """Compute mu from m; the same for their tangents."""
        total = real(0.0)
        for back in range(n):
            total += m[par + n - 1 - back]
            mu[par + n - 1 - back] = total

    @ti.func
    def adj_sum_masses(adj_mu: ti.template(), par, n, adj_m: ti.template()):
        total = real(0.0)
        for i in range(n):
            total += adj_mu[par + i]
            add(adj_m, par + i, total)

    @ti.func
    def previous(v: ti.template(), at, i) -> real:
        """Value v_{i-1} of the link before, 0 for the support."""
        found = real(0.0)
        if i > 0:
            found = v[at + i - 1]
        return found

    @ti.func
    def loads(
        factor, x: ti.template(), v: ti.template(), at, u: ti.template(), at_u, L: ti.template(), mu: ti.template(),
        c: ti.template(), g: ti.template(), e: ti.template(), par, b, n, f: ti.template(), at_f,
    ):  # fmt: skip
        """Add factor * loads to f."""
        for i in range(n):
            torque = t.joint(u[at_u + i], c[par + i], v[at + i] - previous(v, at, i))
            weight = t.weight(mu[par + i] * L[par + i], g[b], x[at + i] - e[b])
            add(f, at_f + i, factor * (weight + torque))
            if i > 0:
                add(f, at_f + i - 1, -factor * torque)

    @ti.func
    def adj_loads(
        factor, x: ti.template(), v: ti.template(), at, L: ti.template(), mu: ti.template(), c: ti.template(),
        g: ti.template(), e: ti.template(), par, b, n, y: ti.template(),
        adj_x: ti.template(), adj_v: ti.template(), adj_u: ti.template(), at_u, adj_L: ti.template(),
        adj_mu: ti.template(), adj_c: ti.template(), adj_g: ti.template(), adj_e: ti.template(),
    ):  # fmt: skip
        """Add to adjoints; y, adj_x and adj_v begin at `par`."""
        for i in range(n):
            turn, z = v[at + i] - previous(v, at, i), factor * (y[par + i] - previous(y, par, i))
            adj_c_i, adj_turn = t.adj_joint(c[par + i], turn, z)
            add(adj_u, at_u + i, z)
            add(adj_c, par + i, adj_c_i)
            add(adj_v, par + i, adj_turn)
            if i > 0:
                add(adj_v, par + i - 1, -adj_turn)
            mu_i, L_i = mu[par + i], L[par + i]
            adj_s, adj_g_i, adj_x_i = t.adj_weight(mu_i * L_i, g[b], x[at + i] - e[b], factor * y[par + i])
            add(adj_mu, par + i, L_i * adj_s)
            add(adj_L, par + i, mu_i * adj_s)
            add(adj_g, b, adj_g_i)
            add(adj_x, par + i, adj_x_i)
            add(adj_e, b, -adj_x_i)

    @ti.func
    def jvp_loads(
        factor, x: ti.template(), v: ti.template(), at, L: ti.template(), mu: ti.template(), c: ti.template(),
        g: ti.template(), e: ti.template(), par, b, n,
        dx: ti.template(), dv: ti.template(), at_d, du: ti.template(), at_u, dL: ti.template(), dmu: ti.template(),
        dc: ti.template(), dg: ti.template(), de: ti.template(), df: ti.template(), at_df,
    ):  # fmt: skip
        """Add factor * the tangent of the loads to df; dx and dv begin at `at_d`."""
        for i in range(n):
            turn, dturn = v[at + i] - previous(v, at, i), dv[at_d + i] - previous(dv, at_d, i)
            dtorque = t.jvp_joint(c[par + i], turn, du[at_u + i], dc[par + i], dturn)
            mu_i, L_i = mu[par + i], L[par + i]
            ds = dmu[par + i] * L_i + mu_i * dL[par + i]
            dweight = t.jvp_weight(mu_i * L_i, g[b], x[at + i] - e[b], ds, dg[b], dx[at_d + i] - de[b])
            add(df, at_df + i, factor * (dweight + dtorque))
            if i > 0:
                add(df, at_df + i - 1, -factor * dtorque)

    return SimpleNamespace(
        sum_masses=sum_masses,
        adj_sum_masses=adj_sum_masses,
        previous=previous,
        loads=loads,
        adj_loads=adj_loads,
        jvp_loads=jvp_loads,
    )
