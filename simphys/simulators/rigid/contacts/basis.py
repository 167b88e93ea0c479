"""Orthonormal basis of a unit normal n and its tangents, smooth in n except where its last component changes sign.

The tangent of n = (x, y) is (-y, x); those of n = (x, y, z), with s = sign(z), a = -1 / (s + z):

    t1 = (1 + s a x^2, s a x y, -s x)      t2 = (a x y, s + a y^2, -y)

Source: Duff et al. 2017, Building an Orthonormal Basis, Revisited.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.forward_mode import tangent_of


@ti.func
def scale(n):
    """Return s and a, in space."""
    s = ti.select(n[2] < 0, -1.0, 1.0)
    return s, -1.0 / (s + n[2])


@ti.func
def basis(n):
    """Return n and the tangents as rows."""
    if ti.static(n.n == 2):
        return ti.Matrix([[n[0], n[1]], [-n[1], n[0]]])
    else:
        x, y, z = n[0], n[1], n[2]
        s, a = scale(n)
        return ti.Matrix([[x, y, z], [1 + s * a * x * x, s * a * x * y, -s * x], [a * x * y, s + a * y * y, -y]])


@ti.func
def adj_basis(n, g):
    if ti.static(n.n == 2):
        return ti.Vector([g[0, 0] + g[1, 1], g[0, 1] - g[1, 0]])
    else:
        x, y = n[0], n[1]
        s, a = scale(n)
        cross = s * g[1, 1] + g[2, 0]
        adj_a = s * x * x * g[1, 0] + x * y * cross + y * y * g[2, 1]
        return ti.Vector([
            g[0, 0] + 2 * s * a * x * g[1, 0] + a * y * cross - s * g[1, 2],
            g[0, 1] + a * x * cross + 2 * a * y * g[2, 1] - g[2, 2],
            g[0, 2] + a * a * adj_a,
        ])  # fmt: skip


jvp_basis = tangent_of(basis, "n")
