"""Tangent of the times of impact and of the contacts at these times (time_of_impact.py)."""

from typing import Any

from simphys.autograd.kernels.runtime import ti
from simphys.numerics import rotation

from .. import rows
from . import feature, pair, relative_motion
from .islands import IMPACT, timing_impact


def contact_tangent(real: Any, dim: int, kinds: frozenset[int]) -> Any:
    """Return the function of the tangents of a contact at a time."""
    at, move = rows.functions(real, dim), relative_motion.functions(real, dim)
    part, numbers, f = feature.functions(real, dim), feature.numbers(dim), pair.functions(real, dim, kinds)
    vec = at.vec

    @ti.func
    def drotated_at(body, tau, dtau, x: ti.template(), dx: ti.template()):
        """Return the tangent of the orientation of a body at a time tau."""
        w, dw = at.angular(x.twist, body), at.angular(dx.twist, body)
        q, dq = at.rotation_of(x.orientation, body), at.drotation_of(dx.orientation, body)
        return rotation.jvp_advance(q, tau * w, dq, tau * dw + dtau * w)

    @ti.func
    def jvp_contact_at(c, tau, dtau, gap, n, model: ti.template(), x: ti.template(), dx: ti.template()):
        """Return the tangents of gap, n, r_a and r_b at a time tau, then those of the poses there."""
        i, j, kind = model.candidates.body_a[c], model.candidates.body_b[c], model.candidates.kind[c]
        rotated_a, rotated_b = move.rotated_at(i, tau, x), move.rotated_at(j, tau, x)
        drotated_a, drotated_b = drotated_at(i, tau, dtau, x, dx), drotated_at(j, tau, dtau, x, dx)
        a = part.read(model.candidates.constants, 2 * c * numbers, rotation.matrix(rotated_a))
        b = part.read(model.candidates.constants, (2 * c + 1) * numbers, rotation.matrix(rotated_b))
        dd = move.centre_offset(dx.position, dx.twist, i, j, tau)
        dd += dtau * (at.linear(x.twist, i) - at.linear(x.twist, j))
        dgap, dn, dr_a, dr_b = real(0.0), vec(0.0), vec(0.0), vec(0.0)
        da, db = rotation.jvp_turn(rotated_a, drotated_a), rotation.jvp_turn(rotated_b, drotated_b)
        if gap < pair.FAR:
            d = move.centre_offset(x.position, x.twist, i, j, tau)
            dgap, dn, dr_a, dr_b = f.jvp(kind, d, a, b, gap, n, dd, da, db)
        return dgap, dn, dr_a, dr_b, drotated_a, drotated_b, dd, da, db

    return jvp_contact_at


def tangent(real: Any, dim: int, kinds: frozenset[int]) -> Any:
    """Return the tangent of `time_of_impact`."""
    at, move = rows.functions(real, dim), relative_motion.functions(real, dim)
    jvp_contact_at, R = contact_tangent(real, dim, kinds), at.rotations

    @ti.func
    def jvp_time_of_impact(model: ti.template(), x: ti.template(), dx: ti.template()):
        """Compute the tangents of the results `contacts`."""
        for rest_pass in range(2):  # impacts come first, as they time contacts at rest
            for c in range(model.candidates.count):
                i, j, start, tau = model.candidates.body_a[c], model.candidates.body_b[c], c * 3 * dim, x.time[c]
                is_impact, impact, dtau = x.active[c] == IMPACT, timing_impact(c, model, x), real(0.0)
                g, n = x.gap[c], at.vec_at(x.frame, start)
                r_a, r_b = at.vec_at(x.frame, start + dim), at.vec_at(x.frame, start + 2 * dim)
                if impact >= 0:
                    dtau = dx.time[impact]
                    g = n.dot(move.centre_offset(x.position, x.twist, i, j, tau) + r_a - r_b)
                if is_impact == (rest_pass == 0):
                    for settled in range(ti.select(is_impact, 2, 1)):  # at fixed tau, which gives dtau; then with it
                        dgap, dn, dr_a, dr_b, drotated_a, drotated_b, dd, da, db = jvp_contact_at(
                            c, tau, dtau, g, n, model, x, dx
                        )  # fmt: skip
                        if is_impact and settled == 0:
                            approach = n.dot(dd) + rotation.moment(r_a, n).dot(da) - rotation.moment(r_b, n).dot(db)
                            dtau = -approach / move.speed(x.frame, start, x.twist, i, j)
                        dx.gap[c] = ti.select(is_impact, 0.0, dgap)
                        at.put_vec(dx.frame, start, dn)
                        at.put_vec(dx.frame, start + dim, dr_a)
                        at.put_vec(dx.frame, start + 2 * dim, dr_b)
                        at.put_rotation(dx.attitude, 2 * c * R, drotated_a)
                        at.put_rotation(dx.attitude, (2 * c + 1) * R, drotated_b)
                        dx.time[c] = dtau
                    if impact >= 0:
                        normal = at.vec_at(x.gap_normal, c * dim)
                        dgap, _n, _r_a, _r_b, _q_a, _q_b, _d, _a, _b = jvp_contact_at(
                            c, 0.0, 0.0, x.gap[c], normal, model, x, dx
                        )  # fmt: skip
                        dx.gap[c] = dgap

    return jvp_time_of_impact
