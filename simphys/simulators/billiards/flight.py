"""Flight of a ball between impacts: it rolls straight, slowed by the cloth, until it rests.

With u = |v|, e = v / u and q = min(a t / u, 1), the fraction of its speed lost to the cloth, after a time t

    x' = x + v s (1 - q / 2),   v' = v (1 - q),   s = min(t, u / a)         [m], [m/s]

a deceleration [m/s^2], t [s]: a parabola along the velocity, exact for any t. Adjoint, for g = adj_x', h = adj_v',
of a ball still in motion, q < 1, with p = h + t g / 2 and its component across the velocity, p_ = p - e (e.p):

    adj_x = g     adj_v = t g + h - (a t / u) p_     adj_a = -t e.p     adj_t = v'.g - a e.h

and of a ball at rest, x' = x + v u / (2 a), v' = 0:

    adj_x = g     adj_v = (u g + v (e.g)) / (2 a)    adj_a = -u (v.g) / (2 a^2)    adj_t = 0

Both forms give the same x' at q = 1. There v' has a kink and the ball counts as resting: the derivative is the
one-sided one towards less speed. A ball at rest stays; its derivatives of x' by v are the limits for small speed: 0, or
t without a deceleration. A flight of no time, between impacts at once, keeps v as it is, that of a ball at rest, too.
For a < 0 the first form continues, so that derivatives by a are two-sided at a = 0.
Source: Coulomb friction, a deceleration independent of speed, integrated in time.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.numerics.forward_mode import tangent_of
from simphys.substep import per_element

NEVER = 1e30
"""Rest time of a ball without deceleration [s]: later than any time that occurs."""


@ti.func
def rest_time(v, a):
    """Compute the time at which a ball comes to rest."""
    time = NEVER + 0.0 * a
    if a > 0:
        time = v.norm() / a
    return time


@element
def flight(x, v, a, t):
    u, s, q = v.norm(), t, 0.0 * t
    if a > 0 and t > 0 and a * t >= u:
        s, q = u / a, q + 1
    elif u > 0:
        q = a * t / u
    return x + (s * (1 - 0.5 * q)) * v, (1 - q) * v


@ti.func
def direction(v):
    """Compute the unit vector along v, 0 for 0."""
    e = v
    if v.norm() > 0:
        e = v / v.norm()
    return e


@ti.func
def adj_place(v, a, t, g):
    """Compute the adjoints of v and a for that of x', g, alone."""
    u, e = v.norm(), direction(v)
    along = e.dot(g)
    gv, ga = t * g, -0.5 * t * t * along
    if a > 0 and t > 0 and a * t >= u:
        gv = (u * g + along * v) / (2 * a)
        ga = -u * u * along / (2 * a * a)
    elif u > 0:
        gv -= (0.5 * a * t * t / u) * (g - along * e)
    return gv, ga


@flight.adjoint
def adj_flight(x, v, a, t, adj_x, adj_v):
    u, e = v.norm(), direction(v)
    gv, ga = adj_place(v, a, t, adj_x)
    along, gt = e.dot(adj_v), v.dot(adj_x)
    if a > 0 and t > 0 and a * t >= u:
        gt = 0.0
    else:
        gv += adj_v
        ga -= t * along
        gt -= a * (t * e.dot(adj_x) + along)
        if u > 0:
            gv -= (a * t / u) * (adj_v - along * e)
    return adj_x, gv, ga, gt


jvp_flight = tangent_of(flight, "x", "v", "a", "t")


Flight = per_element(
    flight,
    over="balls",
    own={"x": "position", "v": "velocity"},
    shared={"a": "deceleration", "t": "time"},
    results={"position": "x", "velocity": "v"},
)
"""Positions and velocities, both [n, 2], after a flight of `time` [] at `deceleration` []."""
