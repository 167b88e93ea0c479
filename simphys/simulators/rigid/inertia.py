"""World-frame inertia of a body, A = R diag(J) R^T, which maps its angular velocity to its angular momentum:

    L = A w                                                                 [kg m^2/s]

J principal moments [kg m^2] in the body frame, R = R(q) the rotation from there to the world frame; in the plane A = J
is a number. The inverse has d = 1/J in place of J: `apply` takes either. Adjoint of y = R diag(d) R^T w, for g = adj_y,
by d, by w and by a small rotation dtheta of the body in the world frame (see numerics/rotation.py):

    adj_d = (R^T w) (R^T g)     adj_w = A g     adj_theta = y x g - w x (A g)

since dR = [dtheta]x R. Its tangent is

    dy = dtheta x y + R (dd (R^T w) + d (R^T (dw - dtheta x w)))

Products of vectors in the body frame are componentwise; in the plane adj_theta = 0. `gyration`
is the derivative of w x (J w) by w, in the body frame and in space: [w]x diag(J) - [J w]x.
Source: Goldstein, Poole and Safko 2002, Classical Mechanics, section 5.3.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import cofactor, rotation


@functools.cache
@no_type_check
def functions(real: Any, dim: int) -> SimpleNamespace:
    """Return the element functions in `dim` dimensions; R is `rotation.matrix(q)`, which is not read in the plane."""
    spins = rotation.functions(real, dim).spins
    spin, mat = ti.types.vector(spins, real), ti.types.matrix(dim, dim, real)
    cofactor_ = cofactor.functions(real, dim)

    @ti.func
    def to_world(R: mat, s: spin) -> spin:
        r = s
        if ti.static(dim == 3):
            r = R @ s
        return r

    @ti.func
    def to_body(R: mat, s: spin) -> spin:
        r = s
        if ti.static(dim == 3):
            r = R.transpose() @ s
        return r

    @ti.func
    def small_rotation(s: spin, f: spin) -> spin:
        """Return s x f, the contribution of a small rotation of s to f; 0 in the plane."""
        r = spin(0.0)
        if ti.static(dim == 3):
            r = s.cross(f)
        return r

    @ti.func
    def apply(R: mat, d: spin, w: spin) -> spin:
        return to_world(R, d * to_body(R, w))

    @ti.func
    def adj_apply(R: mat, d: spin, w: spin, g: spin):
        """Return the adjoints of d, w and theta."""
        w_b, g_b = to_body(R, w), to_body(R, g)
        adj_w = to_world(R, d * g_b)
        return w_b * g_b, adj_w, small_rotation(to_world(R, d * w_b), g) - small_rotation(w, adj_w)

    @ti.func
    def jvp_to_body(R: mat, s: spin, dtheta: spin, ds: spin) -> spin:
        """Return the tangent of R^T s."""
        return to_body(R, ds - small_rotation(dtheta, s))

    @ti.func
    def jvp_apply(R: mat, d: spin, w: spin, dtheta: spin, dd: spin, dw: spin) -> spin:
        turned = small_rotation(dtheta, apply(R, d, w))
        return turned + to_world(R, dd * to_body(R, w) + d * jvp_to_body(R, w, dtheta, dw))

    @ti.func
    def gyration(w: spin, J: spin) -> mat:
        p = J * w
        return mat([
            [0, p[2] - w[2] * J[1], w[1] * J[2] - p[1]],
            [w[2] * J[0] - p[2], 0, p[0] - w[0] * J[2]],
            [p[1] - w[1] * J[0], w[0] * J[1] - p[0], 0],
        ])  # fmt: skip

    @ti.func
    def inverse_transposed(N: mat) -> mat:
        """Invert by cofactors: this compiles in half the time of the compiler's own inverse."""
        C = cofactor_.cofactor(N)
        return C / (C[0, 0] * N[0, 0] + C[0, 1] * N[0, 1] + C[0, 2] * N[0, 2])

    return SimpleNamespace(
        spin=spin,
        to_world=to_world,
        to_body=to_body,
        small_rotation=small_rotation,
        apply=apply,
        adj=adj_apply,
        jvp=jvp_apply,
        jvp_to_body=jvp_to_body,
        gyration=gyration,
        inverse_transposed=inverse_transposed,
    )
