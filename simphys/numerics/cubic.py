"""Cubic convolution on a regular grid: the weights of the four nodes around a point, along an axis.

Node i of an axis lies at i. A point p interacts with 4 nodes, from floor(p) - 1 on. With f = p - floor(p),

    w_0 = -f^3 / 2 + f^2 - f / 2              w_0' = -3/2 f^2 + 2 f - 1/2
    w_1 = 3/2 f^3 - 5/2 f^2 + 1               w_1' = 9/2 f^2 - 5 f
    w_2 = -3/2 f^3 + 2 f^2 + f / 2            w_2' = -9/2 f^2 + 4 f + 1/2
    w_3 = f^3 / 2 - f^2 / 2                   w_3' = 3/2 f^2 - f

and the weight of a node of a grid is the product over its axes. At a node its own weight is 1 and all others are 0.
Weights and their first derivatives are continuous in p. Quadratic fields are reproduced, so a source spread with these
weights has the zeroth, first and second moments of a delta at p.
Source: Keys 1981, with a = -1/2.
"""

from __future__ import annotations

from .element import element

STENCIL = 4
"""Number of nodes per axis that interact with a point."""


@element
def cubic(f):
    return (
        f * (f * (1.0 - 0.5 * f) - 0.5),
        f * f * (1.5 * f - 2.5) + 1.0,
        f * (f * (2.0 - 1.5 * f) + 0.5),
        f * f * (0.5 * f - 0.5),
    )


@cubic.adjoint
def adj_cubic(f, adj_0, adj_1, adj_2, adj_3):
    s_0, s_1, s_2, s_3 = jvp_cubic(f, 1.0)
    return s_0 * adj_0 + s_1 * adj_1 + s_2 * adj_2 + s_3 * adj_3


@cubic.tangent
def jvp_cubic(f, df):
    return (
        (f * (2.0 - 1.5 * f) - 0.5) * df,
        f * (4.5 * f - 5.0) * df,
        (f * (4.0 - 4.5 * f) + 0.5) * df,
        f * (1.5 * f - 1.0) * df,
    )
