"""Forces, energy and virial of pairs of atoms: Lennard-Jones or Morse, switched off smoothly at a cut-off.

With d = x_i - x_j, r = |d| and q = r^2, the potential is psi(q) = 4 e (a^2 - a) S for

    Lennard-Jones  a = (s^2/q)^3               Morse  a = exp(-k (r - s))

e depth of the well, s distance of zero energy [m], k steepness [1/m]; Morse's minimum is at s + ln 2 / k. The switch
S = 1 - u^3 (10 - 15 u + 6 u^2), u = (q - q_on)/(q_off - q_on) within 0 and 1, is C2: psi, psi' and psi'' vanish at the
cut-off, so that forces and their first derivatives are continuous. Of the pair, with ' for d/dq,

    f = -2 psi' d      energy of i: psi/2      virial of i: f.d/2 = -q psi'

and for z = adj_f, w = z.d, and (y, p) the adjoints of energy and virial, with p_x for the derivative by x = e, s, k:

    adj_d = -2 psi' z - 4 psi'' w d                    adj_x = -2 psi'_x w
    adj_d = (psi' y - 2 (psi' + q psi'') p) d          adj_x = psi_x y/2 - q psi'_x p

Atoms i and j of one molecule, m_i = m_j > 0, do not interact so.

Source: Jones 1924; Morse 1929; Allen and Tildesley 2017, Computer simulation of liquids, chapter 2.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import neighbours


@ti.func
def curve(q, s, k, morse, on, off):
    """Return psi, psi', psi'', and derivatives of the first two by s and by k, for a depth of 1."""
    rate, ratio = 1 / q, s * s / q
    a = ratio * ratio * ratio
    a1, a2 = -3 * rate * a, 12 * (rate * rate) * a
    a_s, a1_s = 6 * a / s, 6 * a1 / s
    a_k, a1_k = 0 * a, 0 * a
    if morse > 0.5:
        r = ti.sqrt(q)
        a = ti.exp(-k * (r - s))
        a1, a2 = -k * a / (2 * r), a * (k * k + k / r) * (0.25 * rate)
        a_s, a1_s = k * a, k * a1
        a_k, a1_k = (s - r) * a, (s - r) * a1 - a / (2 * r)
    b = 8 * a - 4
    p, p1, p2 = 4 * a * (a - 1), b * a1, b * a2 + 8 * a1 * a1
    width = 1 / (off - on)
    u = ti.min(ti.max((q - on) * width, 0.0), 1.0)
    g = u * (1 - u)
    S, S1, S2 = 1 - u * u * u * (10 - 15 * u + 6 * u * u), -30 * g * g * width, -60 * g * (1 - 2 * u) * width * width
    c1_s = (b * a1_s + 8 * a_s * a1) * S + b * a_s * S1
    c1_k = (b * a1_k + 8 * a_k * a1) * S + b * a_k * S1
    return p * S, p1 * S + p * S1, p2 * S + 2 * p1 * S1 + p * S2, b * a_s * S, c1_s, b * a_k * S, c1_k


@ti.func
def apart(m_i, m_j):
    """Return 0 for two atoms of one molecule, else 1."""
    return ti.select((m_i == m_j) and (m_i > 0.5), 0.0, 1.0)


@element
def pair_force(d, e, s, k, m_i, m_j, morse, on, off):
    _, c1, _, _, _, _, _ = curve(d.dot(d), s, k, morse, on, off)
    return (-2 * e * c1 * apart(m_i, m_j)) * d


@pair_force.adjoint
def adj_pair_force(d, e, s, k, m_i, m_j, morse, on, off, adj_f):
    _, c1, c2, _, c1_s, _, c1_k = curve(d.dot(d), s, k, morse, on, off)
    z = apart(m_i, m_j) * adj_f
    w = d.dot(z)
    return (-2 * e * c1) * z - (4 * e * c2 * w) * d, -2 * c1 * w, -2 * e * c1_s * w, -2 * e * c1_k * w


@element
def pair_sums(d, e, s, k, m_i, m_j, morse, on, off):
    q = d.dot(d)
    c, c1, _, _, _, _, _ = curve(q, s, k, morse, on, off)
    return (apart(m_i, m_j) * e) * ti.Vector([0.5 * c, -q * c1])


@pair_sums.adjoint
def adj_pair_sums(d, e, s, k, m_i, m_j, morse, on, off, adj_sums):
    q = d.dot(d)
    c, c1, c2, c_s, c1_s, c_k, c1_k = curve(q, s, k, morse, on, off)
    y, p = 0.5 * apart(m_i, m_j) * adj_sums[0], -apart(m_i, m_j) * adj_sums[1]
    adj_d = (2 * e * (c1 * y + (c1 + q * c2) * p)) * d
    return adj_d, c * y + q * c1 * p, e * (c_s * y + q * c1_s * p), e * (c_k * y + q * c1_k * p)


PairForce = neighbours(
    pair_force,
    over="atoms",
    distance={"d": "position"},
    shared={"e": "epsilon", "s": "sigma", "k": "steepness"},
    marks={("m_i", "m_j"): "molecule"},
    constant={"morse": "morse", "on": "switch_on", "off": "cutoff"},
    onto="force",
)
"""Forces [n, dim] of atoms on each other; on and off are squares of distances."""

PairSums = neighbours(
    pair_sums,
    over="atoms",
    distance={"d": "position"},
    shared={"e": "epsilon", "s": "sigma", "k": "steepness"},
    marks={("m_i", "m_j"): "molecule"},
    constant={"morse": "morse", "on": "switch_on", "off": "cutoff"},
    onto="pair_sums",
    even=True,
    result=(2,),
)
"""Each atom's half of the energy, and of the virial, of its pairs, [n, 2]."""
