"""Contacts as forces: a stiff spring with damping where features overlap, and friction that is smooth in the slip.

At depth p = -gap > 0, with u the velocity of a relative to b at the contact, u_n = n.u and u_t = u - u_n n, the force

    f = f_n (n - mu y)      f_n = k p max(1 - c u_n, 0)      y = u_t / (|u_t|^2 + v_s^2)^(1/2)         [N]

acts on a, and -f on b, at a point midway between both surfaces: a_a = r_a - gap n / 2 from the centre of a,
a_b = r_b + gap n / 2 from that of b. A single point conserves angular momentum. k stiffness [N/m], c damping [s/m].
v_s, the model's `slip_speed` [m/s], is the slip at which friction has 1/sqrt(2) of its limit mu f_n; below it, bodies
creep. mu is the mean of both bodies' friction; against the world it is the body's own.

Damping is proportional to depth, so that the force starts and ends at 0. For any k, m and shape, an impact at speed v
rebounds at e v, where

    G(v) = G(-e v),   G(v) = c v - ln(1 + c v);      e = 1 - 2/3 c v + O((c v)^2)

Without damping, a contact of mass m lasts pi (m/k)^(1/2). Derivatives through an impact need shorter steps than speeds,
since the depth in the first step of contact matters: an accuracy of 1 % takes about 700 steps per contact. Speeds are
then accurate to 1e-5. Adjoint, for g = adj_f, s = 1 - c u_n:

    adj_f_n = g.(n - mu y)     adj_y = -mu f_n g     adj_mu = -f_n g.y     adj_u_t = (adj_y - y y.adj_y) / (...)^(1/2)
    adj_k = p s adj_f_n     adj_c = -k p u_n adj_f_n     adj_u_n = -k p c adj_f_n     adj_p = k s adj_f_n
    adj_u = adj_u_t + (adj_u_n - n.adj_u_t) n     adj_n = f_n g + (adj_u_n - n.adj_u_t) u - u_n adj_u_t

with g = g_a - g_b + h_a x a_a - h_b x a_b, where (g_a, h_a) and (g_b, h_b) are the adjoints of force and torque on a
and b. The arms get adj_a_a = f x h_a + adj_u x w_a, and a_b the opposite.

At the kinks p = 0 and 1 = c u_n, beyond which a contact would pull, there is no contact and the derivative is 0.
Source: Hunt and Crossley 1975, Coefficient of Restitution Interpreted as Damping in Vibroimpact, Journal of Applied
Mechanics 42, with exponent 1.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.rotation import adj_cross, cross, moment
from simphys.substep import collect, per_element

from ..rows import angular, join, linear, thirds


@ti.func
def decompose(p, n, u, c, v_s):
    """1 - c u_n, or 0 without a repulsive force; y; and the denominator of y."""
    u_n = n.dot(u)
    slip = u - u_n * n
    root = ti.sqrt(slip.dot(slip) + v_s * v_s)
    return ti.select(p > 0, ti.max(1 - c * u_n, 0.0), 0.0), slip / root, root


@ti.func
def force(p, n, u, mu, k, c, v_s):
    s, y, _ = decompose(p, n, u, c, v_s)
    return (k * p * s) * (n - mu * y)


@ti.func
def adj_force(p, n, u, mu, k, c, v_s, g):
    """Return the adjoints of p, n, u, mu, k and c."""
    s, y, root = decompose(p, n, u, c, v_s)
    repels, u_n, f_n, adj_fn = ti.select(s > 0, 1.0, 0.0), n.dot(u), k * p * s, g.dot(n - mu * y)
    adj_slip = (-mu * f_n / root) * (g - y.dot(g) * y)
    adj_un = -repels * k * p * c * adj_fn - n.dot(adj_slip)
    adj_n, adj_u = f_n * g + adj_un * u - u_n * adj_slip, adj_slip + adj_un * n
    return k * s * adj_fn, adj_n, adj_u, -f_n * g.dot(y), p * s * adj_fn, -repels * k * p * u_n * adj_fn


@ti.func
def arms(gap, frame):
    """Return n, a_a and a_b."""
    n, r_a, r_b = thirds(frame)
    return n, r_a - gap / 2 * n, r_b + gap / 2 * n


@element
def compliant_contact(v_s, gap, frame, v_a, v_b, w_a, w_b, k, c, mu_a, mu_b, share):
    n, a_a, a_b = arms(gap, frame)
    u = v_a + cross(w_a, a_a) - v_b - cross(w_b, a_b)
    F = force(-gap, n, u, share * (mu_a + mu_b), k, c, v_s)
    return join(F, moment(a_a, F)), join(-F, -moment(a_b, F))


@compliant_contact.adjoint
def adj_compliant_contact(v_s, gap, frame, v_a, v_b, w_a, w_b, k, c, mu_a, mu_b, share, adj_wrench_a, adj_wrench_b):
    n, a_a, a_b = arms(gap, frame)
    u, mu = v_a + cross(w_a, a_a) - v_b - cross(w_b, a_b), share * (mu_a + mu_b)
    F = force(-gap, n, u, mu, k, c, v_s)
    h_a, h_b = angular(adj_wrench_a), angular(adj_wrench_b)
    g = linear(adj_wrench_a) - linear(adj_wrench_b) + cross(h_a, a_a) - cross(h_b, a_b)
    g_p, g_n, g_u, g_mu, g_k, g_c = adj_force(-gap, n, u, mu, k, c, v_s, g)
    g_a, g_b = adj_cross(h_a, F) + adj_cross(w_a, g_u), -adj_cross(h_b, F) - adj_cross(w_b, g_u)
    half, g_share = (g_b - g_a) / 2, share * g_mu
    adj_gap, adj_frame = n.dot(half) - g_p, join(g_n + gap * half, join(g_a, g_b))
    return adj_gap, adj_frame, g_u, -g_u, moment(a_a, g_u), -moment(a_b, g_u), g_k, g_c, g_share, g_share


CompliantContact = per_element(
    compliant_contact,
    over="candidates",
    constant={"v_s": "slip_speed"},
    own={"gap": "gap", "frame": "frame"},
    gathered={
        **{"v_a": ("velocity", "candidates.body_a"), "v_b": ("velocity", "candidates.body_b")},
        **{"w_a": ("angular_velocity", "candidates.body_a"), "w_b": ("angular_velocity", "candidates.body_b")},
        **{"mu_a": ("friction", "candidates.body_a"), "mu_b": ("friction", "candidates.body_b")},
    },
    shared={"k": "contact_stiffness", "c": "contact_damping"},
    of_model={"share": "candidates.share"},
    results={"contact_wrench_a": "model.freedoms", "contact_wrench_b": "model.freedoms"},
)
"""Wrenches [M, D] of all contacts on their bodies a and b: force [N] and torque [N m] about the centre."""

ContactWrench = collect(
    "contact_wrench",
    parts={"contact_wrench_a": "candidates.body_a", "contact_wrench_b": "candidates.body_b"},
    over="candidates",
    onto="bodies",
)
"""Sum [n, D] of these wrenches on each body."""
