"""Time of impact: its dependence on the state before, by the implicit function theorem (saltation).

The gap between the partners closes at the time t, gap(t) = 0, at the rate w < 0:

    two balls        gap = |d| - r_i - r_j,       n = d / |d|,    w = n.(v_i - v_j),     d = x_i - x_j    [m]
    ball, cushion    gap = s (x_k - wall) - r_i,  n = s e_k,      w = n.v_i,             s = +-1          [m]

with x, v at the impact. Hence dt = -d(gap) / w, with d(gap) taken at the fixed time t. Adjoint, for g = adj_t and
q = -g / w:

    adj_x_i = q n     adj_x_j = -q n     adj_r_i = adj_r_j = -q     adj_wall = -s q

The tangent is dt = -(n.(dx_i - dx_j) - dr_i - dr_j) / w, for a cushion -(n.dx_i - s dwall - dr_i) / w, with the
tangents of x after a flight of fixed time.
The adjoint of the flight carries these back to the state before it. At a graze w = 0, and there is no derivative.
Together with the flights before and after and the impact between, this is the saltation matrix (Bernardo et al. 2008,
Piecewise-smooth Dynamical Systems, section 2.5). Without it, derivatives of positions after the impact are wrong.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element

from .flight import NEVER, adj_place, flight, jvp_flight, rest_time
from .search import acceleration, first_root


@element
def time_of_impact(x_i, v_i, r_i, x_j, v_j, r_j, a, end, min_step, rounding):
    d, reach, speed = x_i - x_j, r_i + r_j, v_i.norm() + v_j.norm()
    near, slow = rounding * (ti.abs(x_i).max() + ti.abs(x_j).max() + reach), rounding * speed
    time, uncertainty = NEVER + 0.0 * end, 0.0 * end
    if speed > 0 and d.norm() - reach <= (speed + ti.max(-a, 0.0) * end) * end + near:
        rest_i, rest_j = rest_time(v_i, a), rest_time(v_j, a)
        begin = 0.0 * end
        for part in range(2):  # first both move, then one
            until = ti.min(rest_i, rest_j)
            if part == 1:
                until = ti.max(rest_i, rest_j)
            until = ti.min(until, end)
            if time == NEVER and until > begin:
                y_i, u_i = flight(x_i, v_i, a, begin)
                y_j, u_j = flight(x_j, v_j, a, begin)
                y, w, b = (
                    y_i - y_j,
                    u_i - u_j,
                    acceleration(v_i, a, begin < rest_i) - acceleration(v_j, a, begin < rest_j),
                )
                c0, c1, c2, c3, c4 = y.dot(y) - reach * reach, 2 * y.dot(w), w.dot(w) + y.dot(b), w.dot(b), b.dot(b)
                s = 2 * reach
                root, slack = first_root(c0, c1, c2, c3, 0.25 * c4, until - begin, s * near, s * slow, min_step)
                if root >= 0:
                    time, uncertainty = begin + root, slack
            begin = ti.max(begin, until)
    return time, uncertainty


@ti.func
def approach(x_i, v_i, x_j, v_j, a, t):
    """Compute the normal towards ball i at the impact, and the rate of the gap."""
    y_i, u_i = flight(x_i, v_i, a, t)
    y_j, u_j = flight(x_j, v_j, a, t)
    d = y_i - y_j
    n = d / d.norm()
    return n, n.dot(u_i - u_j)


@time_of_impact.adjoint
def adj_time_of_impact(x_i, v_i, r_i, x_j, v_j, r_j, a, end, min_step, rounding, time, slack, adj_time, adj_slack):
    n, w = approach(x_i, v_i, x_j, v_j, a, time)
    q = -adj_time / w
    adj_v_i, adj_a_i = adj_place(v_i, a, time, q * n)
    adj_v_j, adj_a_j = adj_place(v_j, a, time, -q * n)
    return q * n, adj_v_i, -q, -q * n, adj_v_j, -q, adj_a_i + adj_a_j


@time_of_impact.tangent
def jvp_time_of_impact(
    x_i, v_i, r_i, x_j, v_j, r_j, a, end, min_step, rounding, time, slack, dx_i, dv_i, dr_i, dx_j, dv_j, dr_j, da
):  # fmt: skip
    n, w = approach(x_i, v_i, x_j, v_j, a, time)
    dy_i, _ = jvp_flight(x_i, v_i, a, time, dx_i, dv_i, da, 0.0)
    dy_j, _ = jvp_flight(x_j, v_j, a, time, dx_j, dv_j, da, 0.0)
    return -(n.dot(dy_i - dy_j) - dr_i - dr_j) / w, 0.0


@ti.func
def is_upper(side):
    """Return 1 for a cushion at the upper end of its axis, else 0."""
    return ti.cast(side, ti.i32) & 1


@ti.func
def normal(side):
    """Return the direction away from a cushion."""
    sign = 1.0 - 2.0 * is_upper(side)
    return ti.Vector([ti.select(side < 2, sign, 0.0), ti.select(side < 2, 0.0, sign)])


@element
def time_of_bounce(x, v, r, a, lower, upper, side, end, min_step, rounding):
    n, u = normal(side), v.norm()
    slope, slow = n.dot(v), rounding * u
    time, uncertainty = NEVER + 0.0 * end, 0.0 * end
    if slope < -slow:
        gap = n.dot(x - ti.select(is_upper(side) == 0, lower, upper)) - r
        until, near = ti.min(rest_time(v, a), end), rounding * (ti.abs(x).max() + r)
        bend = -a / u * slope
        square = slope * slope - 2 * bend * gap
        rate = ti.sqrt(ti.max(square, 0.0))
        t = 2 * gap / (rate - slope)
        if until > 0 and rate > slow and square > 2 * near * bend and t <= until + near / rate:
            time, uncertainty = ti.min(ti.max(t, 0.0), until), near / rate
    return time, uncertainty


@time_of_bounce.adjoint
def adj_time_of_bounce(x, v, r, a, lower, upper, side, end, min_step, rounding, time, slack, adj_time, adj_slack):
    n, u = normal(side), v.norm()
    lost, e_n = a * time / u, n.dot(v) / u
    q = -adj_time / ((1 - lost) * u * e_n)
    adj_v = q * time * (n - 0.5 * lost * (n - e_n / u * v))
    adj_wall, is_lower = -q * n, 1 - is_upper(side)
    return q * n, adj_v, -q, -0.5 * time * time * q * e_n, is_lower * adj_wall, (1 - is_lower) * adj_wall


@time_of_bounce.tangent
def jvp_time_of_bounce(
    x, v, r, a, lower, upper, side, end, min_step, rounding, time, slack, dx, dv, dr, da, dlower, dupper
):  # fmt: skip
    n, u = normal(side), v.norm()
    lost, e_n = a * time / u, n.dot(v) / u
    dwall = dlower + is_upper(side) * (dupper - dlower)
    dgap = n.dot(dx - dwall + time * dv) - 0.5 * time * lost * (n.dot(dv) - e_n / u * v.dot(dv))
    return -(dgap - dr - 0.5 * time * time * da * e_n) / ((1 - lost) * u * e_n), 0.0
