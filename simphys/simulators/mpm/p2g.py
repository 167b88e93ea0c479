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

from simphys.numerics.element import element
from simphys.substep import per_element, to_grid


@element
def momentum(v, C, tau, m, V, h, dx):
    return m * v, m * C - (4 * h / (dx * dx) * V) * tau


@momentum.adjoint
def adj_momentum(v, C, tau, m, V, h, dx, adj_p, adj_A):
    k = 4 * h / (dx * dx)
    adj_m = v.dot(adj_p) + (C * adj_A).sum()
    return m * adj_p, m * adj_A, (-k * V) * adj_A, adj_m, -k * (tau * adj_A).sum()


@element
def share(r, m, p, A):
    return m, p + A @ r


@share.adjoint
def adj_share(r, m, p, A, adj_m, adj_p):
    return A.transpose() @ adj_p, adj_m, adj_p, adj_p.outer_product(r)


Momentum = per_element(
    momentum,
    over="particles",
    own={"v": "velocity", "C": "affine", "tau": "stress", "m": "mass", "V": "volume"},
    constant={"h": "dt", "dx": "spacing"},
    results={"momentum": "v", "affine_momentum": "C"},
)
"""Momentum m v [n, dim] of each particle, and A [n, dim, dim]."""

ParticleToGrid = to_grid(
    share,
    offset={"r": "position"},
    own={"m": "mass", "p": "momentum", "A": "affine_momentum"},
    results={"mass": "m", "momentum": "p"},
)
"""Mass [*cells] and momentum [*cells, dim] of the nodes."""
