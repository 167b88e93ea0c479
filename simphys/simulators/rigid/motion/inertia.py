"""World-frame inertia of a body, A = R diag(J) R^T, which maps its angular velocity to its angular momentum:

    L = A w                                                                 [kg m^2/s]

J principal moments [kg m^2] in the body frame, R = R(q) the rotation from there to the world frame; in the plane A = J
is a number. The inverse has d = 1/J in place of J: `apply` takes either. Adjoint of y = R diag(d) R^T w, for g = adj_y,
by d, by w and by a small rotation dtheta of the body in the world frame (see numerics/rotation.py):

    adj_d = w_b g_b     adj_w = R (d g_b)     adj_theta = R (D(d) (w_b * g_b)),     w_b = R^T w,  g_b = R^T g

    D(d) = d_2 - d_3, d_3 - d_1, d_1 - d_2     a * b = a_2 b_3 + a_3 b_2, a_3 b_1 + a_1 b_3, a_1 b_2 + a_2 b_1

since dR = [dtheta]x R. In the form y x g - w x (A g), adj_theta of a ball would be a rounding error instead of 0. The
tangent is

    dy = R (w_b * (D(d) R^T dtheta) + dd w_b + d R^T dw)

Other products of vectors in the body frame are componentwise; in the plane adj_theta = 0. The gyroscopic torque in the
body frame is quadratic, w x (J w) = -D(J) (w * w) / 2. `gyration` is its derivative by w, [w]x diag(J) - [J w]x, whose
product with y is -D(J) (w * y).
Source: Goldstein, Poole and Safko 2002, Classical Mechanics, section 5.3.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.cofactor import cofactor


@ti.func
def to_world(R, s):
    if ti.static(s.n == 3):
        return R @ s
    else:
        return s


@ti.func
def to_body(R, s):
    if ti.static(s.n == 3):
        return R.transpose() @ s
    else:
        return s


@ti.func
def small_rotation(s, f):
    """Return s x f, the contribution of a small rotation of s to f; 0 in the plane."""
    if ti.static(s.n == 3):
        return s.cross(f)
    else:
        return 0.0 * s


@ti.func
def differences(d):
    """Return D(d), which is 0 in the plane; its transpose is -D."""
    if ti.static(d.n == 3):
        return ti.Vector([d[1] - d[2], d[2] - d[0], d[0] - d[1]])
    else:
        return 0.0 * d


@ti.func
def mix(a, b):
    """Return a * b, which is 0 in the plane."""
    if ti.static(a.n == 3):
        return ti.Vector([a[1] * b[2] + a[2] * b[1], a[2] * b[0] + a[0] * b[2], a[0] * b[1] + a[1] * b[0]])
    else:
        return 0.0 * a


@ti.func
def apply(R, d, w):
    return to_world(R, d * to_body(R, w))


@ti.func
def adj_apply(R, d, w, g):
    """Return the adjoints of d, w and theta."""
    w_b, g_b = to_body(R, w), to_body(R, g)
    return w_b * g_b, to_world(R, d * g_b), to_world(R, differences(d) * mix(w_b, g_b))


@ti.func
def jvp_to_body(R, s, dtheta, ds):
    """Return the tangent of R^T s."""
    return to_body(R, ds - small_rotation(dtheta, s))


@ti.func
def jvp_apply(R, d, w, dtheta, dd, dw):
    w_b = to_body(R, w)
    turned = mix(w_b, differences(d) * to_body(R, dtheta))
    return to_world(R, turned + dd * w_b + d * to_body(R, dw))


@ti.func
def gyration(w, J):
    k = differences(J)
    return -ti.Matrix([[0, k[0] * w[2], k[0] * w[1]], [k[1] * w[2], 0, k[1] * w[0]], [k[2] * w[1], k[2] * w[0], 0]])


@ti.func
def inverse_transposed(N):
    """Invert by cofactors: this compiles in half the time of the compiler's own inverse."""
    C = cofactor(N)
    return C / (C[0, 0] * N[0, 0] + C[0, 1] * N[0, 1] + C[0, 2] * N[0, 2])
