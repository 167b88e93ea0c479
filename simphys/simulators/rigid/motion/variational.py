"""Free rotation by a variational integrator on the rotation group, the part of a drift that turns bodies.

A body of angular momentum L = A w (see inertia.py) rotates during a time h by the unit quaternion (c, phi) in its own
frame, c = (1 - phi.phi)^(1/2), which solves

    G(phi) = c J phi + phi x (J phi) = h/2 R^T L                            (*)

and conserves its momentum:

    q' = advance((c, R phi) q, -turn)     w' = A(q')^-1 L

with componentwise products of J, and turn the correction for impulses within the step (see drift.py). (*) makes the
action of a discrete motion stationary: the step is symplectic, of order 2, and its own reverse. A free body conserves
momentum and energy to rounding (the latter McLachlan and Zanna 2005). A variational step is a drift by h/2, a kick by h
and a drift by h/2 (step.py), as in Verlet's method: the energy has errors of O(h^2) without a trend. In the plane L = J
w and (*) is not needed: q' = q + h w - turn.

(*) has a solution up to almost h |w| = 1, where a ball rotates by a quarter turn per step; beyond, the result is NaN.
Newton's method finds it in STEPS steps from phi = h/2 w_b. Adjoint: for the adjoint p of phi, the implicit function
theorem gives lambda = (dG/dphi)^-T p, with which

    adj_(R^T L) = h/2 lambda     adj_J = -phi (c lambda + lambda x phi)

and the rest are products of rotations, whose adjoints are in inertia.py and numerics/rotation.py. Its tangent is

    dphi = (dG/dphi)^-1 (h/2 (dJ w_b + J dw_b) - c dJ phi - phi x (dJ phi)),    w_b = R^T w

Source: Moser and Veselov 1991, Discrete versions of some classical integrable systems; Lee, Leok and McClamroch 2007,
Lie group variational integrators for the full body problem; in quaternions Manchester and Peck 2016.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import quaternion, rotation
from simphys.numerics.element import element

from . import inertia

STEPS = 6
"""Number of Newton steps: enough for (*) to hold to rounding up to h |w| = 0.95."""


@ti.func
def slope(phi, c, J):
    """Return dG/dphi."""
    return inertia.add_tensor(inertia.gyration(phi, J) - inertia.multiply(J, phi).outer_product(phi) / c, c, J)


@ti.func
def solve(w_b, J, h):
    """Solve for phi, and return it with (dG/dphi)^-T."""
    phi, inverse_T = h / 2 * w_b, 0.0 * w_b.outer_product(w_b)
    for k in range(STEPS + 1):
        c = ti.sqrt(1 - phi.dot(phi))
        inverse_T = inertia.inverse_transposed(slope(phi, c, J))
        if k < STEPS:
            L = inertia.multiply(J, phi)
            phi -= inverse_T.transpose() @ (c * L + phi.cross(L) - h / 2 * inertia.multiply(J, w_b))
    return phi, inverse_T


@element
def find_increment(w_b, J, h):
    phi, _ = solve(w_b, J, h)
    return phi


@find_increment.tangent
def jvp_find_increment(w_b, J, h, dw_b, dJ):
    phi, inverse_T = solve(w_b, J, h)
    c, turned = ti.sqrt(1 - phi.dot(phi)), inertia.multiply(dJ, phi)
    pushed = inertia.multiply(dJ, w_b) + inertia.multiply(J, dw_b)
    return inverse_T.transpose() @ (h / 2 * pushed - c * turned - phi.cross(turned))


@ti.func
def rotate_in_space(q, w, J, h, turn):
    R = rotation.matrix(q)
    phi = find_increment(R.transpose() @ w, J, h)
    rotated = quaternion.product(quaternion.with_scalar(ti.sqrt(1 - phi.dot(phi)), R @ phi), q)
    q_new = rotation.advance(rotated, -turn)
    return q_new, inertia.apply_at(q_new, inertia.invert(J), inertia.apply_at(q, J, w))


@ti.func
def adj_rotate_in_space(q, w, J, h, turn, g_q, g_w):
    R = rotation.matrix(q)
    L = inertia.apply(R, J, w)
    phi, inverse_T = solve(R.transpose() @ w, J, h)
    c, axis = ti.sqrt(1 - phi.dot(phi)), R @ phi
    increment = quaternion.with_scalar(c, axis)
    rotated = quaternion.product(increment, q)
    q_new = rotation.advance(rotated, -turn)

    adj_inverse, adj_L, adj_theta_new = inertia.adj_apply(rotation.matrix(q_new), inertia.invert(J), L, g_w)
    adj_rotated, adj_back = rotation.adj_advance(rotated, -turn, g_q + rotation.adj_turn(q_new, adj_theta_new))
    adj_increment, adj_q = quaternion.adj_product(increment, q, adj_rotated)
    adj_axis = quaternion.vector_part(adj_increment) - adj_increment[0] / c * axis

    lam = inverse_T @ (R.transpose() @ adj_axis)
    adj_L += h / 2 * (R @ lam)
    adj_J, adj_w, adj_theta = inertia.adj_apply(R, J, w, adj_L)
    adj_theta += axis.cross(adj_axis) - h / 2 * L.cross(R @ lam)
    adj_J += inertia.adj_invert(J, adj_inverse) - inertia.adj_multiply(J, phi, c * lam + lam.cross(phi))
    return adj_q + rotation.adj_turn(q, adj_theta), adj_w, adj_J, -adj_back


@element
def rotate(q, w, J, h, turn):
    """Return q' and w'."""
    if ti.static(q.n == 1):
        return q + h * w - turn, w
    else:
        q_new, w_new = rotate_in_space(q, w, J, h, turn)
        return q_new, w_new


@ti.func
def adj_rotate(q, w, J, h, turn, g_q, g_w):
    """Return the adjoints of q, w, J and turn."""
    if ti.static(q.n == 1):
        return g_q, h * g_q + g_w, 0.0 * J, -g_q
    else:
        return adj_rotate_in_space(q, w, J, h, turn, g_q, g_w)
