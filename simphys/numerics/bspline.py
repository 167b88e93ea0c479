"""Quadratic B-splines on a regular grid: the nodes that interact with a point, and their weights.

Along each axis, a point x interacts with 3 nodes, from base = int(x / dx - 1/2) on. With f = x / dx - base, between 1/2
and 3/2,

    w_0 = (3/2 - f)^2 / 2      w_1 = 3/4 - (f - 1)^2      w_2 = (f - 1/2)^2 / 2
    w_0' = f - 3/2             w_1' = -2 (f - 1)          w_2' = f - 1/2            (d/df)

and the weight of a node is the product over the axes. Weights and their first derivatives are continuous in x, also
where base changes. Source: Steffen, Kirby and Berzins 2008; Hu et al. 2018 (MLS-MPM).
"""

from simphys.autograd.kernels.runtime import ti

STENCIL = 3
"""Number of nodes per axis that interact with a point."""


@ti.func
def spline_weights(f):
    """Weights of the 3 nodes along each axis, a row for each node."""
    return ti.Matrix.rows([0.5 * (1.5 - f) * (1.5 - f), 0.75 - (f - 1.0) * (f - 1.0), 0.5 * (f - 0.5) * (f - 0.5)])


@ti.func
def spline_slopes(f):
    """Derivatives of the weights with respect to f."""
    return ti.Matrix.rows([f - 1.5, -2.0 * (f - 1.0), f - 0.5])
