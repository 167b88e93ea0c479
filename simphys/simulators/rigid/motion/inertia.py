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

A full tensor J, six numbers (xx, yy, zz, yz, xz, xy), takes the place of diag(J) where principal axes are not those of
the frame. Its products, its inverse and their adjoints are those of the symmetric matrix, and

    adj_J = (v g^T + g v^T) / 2, of y = J v                 adj_theta = R ((J w_b) x g_b - w_b x (J g_b))
    adj_J = -J^-1 adj_(J^-1) J^-1

as six numbers, off the diagonal twice the entry of the matrix. Other products of vectors in the body frame are
componentwise; in the plane adj_theta = 0. The gyroscopic torque in the body frame is quadratic, w x (J w) = -D(J) (w *
w) / 2. `gyration` is its derivative by w, [w]x diag(J) - [J w]x, whose product with y is -D(J) (w * y).
Source: Goldstein, Poole and Safko 2002, Classical Mechanics, section 5.3.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation
from simphys.numerics.cofactor import cofactor
from simphys.numerics.element import element


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
def tensor_matrix(J):
    """Return the matrix of a full tensor."""
    return ti.Matrix([[J[0], J[5], J[4]], [J[5], J[1], J[3]], [J[4], J[3], J[2]]])


@ti.func
def multiply(J, v):
    """Return J v in the frame of the body."""
    if ti.static(J.n == 6):
        return tensor_matrix(J) @ v
    else:
        return J * v


@ti.func
def adj_multiply(J, v, g):
    """Return the adjoint of J for that of J v; the adjoint of v is J g."""
    if ti.static(J.n == 6):
        m = mix(v, g)
        return ti.Vector([v[0] * g[0], v[1] * g[1], v[2] * g[2], m[0], m[1], m[2]])
    else:
        return v * g


@ti.func
def invert(J):
    if ti.static(J.n == 6):
        N = inverse_transposed(tensor_matrix(J))
        return ti.Vector([N[0, 0], N[1, 1], N[2, 2], N[1, 2], N[0, 2], N[0, 1]])
    else:
        return 1 / J


@ti.func
def adj_invert(J, g):
    """Return the adjoint of J for that of its inverse."""
    if ti.static(J.n == 6):
        N = inverse_transposed(tensor_matrix(J))
        H = ti.Matrix([[2 * g[0], g[5], g[4]], [g[5], 2 * g[1], g[3]], [g[4], g[3], 2 * g[2]]])
        K = -(N @ H @ N)
        return ti.Vector([K[0, 0] / 2, K[1, 1] / 2, K[2, 2] / 2, K[1, 2], K[0, 2], K[0, 1]])
    else:
        return -g / (J * J)


@ti.func
def adj_turn_by(d, w_b, g_b):
    """Return adj_theta of y = R d R^T w in the frame of the body."""
    if ti.static(d.n == 6):
        return multiply(d, w_b).cross(g_b) - w_b.cross(multiply(d, g_b))
    else:
        return differences(d) * mix(w_b, g_b)


@ti.func
def apply(R, d, w):
    return to_world(R, multiply(d, to_body(R, w)))


@ti.func
def adj_apply(R, d, w, g):
    """Return the adjoints of d, w and theta."""
    w_b, g_b = to_body(R, w), to_body(R, g)
    return adj_multiply(d, w_b, g_b), to_world(R, multiply(d, g_b)), to_world(R, adj_turn_by(d, w_b, g_b))


@ti.func
def turn_by(d, w_b, dtheta_b):
    """Return the tangent of y = R d R^T w by a small rotation, in the frame of the body."""
    if ti.static(d.n == 6):
        return dtheta_b.cross(multiply(d, w_b)) - multiply(d, dtheta_b.cross(w_b))
    else:
        return mix(w_b, differences(d) * dtheta_b)


@ti.func
def jvp_apply(R, d, w, dtheta, dd, dw):
    w_b, dtheta_b = to_body(R, w), to_body(R, dtheta)
    return to_world(R, turn_by(d, w_b, dtheta_b) + multiply(dd, w_b) + multiply(d, to_body(R, dw)))


@element
def apply_at(q, d, w):
    return apply(rotation.matrix(q), d, w)


@apply_at.tangent
def jvp_apply_at(q, d, w, dq, dd, dw):
    """Return the tangent by the small rotation, which is exactly 0 for a ball."""
    return jvp_apply(rotation.matrix(q), d, w, rotation.jvp_turn(q, dq), dd, dw)


@ti.func
def cross_matrix(w):
    return ti.Matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


@ti.func
def gyration(w, J):
    if ti.static(J.n == 6):
        return cross_matrix(w) @ tensor_matrix(J) - cross_matrix(multiply(J, w))
    else:
        return diagonal_gyration(w, differences(J))


@ti.func
def add_tensor(N, c, J):
    """Return N + c J."""
    if ti.static(J.n == 6):
        return N + c * tensor_matrix(J)
    else:
        return N + ti.Matrix([[c * J[0], 0, 0], [0, c * J[1], 0], [0, 0, c * J[2]]])


@ti.func
def diagonal_gyration(w, k):
    return -ti.Matrix([[0, k[0] * w[2], k[0] * w[1]], [k[1] * w[2], 0, k[1] * w[0]], [k[2] * w[1], k[2] * w[0], 0]])


@ti.func
def inverse_transposed(N):
    """Invert by cofactors: this compiles in half the time of the compiler's own inverse."""
    C = cofactor(N)
    return C / (C[0, 0] * N[0, 0] + C[0, 1] * N[0, 1] + C[0, 2] * N[0, 2])
