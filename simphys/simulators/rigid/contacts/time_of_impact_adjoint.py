"""Adjoint of the times of impact and of the contacts at these times (time_of_impact.py)."""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from ..rows import add_to_row, angular, frame_of, half_of, join, linear, orientation_of, read, row_of
from . import pair
from .feature import adj_centres, read_features
from .islands import IMPACT, timing_impact
from .relative_motion import centre_offset, rotated_at, speed


@ti.func
def is_idle(c, adj_x: ti.template()):
    """Return True if the adjoints of a candidate's results are zero; False for NaN."""
    found = adj_x.gap[c] == 0 and adj_x.time[c] == 0
    for e in range(adj_x.frame.width):
        found = found and adj_x.frame[c * adj_x.frame.width + e] == 0
    for e in range(adj_x.attitude.width):
        found = found and adj_x.attitude[c * adj_x.attitude.width + e] == 0
    return found


@ti.func
def adj_contact_at(c, tau, g, n, g_gap, g_n, g_ra, g_rb, model: ti.template(), x: ti.template()):
    """Return the adjoints of x_a - x_b and of the small rotations of both bodies at a time tau."""
    i, j = model.candidates.body_a[c], model.candidates.body_b[c]
    p_d, p_a = ti.Vector.zero(float, model.dim), ti.Vector.zero(float, x.twist.width - model.dim)
    p_b = p_a
    if g < pair.FAR:
        a, b = read_features(c, model, x, rotated_at(i, tau, x), rotated_at(j, tau, x))
        d, kind = centre_offset(x.position, x.twist, i, j, tau), model.candidates.kind[c]
        p_d, p_a, p_b = pair.adj_contact(kind, d, a, b, g, n, g_gap, g_n, g_ra, g_rb, model.candidates.kinds)
    return p_d, p_a, p_b


@ti.func
def add_pose(body, tau, p_d, p_theta, x: ti.template(), adj_x: ti.template()):
    """Add the adjoint of a body's pose at a time tau."""
    g_pose = rotation.adj_turn(rotated_at(body, tau, x), p_theta)
    angle = tau * angular(row_of(x.twist, body))
    g_q, g_phi = rotation.adj_advance(orientation_of(x.orientation, body), angle, g_pose)
    add_to_row(adj_x.position, body, p_d)
    add_to_row(adj_x.orientation, body, g_q)
    add_to_row(adj_x.twist, body, join(tau * p_d, tau * g_phi))


@ti.func
def adj_contact(c, pose, poses, impact, model: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Add the adjoints by a pose of the bodies: that of the frame, or that of the gap."""
    i, j = model.candidates.body_a[c], model.candidates.body_b[c]
    tau, g, g_gap = x.time[c], x.gap[c], 0.0
    n, r_a, r_b = frame_of(x.frame, c)
    g_n, g_ra, g_rb = frame_of(adj_x.frame, c)
    turn_a = rotation.adj_theta(half_of(x.attitude, c, 0), half_of(adj_x.attitude, c, 0))
    turn_b = rotation.adj_theta(half_of(x.attitude, c, 1), half_of(adj_x.attitude, c, 1))
    if pose == 1:
        tau = 0.0
        n = read(x.gap_normal, c * model.dim, model.dim)
        g_n, g_ra, g_rb = 0.0 * n, 0.0 * n, 0.0 * n
        turn_a = 0.0 * turn_a
        turn_b = 0.0 * turn_b
    elif poses > 1:
        g = n.dot(centre_offset(x.position, x.twist, i, j, tau) + r_a - r_b)
    if pose == poses - 1 and x.active[c] != IMPACT:
        g_gap = adj_x.gap[c]
    p_d, p_a, p_b = adj_contact_at(c, tau, g, n, g_gap, g_n, g_ra, g_rb, model, x)
    p_a += turn_a
    p_b += turn_b
    if poses == 2 or x.active[c] == IMPACT:
        twist_a, twist_b = row_of(x.twist, i), row_of(x.twist, j)
        g_tau = p_d.dot(linear(twist_a) - linear(twist_b))
        g_tau += p_a.dot(angular(twist_a)) + p_b.dot(angular(twist_b))
        if pose == 0:
            g_tau += adj_x.time[c]
        if x.active[c] == IMPACT:
            p_gap = -g_tau / speed(x.frame, c, x.twist, i, j)
            p_d += p_gap * n
            p_a += p_gap * rotation.moment(r_a, n)
            p_b -= p_gap * rotation.moment(r_b, n)
        elif pose == 0:
            adj_x.time[impact] = adj_x.time[impact] + g_tau
    if ti.static(model.free_anchors):  # noqa: SIM102 - decided when compiling
        if g < pair.FAR:
            a, b = read_features(c, model, x, rotated_at(i, tau, x), rotated_at(j, tau, x))
            adj_centres(c, model, adj_x, a, b, p_d, g_ra, g_rb)
    add_pose(i, tau, p_d, p_a, x, adj_x)
    add_pose(j, tau, -p_d, p_b, x, adj_x)


@ti.func
def adj_time_of_impact(model: ti.template(), x: ti.template(), adj_x: ti.template()):
    """Add to the adjoints. Skip candidates with zero adjoints."""
    for impacts_pass in range(2):  # contacts at rest come first, as they add to adj_time of impacts
        for c in range(model.candidates.count):
            if (x.active[c] == IMPACT) == (impacts_pass == 1) and not is_idle(c, adj_x):
                impact = timing_impact(c, model, x)
                poses = ti.select(impact >= 0, 2, 1)  # that of the frame, then that of the gap
                for pose in range(poses):
                    adj_contact(c, pose, poses, impact, model, x, adj_x)
