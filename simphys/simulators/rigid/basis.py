"""Orthonormal basis of a unit normal n and its tangents, smooth in n except where its last component changes sign.

The tangent of n = (x, y) is (-y, x); those of n = (x, y, z), with s = sign(z), a = -1 / (s + z):

    t1 = (1 + s a x^2, s a x y, -s x)      t2 = (a x y, s + a y^2, -y)

With da = a^2 dz, the tangent is the derivative of each component.

Source: Duff et al. 2017, Building an Orthonormal Basis, Revisited.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return the element functions in `dim` dimensions."""
    vec, mat = ti.types.vector(dim, real), ti.types.matrix(dim, dim, real)

    @ti.func
    def basis(n: vec) -> mat:
        """Return n and the tangents as rows."""
        T = mat(0.0)
        if ti.static(dim == 2):
            T = mat([[n[0], n[1]], [-n[1], n[0]]])
        else:
            x, y, z, s = n[0], n[1], n[2], real(1.0)
            if z < 0:
                s = -1.0
            a = -1.0 / (s + z)
            T = mat([[x, y, z], [1 + s * a * x * x, s * a * x * y, -s * x], [a * x * y, s + a * y * y, -y]])
        return T

    @ti.func
    def adj_basis(n: vec, g: mat) -> vec:
        adj_n = vec(0.0)
        if ti.static(dim == 2):
            adj_n = vec(g[0, 0] + g[1, 1], g[0, 1] - g[1, 0])
        else:
            x, y, z, s = n[0], n[1], n[2], real(1.0)
            if z < 0:
                s = -1.0
            a = -1.0 / (s + z)
            cross = s * g[1, 1] + g[2, 0]
            adj_a = s * x * x * g[1, 0] + x * y * cross + y * y * g[2, 1]
            adj_n[0] = g[0, 0] + 2 * s * a * x * g[1, 0] + a * y * cross - s * g[1, 2]
            adj_n[1] = g[0, 1] + a * x * cross + 2 * a * y * g[2, 1] - g[2, 2]
            adj_n[2] = g[0, 2] + a * a * adj_a
        return adj_n

    @ti.func
    def jvp_basis(n: vec, dn: vec) -> mat:
        dT = mat(0.0)
        if ti.static(dim == 2):
            dT = mat([[dn[0], dn[1]], [-dn[1], dn[0]]])
        else:
            x, y, z, s = n[0], n[1], n[2], real(1.0)
            dx, dy, dz = dn[0], dn[1], dn[2]
            if z < 0:
                s = -1.0
            a = -1.0 / (s + z)
            da = a * a * dz
            dxy = da * x * y + a * (dx * y + x * dy)
            dT = mat([
                [dx, dy, dz],
                [s * (da * x * x + 2 * a * x * dx), s * dxy, -s * dx],
                [dxy, da * y * y + 2 * a * y * dy, -dy],
            ])  # fmt: skip
        return dT

    return SimpleNamespace(basis=basis, adj=adj_basis, jvp=jvp_basis)
