"""Tangent of the times of impact and of the contacts at these times (time_of_impact.py)."""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from ..rows import angular, frame_of, linear, orientation_of, put, put_frame, read, row_of
from . import pair
from .feature import jvp_centres, read_features
from .islands import IMPACT, timing_impact
from .relative_motion import centre_offset, rotated_at, speed


@ti.func
def drotated_at(body, tau, dtau, x: ti.template(), dx: ti.template()):
    """Return the tangent of the orientation of a body at a time tau."""
    w, dw = angular(row_of(x.twist, body)), angular(row_of(dx.twist, body))
    q, dq = orientation_of(x.orientation, body), row_of(dx.orientation, body)
    return rotation.jvp_advance(q, tau * w, dq, tau * dw + dtau * w)


@ti.func
def jvp_contact_at(c, tau, dtau, gap, n, model: ti.template(), x: ti.template(), dx: ti.template()):
    """Return the tangents of gap, n, r_a and r_b at a time tau, then those of the poses there."""
    i, j, kind = model.candidates.body_a[c], model.candidates.body_b[c], model.candidates.kind[c]
    rotated_a, rotated_b = rotated_at(i, tau, x), rotated_at(j, tau, x)
    drotated_a, drotated_b = drotated_at(i, tau, dtau, x, dx), drotated_at(j, tau, dtau, x, dx)
    a, b = read_features(c, model, x, rotated_a, rotated_b)
    s_a, s_b = jvp_centres(c, model, dx, a, b)
    dd = centre_offset(dx.position, dx.twist, i, j, tau) + s_a - s_b
    dd += dtau * (linear(row_of(x.twist, i)) - linear(row_of(x.twist, j)))
    none = ti.Vector.zero(float, model.dim)
    dgap, dn, dr_a, dr_b = 0.0, none, none, none
    da, db = rotation.jvp_turn(rotated_a, drotated_a), rotation.jvp_turn(rotated_b, drotated_b)
    if gap < pair.FAR:
        d = centre_offset(x.position, x.twist, i, j, tau)
        dgap, dn, dr_a, dr_b = pair.jvp_contact(kind, d, a, b, gap, n, dd, da, db, model.candidates.kinds)
        dr_a += s_a
        dr_b += s_b
    return dgap, dn, dr_a, dr_b, drotated_a, drotated_b, dd, da, db


@ti.func
def jvp_time_of_impact(model: ti.template(), x: ti.template(), dx: ti.template()):
    """Compute the tangents of the results `contacts`."""
    R = ti.static(x.orientation.width)
    for rest_pass in range(2):  # impacts come first, as they time contacts at rest
        for c in range(model.candidates.count):
            i, j, tau = model.candidates.body_a[c], model.candidates.body_b[c], x.time[c]
            is_impact, impact, dtau = x.active[c] == IMPACT, timing_impact(c, model, x), 0.0
            g = x.gap[c]
            n, r_a, r_b = frame_of(x.frame, c)
            if impact >= 0:
                dtau = dx.time[impact]
                g = n.dot(centre_offset(x.position, x.twist, i, j, tau) + r_a - r_b)
            if is_impact == (rest_pass == 0):
                for settled in range(ti.select(is_impact, 2, 1)):  # at fixed tau, which gives dtau; then with it
                    dgap, dn, dr_a, dr_b, drotated_a, drotated_b, dd, da, db = jvp_contact_at(
                        c, tau, dtau, g, n, model, x, dx
                    )
                    if is_impact and settled == 0:
                        approach = n.dot(dd) + rotation.moment(r_a, n).dot(da) - rotation.moment(r_b, n).dot(db)
                        dtau = -approach / speed(x.frame, c, x.twist, i, j)
                    dx.gap[c] = ti.select(is_impact, 0.0, dgap)
                    put_frame(dx.frame, c, dn, dr_a, dr_b)
                    put(dx.attitude, 2 * c * R, drotated_a)
                    put(dx.attitude, (2 * c + 1) * R, drotated_b)
                    dx.time[c] = dtau
                if impact >= 0:
                    normal = read(x.gap_normal, c * model.dim, model.dim)
                    dgap, _n, _r_a, _r_b, _q_a, _q_b, _d, _a, _b = jvp_contact_at(
                        c, 0.0, 0.0, x.gap[c], normal, model, x, dx
                    )
                    dx.gap[c] = dgap
