"""Products with the matrices of a chain that couple its links, see terms.py:

    p = C w,   s = S q,   C_ij = P_ij cos(x_i - x_j),   S_ij = P_ij sin(x_i - x_j)

C is symmetric and S antisymmetric, so that each pair i > j is taken once. Adjoint, for y = adj_p and z = adj_s:

    adj_w = C y     adj_q = -S z     adj_C_ij = y_i w_j + y_j w_i     adj_S_ij = z_i q_j - z_j q_i     (i > j)

and adj_C_ii = y_i w_i; from there to angles, lengths and carried masses by the adjoint of `couple`.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element

from .terms import adj_couple, couple, jvp_couple


@element
def multiply(x, L, mu, w, q):
    p, s = 0 * x, 0 * x
    for i in range(ti.static(x.n)):
        p_i, s_i = mu[i] * L[i] * L[i] * w[i], 0 * x[i]
        for j in range(i):
            C, S = couple(mu[i], L[i], L[j], x[i] - x[j])
            p_i += C * w[j]
            s_i += S * q[j]
            p[j] = p[j] + C * w[i]
            s[j] = s[j] - S * q[i]
        p[i] = p_i
        s[i] = s_i
    return p, s


@multiply.adjoint
def adj_multiply(x, L, mu, w, q, y, z):
    adj_x, adj_L, adj_mu = 0 * x, 0 * x, 0 * x
    for i in range(ti.static(x.n)):
        adj_P = y[i] * w[i]
        adj_mu_i, adj_L_i, adj_x_i = L[i] * L[i] * adj_P, 2 * mu[i] * L[i] * adj_P, 0 * x[i]
        for j in range(i):
            adj_C, adj_S = y[i] * w[j] + y[j] * w[i], z[i] * q[j] - z[j] * q[i]
            adj_mu_ij, adj_a, adj_b, adj_d = adj_couple(mu[i], L[i], L[j], x[i] - x[j], adj_C, adj_S)
            adj_mu_i += adj_mu_ij
            adj_L_i += adj_a
            adj_x_i += adj_d
            adj_L[j] = adj_L[j] + adj_b
            adj_x[j] = adj_x[j] - adj_d
        adj_mu[i] = adj_mu_i
        adj_L[i] = adj_L_i
        adj_x[i] = adj_x_i
    adj_w, turned = multiply(x, L, mu, y, z)
    return adj_x, adj_L, adj_mu, adj_w, -turned


@multiply.tangent
def jvp_multiply(x, L, mu, w, q, dx, dL, dmu, dw, dq):
    dp, ds = multiply(x, L, mu, dw, dq)
    for i in range(ti.static(x.n)):
        dp_i, ds_i = (dmu[i] * L[i] + 2 * mu[i] * dL[i]) * L[i] * w[i], 0 * x[i]
        for j in range(i):
            dC, dS = jvp_couple(mu[i], L[i], L[j], x[i] - x[j], dmu[i], dL[i], dL[j], dx[i] - dx[j])
            dp_i += dC * w[j]
            ds_i += dS * q[j]
            dp[j] = dp[j] + dC * w[i]
            ds[j] = ds[j] - dS * q[i]
        dp[i] = dp[i] + dp_i
        ds[i] = ds[i] + ds_i
    return dp, ds


@ti.func
def assemble(x, L, mu, q):
    """Return the lower triangle of the mass matrix M(x) = C, and S q."""
    M, s = ti.Matrix.zero(float, ti.static(x.n), ti.static(x.n)), 0 * x
    for i in range(ti.static(x.n)):
        M[i, i] = mu[i] * L[i] * L[i]
        s_i = 0 * x[i]
        for j in range(i):
            C, S = couple(mu[i], L[i], L[j], x[i] - x[j])
            M[i, j] = C
            s_i += S * q[j]
            s[j] = s[j] - S * q[i]
        s[i] = s_i
    return M, s
