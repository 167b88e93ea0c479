"""Coulomb forces, energy and virial of pairs of charges: damped, and shifted so that they end at the cut-off.

With d = x_i - x_j, r = |d|, n = d/r, R the cut-off, a damping [1/m], K Coulomb's constant, P = K q_i q_j and

    v(r) = erfc(a r)/r     g(r) = -v'(r) = erfc(a r)/r^2 + 2 a/sqrt(pi) exp(-a^2 r^2)/r

    f = P (g(r) - g(R)) n     energy of i: U/2, U = P (v(r) - v(R) + g(R) (r - R))     virial of i: f.d/2

The force vanishes at the cut-off, and the energy with its slope: the potential is C1 there, the force C0. Its slope
jumps by P g'(R), which damping makes small. So gradients are exact but at those motions on which a pair is just at the
cut-off. Atoms of one molecule do not interact so. Adjoint, for z = adj_f, w = z.n, (y, p) those of energy and virial:

    adj_d = P ((g - g(R))/r (z - w n) + g' w n)              adj_q_i = K q_j (g - g(R)) w
    adj_d = P/2 ((r g' + g - g(R)) p - (g - g(R)) y) n       adj_q_i = K q_j/2 ((v + g(R) r - l) y + (g - g(R)) r p)

and likewise for q_j, with l = v(R) + g(R) R. Each charge has an energy of its own, c q^2, c = -K (a/sqrt(pi) + l/2):
half of what the potential is at r = 0 without 1/r. With it, energies approach those of an infinite system.

Source: Fennell and Gezelter 2006, J. Chem. Phys. 124, 234104, eq. 19; Wolf et al. 1999, J. Chem. Phys. 110, 8254.
"""

import math
from typing import NamedTuple

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.erfc import erfc
from simphys.substep import neighbours, per_element

from .potential import apart

SLOPE = 2 / math.sqrt(math.pi)


class Shift(NamedTuple):
    """Numbers of the potential of a unit charge at the cut-off."""

    slope: float
    """g(R) [1/m^2]."""
    level: float
    """v(R) + g(R) R [1/m]."""


def find_shift(damping: float, cutoff: float) -> Shift:
    """Compute force and potential at the cut-off."""
    v = math.erfc(damping * cutoff) / cutoff
    g = v / cutoff + SLOPE * damping * math.exp(-((damping * cutoff) ** 2)) / cutoff
    return Shift(g, v + g * cutoff)


@ti.func
def damp(r, a):
    """Return v, g, and the slope of g."""
    v = erfc(a * r) / r
    e = SLOPE * a * ti.exp(-a * a * r * r)
    g = (v + e) / r
    return v, g, -2 * g / r - 2 * a * a * e


@element
def charge_force(d, q_i, q_j, m_i, m_j, K, a, slope):
    r = ti.sqrt(d.dot(d))
    _, g, _ = damp(r, a)
    return (apart(m_i, m_j) * K * q_i * q_j * (g - slope) / r) * d


@charge_force.adjoint
def adj_charge_force(d, q_i, q_j, m_i, m_j, K, a, slope, adj_f):
    r = ti.sqrt(d.dot(d))
    _, g, g1 = damp(r, a)
    z, n, c = (apart(m_i, m_j) * K) * adj_f, d / r, (g - slope) / r
    w = z.dot(n)
    return (q_i * q_j) * (c * z + ((g1 - c) * w) * n), q_j * r * c * w, q_i * r * c * w


@element
def charge_sums(d, q_i, q_j, m_i, m_j, K, a, slope, level):
    r = ti.sqrt(d.dot(d))
    v, g, _ = damp(r, a)
    return (0.5 * apart(m_i, m_j) * K * q_i * q_j) * ti.Vector([v + slope * r - level, (g - slope) * r])


@charge_sums.adjoint
def adj_charge_sums(d, q_i, q_j, m_i, m_j, K, a, slope, level, adj_sums):
    r = ti.sqrt(d.dot(d))
    v, g, g1 = damp(r, a)
    z = (0.5 * apart(m_i, m_j) * K) * adj_sums
    e = (v + slope * r - level) * z[0] + (g - slope) * r * z[1]
    return (q_i * q_j * ((g1 + (g - slope) / r) * z[1] - (g - slope) / r * z[0])) * d, q_j * e, q_i * e


@element
def self_sums(q, c):
    return ti.Vector([c * q * q, 0.0])


@self_sums.adjoint
def adj_self_sums(q, c, adj_sums):
    return 2 * c * q * adj_sums[0]


ChargeForce = neighbours(
    charge_force,
    over="atoms",
    distance={"d": "position"},
    both={("q_i", "q_j"): "charge"},
    marks={("m_i", "m_j"): "molecule"},
    constant={"K": "coulomb", "a": "damping", "slope": "slope"},
    onto="charge_force",
)
"""Forces [n, dim] of charges on each other."""

ChargeSums = neighbours(
    charge_sums,
    over="atoms",
    distance={"d": "position"},
    both={("q_i", "q_j"): "charge"},
    marks={("m_i", "m_j"): "molecule"},
    constant={"K": "coulomb", "a": "damping", "slope": "slope", "level": "level"},
    onto="charge_sums",
    even=True,
    result=(2,),
)
"""Each atom's half of the energy, and of the virial, of its pairs of charges, [n, 2]."""

SelfSums = per_element(
    self_sums, over="atoms", own={"q": "charge"}, constant={"c": "self energy"}, results={"self_sums": (2,)}
)
"""Each charge's own energy, and no virial, [n, 2]."""
