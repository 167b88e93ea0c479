"""Adjoint of the times of impact and of the contacts at these times (time_of_impact.py)."""

from types import SimpleNamespace
from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from .. import rows
from . import feature, pair, relative_motion
from .islands import IMPACT, timing_impact


def contact_adjoints(real: Any, dim: int, kinds: frozenset[int]) -> SimpleNamespace:
    """Return the parts of the adjoint of one contact."""
    at, move = rows.functions(real, dim), relative_motion.functions(real, dim)
    part, numbers, f = feature.functions(real, dim), feature.numbers(dim), pair.functions(real, dim, kinds)
    R, vec = at.rotations, at.vec

    @ti.func
    def attitude_adjoint(x: ti.template(), adj_x: ti.template(), k):
        """Return the adjoint of a small rotation from that of an orientation."""
        return rotation.adj_theta(at.rotation_at(x.attitude, k * R), at.rotation_at(adj_x.attitude, k * R))

    @ti.func
    def is_idle(c, adj_x: ti.template()):
        """Return True if the adjoints of a candidate's results are zero; False for NaN."""
        found = adj_x.gap[c] == 0 and adj_x.time[c] == 0
        for e in range(3 * dim):
            found = found and adj_x.frame[c * 3 * dim + e] == 0
        for e in range(2 * R):
            found = found and adj_x.attitude[2 * c * R + e] == 0
        return found

    @ti.func
    def adj_contact_at(c, tau, g, n, g_gap, g_n, g_ra, g_rb, model: ti.template(), x: ti.template()):
        """Return the adjoints of x_a - x_b and of the small rotations of both bodies at a time tau."""
        i, j = model.candidates.body_a[c], model.candidates.body_b[c]
        p_d, p_a, p_b = vec(0.0), at.spin(0.0), at.spin(0.0)
        if g < pair.FAR:
            R_a, R_b = rotation.matrix(move.rotated_at(i, tau, x)), rotation.matrix(move.rotated_at(j, tau, x))
            a = part.read(model.candidates.constants, 2 * c * numbers, R_a)
            b = part.read(model.candidates.constants, (2 * c + 1) * numbers, R_b)
            d = move.centre_offset(x.position, x.twist, i, j, tau)
            p_d, p_a, p_b = f.adj(model.candidates.kind[c], d, a, b, g, n, g_gap, g_n, g_ra, g_rb)
        return p_d, p_a, p_b

    @ti.func
    def add_pose_adjoint(body, tau, p_d, p_theta, x: ti.template(), adj_x: ti.template()):
        """Add the adjoint of a body's pose at a time tau."""
        g_pose = rotation.adj_turn(move.rotated_at(body, tau, x), p_theta)
        g_q, g_phi = rotation.adj_advance(at.rotation_of(x.orientation, body), tau * at.angular(x.twist, body), g_pose)
        at.add_vec_of(adj_x.position, body, p_d)
        at.add_rotation_of(adj_x.orientation, body, g_q)
        at.add_twist(adj_x.twist, body, tau * p_d, tau * g_phi)

    return SimpleNamespace(
        attitude_adjoint=attitude_adjoint, is_idle=is_idle, contact_at=adj_contact_at, add_pose=add_pose_adjoint
    )


def adjoint(real: Any, dim: int, kinds: frozenset[int]) -> Any:
    """Return the adjoint of `time_of_impact`."""
    at, move = rows.functions(real, dim), relative_motion.functions(real, dim)
    vec, part = at.vec, contact_adjoints(real, dim, kinds)

    @ti.func
    def adj_contact(c, pose, poses, impact, model: ti.template(), x: ti.template(), adj_x: ti.template()):
        """Add the adjoints by a pose of the bodies: that of the frame, or that of the gap."""
        i, j, start = model.candidates.body_a[c], model.candidates.body_b[c], c * 3 * dim
        tau, g, n = x.time[c], x.gap[c], at.vec_at(x.frame, start)
        r_a, r_b = at.vec_at(x.frame, start + dim), at.vec_at(x.frame, start + 2 * dim)
        g_gap, g_n, g_ra, g_rb = real(0.0), vec(0.0), vec(0.0), vec(0.0)
        turn_a, turn_b = at.spin(0.0), at.spin(0.0)
        if pose == 1:
            tau = 0.0
            n = at.vec_at(x.gap_normal, c * dim)
        else:
            turn_a, turn_b = part.attitude_adjoint(x, adj_x, 2 * c), part.attitude_adjoint(x, adj_x, 2 * c + 1)
            g_n, g_ra = at.vec_at(adj_x.frame, start), at.vec_at(adj_x.frame, start + dim)
            g_rb = at.vec_at(adj_x.frame, start + 2 * dim)
            if poses > 1:
                g = n.dot(move.centre_offset(x.position, x.twist, i, j, tau) + r_a - r_b)
        if pose == poses - 1 and x.active[c] != IMPACT:
            g_gap = adj_x.gap[c]
        p_d, p_a, p_b = part.contact_at(c, tau, g, n, g_gap, g_n, g_ra, g_rb, model, x)
        p_a += turn_a
        p_b += turn_b
        if poses == 2 or x.active[c] == IMPACT:
            g_tau = p_d.dot(at.linear(x.twist, i) - at.linear(x.twist, j))
            g_tau += p_a.dot(at.angular(x.twist, i)) + p_b.dot(at.angular(x.twist, j))
            if pose == 0:
                g_tau += adj_x.time[c]
            if x.active[c] == IMPACT:
                p_gap = -g_tau / move.speed(x.frame, start, x.twist, i, j)
                p_d += p_gap * n
                p_a += p_gap * rotation.moment(r_a, n)
                p_b -= p_gap * rotation.moment(r_b, n)
            elif pose == 0:
                adj_x.time[impact] = adj_x.time[impact] + g_tau
        part.add_pose(i, tau, p_d, p_a, x, adj_x)
        part.add_pose(j, tau, -p_d, p_b, x, adj_x)

    @ti.func
    def adj_time_of_impact(model: ti.template(), x: ti.template(), adj_x: ti.template()):
        """Add to the adjoints. Skip candidates with zero adjoints."""
        for impacts_pass in range(2):  # contacts at rest come first, as they add to adj_time of impacts
            for c in range(model.candidates.count):
                if (x.active[c] == IMPACT) == (impacts_pass == 1) and not part.is_idle(c, adj_x):
                    impact = timing_impact(c, model, x)
                    poses = ti.select(impact >= 0, 2, 1)  # that of the frame, then that of the gap
                    for pose in range(poses):
                        adj_contact(c, pose, poses, impact, model, x, adj_x)

    return adj_time_of_impact
