"""Harmonic bonds and angles: forces, energy and virial of listed pairs and triples of atoms.

Bond of atoms a and b, with d = x_a - x_b, r = |d|, k stiffness [N/m] and L rest length [m]:

    energy = k/2 (r - L)^2     f_a = -f_b = -k (1 - L/r) d     virial = f_a.d = -k (r - L) r

Angle at atom b between a and c, with u = x_a - x_b, w = x_c - x_b, C = cos T = u.w/(|u||w|), k stiffness [J], T0 rest
angle, A and B the gradients of C by u and by w, and h the slope of the energy by C:

    energy = k/2 (T - T0)^2     f_a = -h A     f_c = -h B     f_b = -f_a - f_c     h = -k (T - T0) / sin T

It has no virial, as an angle stays if all distances grow alike. At a straight angle sin T counts as 1e-6: hold straight
molecules by bonds between their ends. Adjoint of the bond, for z = adj_f_a - adj_f_b, e = z.d/r, and (y, p) those of
energy and virial:

    adj_d = -k (1 - L/r) z + (k/r) ((r - L) y - (2 r - L) p - e L/r) d
    adj_k = (r - L) ((r - L) y/2 - r p - e)        adj_L = k (e + r p - (r - L) y)

and of the angle, for p = adj_f_a - adj_f_b, q = adj_f_c - adj_f_b, W = A.p + B.q, dA and dB the changes of A and B as
(u, w) change by (p, q), which are symmetric, and h' = dh/dC:

    adj_u = (h y - h' W) A - h dA     adj_w = (h y - h' W) B - h dB
    adj_k = (T - T0) ((T - T0) y/2 + W/sin T)      adj_T0 = -k ((T - T0) y + W/sin T)

Source: Allen and Tildesley 2017, Computer simulation of liquids, appendix C.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import collect, per_element


@element
def bond(a, b, k, L):
    d = a - b
    r = ti.sqrt(d.dot(d))
    s, f = r - L, (k * (L / r - 1)) * d
    return f, -f, ti.Vector([0.5 * k * s * s, -k * s * r])


@bond.adjoint
def adj_bond(a, b, k, L, adj_f_a, adj_f_b, adj_sums):
    d, z = a - b, adj_f_a - adj_f_b
    r = ti.sqrt(d.dot(d))
    s, e, y, p = r - L, z.dot(d) / r, adj_sums[0], adj_sums[1]
    adj_d = (k * (L / r - 1)) * z + (k / r * (s * y - (r + s) * p - e * L / r)) * d
    return adj_d, -adj_d, s * (0.5 * s * y - r * p - e), k * (e + r * p - s * y)


@ti.func
def cosine(u, w):
    """Return the cosine of the angle between two vectors, and its gradients by them."""
    p, q = 1 / ti.sqrt(u.dot(u)), 1 / ti.sqrt(w.dot(w))
    e, g = p * u, q * w
    c = e.dot(g)
    return c, p * (g - c * e), q * (e - c * g)


@ti.func
def turn(u, w, du, dw):
    """Return the changes of both gradients."""
    p, q = 1 / ti.sqrt(u.dot(u)), 1 / ti.sqrt(w.dot(w))
    e, g = p * u, q * w
    c, A, B = cosine(u, w)
    stretch, other, dc = e.dot(du), g.dot(dw), A.dot(du) + B.dot(dw)
    de, dg = p * (du - stretch * e), q * (dw - other * g)
    return p * (dg - dc * e - c * de - stretch * A), q * (de - dc * g - c * dg - other * B)


@ti.func
def bend(c, k, T):
    """Return the slope of the energy by the cosine c, that of this slope, the deviation from T, and the sine."""
    s = ti.max(ti.sqrt(ti.max(1 - c * c, 0.0)), 1e-6)
    x = ti.atan2(s, c) - T
    return -k * x / s, k * (1 - x * c / s) / (s * s), x, s


@element
def angle(a, b, c, k, T):
    C, A, B = cosine(a - b, c - b)
    h, _, x, _ = bend(C, k, T)
    return -h * A, h * (A + B), -h * B, ti.Vector([0.5 * k * x * x, 0.0])


@angle.adjoint
def adj_angle(a, b, c, k, T, adj_f_a, adj_f_b, adj_f_c, adj_sums):
    C, A, B = cosine(a - b, c - b)
    h, slope, x, s = bend(C, k, T)
    p, q, y = adj_f_a - adj_f_b, adj_f_c - adj_f_b, adj_sums[0]
    dA, dB = turn(a - b, c - b, p, q)
    W = A.dot(p) + B.dot(q)
    adj_u, adj_w = (h * y - slope * W) * A - h * dA, (h * y - slope * W) * B - h * dB
    return adj_u, -(adj_u + adj_w), adj_w, x * (0.5 * x * y + W / s), -k * (x * y + W / s)


Bond = per_element(
    bond,
    over="bonds",
    own={"k": "bond_stiffness", "L": "rest_length"},
    gathered={"a": ("position", "bond_a"), "b": ("position", "bond_b")},
    results={"bond_force_a": "a", "bond_force_b": "b", "bond_sums": (2,)},
)
"""Forces [bonds, dim] of each bond on its two atoms, and its energy and virial [bonds, 2]."""

BondForce = collect(
    "bond_force", parts={"bond_force_a": "bond_a", "bond_force_b": "bond_b"}, over="bonds", onto="atoms"
)
"""Forces [n, dim] of bonds on atoms."""

BondSums = collect("bond_sums_of_atoms", parts={"bond_sums": "bond_a"}, over="bonds", onto="atoms")
"""Energy and virial of bonds, [n, 2], each at its first atom."""

Angle = per_element(
    angle,
    over="angles",
    own={"k": "angle_stiffness", "T": "rest_angle"},
    gathered={"a": ("position", "angle_a"), "b": ("position", "angle_b"), "c": ("position", "angle_c")},
    results={"angle_force_a": "a", "angle_force_b": "b", "angle_force_c": "c", "angle_sums": (2,)},
)
"""Forces [angles, dim] of each angle on its three atoms, and its energy and virial [angles, 2]."""

AngleForce = collect(
    "angle_force",
    parts={"angle_force_a": "angle_a", "angle_force_b": "angle_b", "angle_force_c": "angle_c"},
    over="angles",
    onto="atoms",
)
"""Forces [n, dim] of angles on atoms."""

AngleSums = collect("angle_sums_of_atoms", parts={"angle_sums": "angle_b"}, over="angles", onto="atoms")
"""Energy and virial of angles, [n, 2], each at its middle atom."""
