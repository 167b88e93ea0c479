"""Grid to particles: each particle gathers velocity and velocity gradient from the nodes of its stencil, and moves.

    v' = sum w_i u_i        C' = (4 / dx^2) sum w_i u_i (x_i - x)^T        x' = x + h v'

u velocity of nodes [m/s], w quadratic B-splines (numerics/bspline.py), h time step. Adjoint, with
g = adj_v' + h adj_x', B = (4 / dx^2) adj_C' and r = x_i - x:

    adj_u_i += w_i (g + B r)                                                           a scatter
    adj_x = adj_x' + sum grad_w (u_i (g + B r)) - B^T v'

The position becomes NaN where the particle's stencil of three nodes per axis would leave the grid; this stops the
rollout. Source: Hu et al. 2018 (MLS-MPM), eqs. 10 and 20.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import from_grid, per_element


@element
def carry(r, u):
    return u, u.outer_product(r)


@carry.adjoint
def adj_carry(r, u, adj_v, adj_M):
    return adj_M.transpose() @ u, adj_v + adj_M @ r


@element
def move(x, v, M, h, spacing, end_0, end_1, end_2, outside):
    moved, end = x + h * v, ti.Vector([end_0, end_1, end_2])
    for d in ti.static(range(x.n)):
        if moved[d] < 0.5 * spacing or moved[d] > end[d]:
            moved[d] = outside
    return moved, 4 / (spacing * spacing) * M


@move.adjoint
def adj_move(x, v, M, h, spacing, end_0, end_1, end_2, outside, adj_x, adj_C):
    return adj_x, h * adj_x, 4 / (spacing * spacing) * adj_C


GridToParticle = from_grid(
    carry,
    offset={"r": "position"},
    nodes={"u": "velocity"},
    results={"velocity": "u", "moment": lambda dim: (dim, dim)},
)
"""Velocity v' [n, dim] of each particle, and M = sum w u r^T [n, dim, dim]."""

Move = per_element(
    move,
    over="particles",
    own={"x": "position", "v": "velocity", "M": "moment"},
    constant={name: name for name in ("h", "spacing", "end_0", "end_1", "end_2", "outside")},
    results={"position": "x", "affine": "M"},
)
"""Position x' [n, dim] and velocity gradient C' [n, dim, dim]."""
