"""Acceleration of particles by pressure and viscosity, among each other and at walls, and the steps that follow.

With d = x_i - x_j, u = v_i - v_j, y = p/rho^2, grad W = g(r) d, and marks i and j that are 1 for particles of walls,

    f = g (-rho0 V P d + N u)        N = 2 (mu V / rho0) (1 + (i + j) (2 s / (b + s) - 1))
    P = y_i (1 - i)(1 + j) + y_j (1 - j)(1 + i) + (i - j) G.d / rho0
    kick   v' = v + e (f + G)                                                  of fluid alone

mu viscosity [Pa s], G gravity [m/s^2], b slip length [m], V volume of a particle at rest [m^dim]. Walls are layers of
particles at rest. A particle of fluid meets there its own pressure, continued hydrostatically. It also meets a velocity
continued through the wall: v (b - s)/(b + s) at its mean distance s, so that u is 2 s/(b + s) v. Forces among fluid are
opposite, so they conserve momentum. Adjoint of a pair, for z = adj_f, q = z.d and e = z.u:

    adj_d = g (-rho0 V P z - V q (i - j) G) + g' (-rho0 V P q + N e) d        adj_u = g N z
    adj_y_i = -g rho0 V q (1 - i)(1 + j)       adj_G = -g V q (i - j) d       adj_mu = g e N/mu     adj_b = g e dN/db
    adj_rho0 = g (-V q (P - (i - j) G.d/rho0) - e N/rho0)

Source: Morris et al. 1997 (viscosity); Adami et al. 2012 (walls, here pair by pair); Navier 1823 (slip).
"""

from simphys.numerics.drift import drift
from simphys.numerics.element import element
from simphys.substep import neighbours, per_element

from .kernel import slope


@element
def pair_acceleration(d, u, y_i, y_j, rho0, mu, b, G, i, j, V, s, k, h):
    g, _ = slope(d, k, h)
    P = y_i * (1 - i) * (1 + j) + y_j * (1 - j) * (1 + i) + (i - j) * G.dot(d) / rho0
    N = 2 * mu * V / rho0 * (1 + (i + j) * (2 * s / (b + s) - 1))
    return (-g * rho0 * V * P) * d + (g * N) * u


@pair_acceleration.adjoint
def adj_pair_acceleration(d, u, y_i, y_j, rho0, mu, b, G, i, j, V, s, k, h, adj_f):
    g, g1 = slope(d, k, h)
    head, friction = (i - j) * G.dot(d) / rho0, 2 * V / rho0 * (1 + (i + j) * (2 * s / (b + s) - 1))
    w_i, w_j = (1 - i) * (1 + j), (1 - j) * (1 + i)
    P, N = y_i * w_i + y_j * w_j + head, mu * friction
    q, e = adj_f.dot(d), adj_f.dot(u)
    z = -g * rho0 * V * q
    adj_d = (-g * rho0 * V * P) * adj_f - (g * V * q * (i - j)) * G + (g1 * (N * e - rho0 * V * P * q)) * d
    adj_rho0 = -g * (V * q * (P - head) + e * N / rho0)
    adj_b = -4 * g * e * mu * V / rho0 * (i + j) * s / ((b + s) * (b + s))
    return adj_d, (g * N) * adj_f, z * w_i, z * w_j, adj_rho0, g * e * friction, adj_b, (-g * V * q * (i - j)) * d


@element
def kick(v, f, G, fluid, e):
    return v + (e * fluid) * (f + G)


@kick.adjoint
def adj_kick(v, f, G, fluid, e, adj_v):
    return 1.0 * adj_v, (e * fluid) * adj_v, (e * fluid) * adj_v


PairAcceleration = neighbours(
    pair_acceleration,
    over="particles",
    distance={"d": "position"},
    between={"u": "velocity"},
    both={("y_i", "y_j"): "pressure"},
    shared={"rho0": "rest_density", "mu": "viscosity", "b": "slip_length", "G": "gravity"},
    marks={("i", "j"): "walls"},
    constant={"V": "volume", "s": "distance to walls", "k": "kernel", "h": "smoothing"},
    onto="acceleration",
)
"""Acceleration [n, dim] by pressure and viscosity."""

Kick = per_element(
    kick,
    over="particles",
    own={"v": "velocity", "f": "acceleration"},
    shared={"G": "gravity"},
    constant={"fluid": "fluid", "e": "time"},
    results={"velocity": "v"},
)
"""Velocity [n, dim] after a time; that of walls stays."""

Drift = per_element(
    drift, over="particles", own={"x": "position", "v": "velocity"}, constant={"e": "time"}, results={"position": "x"}
)
"""Position [n, dim] after a drift."""
