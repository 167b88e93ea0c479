"""Radial distribution function: a smooth histogram of the distances of pairs, differentiable by the positions.

    g_k = sum over pairs of w_k B((r - c_k) / h)        w_k = 2 / (n rho V_k)

B quadratic B-spline, c_k centre of bin k [m], h distance of the centres, V_k volume of a shell of thickness h at c_k,
rho number density: g is 1 where atoms are independent of each other. Each atom has its half of its pairs. Adjoint, for
z = adj_g of an atom and of its neighbour together, with B' the difference of two hat functions:

    adj_d = (sum_k z_k w_k B'_k) d / (h r)
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import neighbours, total


@ti.func
def slope(x):
    return ti.max(1.0 - ti.abs(x + 0.5), 0.0) - ti.max(1.0 - ti.abs(x - 0.5), 0.0)


@element
def pair_histogram(d, c, w, rate):
    x = ti.abs(ti.sqrt(d.dot(d)) - c) * rate
    far, near = ti.max(1.5 - x, 0.0), ti.max(0.5 - x, 0.0)
    return w * (0.5 * far * far - 1.5 * near * near)


@pair_histogram.adjoint
def adj_pair_histogram(d, c, w, rate, adj_g):
    r = ti.sqrt(d.dot(d))
    return (adj_g.dot(w * slope((r - c) * rate)) * rate / r) * d


PairHistogram = neighbours(
    pair_histogram,
    over="atoms",
    distance={"d": "position"},
    constant={"c": "centres", "w": "weights", "rate": "rate"},
    onto="pair_histogram",
    even=True,
    result="c",
)
"""Each atom's half of the radial distribution function, [n, bins]."""


@element
def give(g):
    return 1.0 * g


@give.adjoint
def adj_give(g, adj_y):
    return 1.0 * adj_y


SumAtoms = total(give, over="atoms", own={"g": "pair_histogram"}, results={"rdf": "g"})
"""Radial distribution function [bins]."""
