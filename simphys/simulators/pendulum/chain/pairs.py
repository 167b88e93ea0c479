"""Products with the matrices of a chain that couple its links, see terms.py:

    p = C w,   b = S q,   C_ij = s_i L_j cos(x_i - x_j),   S_ij = s_i L_j sin(x_i - x_j)     (i > j),   C_ii = J_i

C is symmetric and S antisymmetric, so that each pair i > j is taken once. Adjoint, for y = adj_p and z = adj_b:

    adj_w = C y     adj_q = -S z     adj_C_ij = y_i w_j + y_j w_i     adj_S_ij = z_i q_j - z_j q_i     (i > j)

and adj_J_i = y_i w_i; from there to angles, lengths and first moments by the adjoint of `couple`.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.forward_mode import tangent_of

from .terms import adj_couple, couple


@element
def multiply(x, L, s, J, w, q):
    p, b = 0 * x, 0 * x
    for i in range(ti.static(x.n)):
        p_i, b_i = J[i] * w[i], 0 * x[i]
        for j in range(i):
            C, S = couple(s[i], L[j], x[i] - x[j])
            p_i += C * w[j]
            b_i += S * q[j]
            p[j] = p[j] + C * w[i]
            b[j] = b[j] - S * q[i]
        p[i] = p_i
        b[i] = b_i
    return p, b


@multiply.adjoint
def adj_multiply(x, L, s, J, w, q, y, z):
    adj_x, adj_L, adj_s = 0 * x, 0 * L, 0 * x
    for i in range(ti.static(x.n)):
        adj_s_i, adj_x_i = 0 * s[i], 0 * x[i]
        for j in range(i):
            adj_C, adj_S = y[i] * w[j] + y[j] * w[i], z[i] * q[j] - z[j] * q[i]
            adj_s_ij, adj_b, adj_d = adj_couple(s[i], L[j], x[i] - x[j], adj_C, adj_S)
            adj_s_i += adj_s_ij
            adj_x_i += adj_d
            adj_L[j] = adj_L[j] + adj_b
            adj_x[j] = adj_x[j] - adj_d
        adj_s[i] = adj_s_i
        adj_x[i] = adj_x_i
    adj_w, turned = multiply(x, L, s, J, y, z)
    return adj_x, adj_L, adj_s, y * w, adj_w, -turned


jvp_multiply = tangent_of(multiply, "x", "L", "s", "J", "w", "q")


@ti.func
def assemble(x, L, s, J, q):
    """Return the lower triangle of the mass matrix M(x) = C, and S q."""
    M, b = ti.Matrix.zero(float, ti.static(x.n), ti.static(x.n)), 0 * x
    for i in range(ti.static(x.n)):
        M[i, i] = J[i]
        b_i = 0 * x[i]
        for j in range(i):
            C, S = couple(s[i], L[j], x[i] - x[j])
            M[i, j] = C
            b_i += S * q[j]
            b[j] = b[j] - S * q[i]
        b[i] = b_i
    return M, b
