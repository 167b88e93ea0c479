"""Density: continuity, diffusion (delta-SPH), and the pressure that follows from it.

With d = x_i - x_j, u = v_i - v_j, w = rho_i - rho_j, grad W = g(r) d and the volume V of a particle at rest,

    continuity     rate_i = rho0 V sum_j g u.d
    diffusion      rate_i = 2 delta h c V sum_j g (w - rho0 G.d / c^2)         between particles of fluid alone
    advance        rho' = rho + e rate                                         of fluid alone
    pressure       y = p / rho^2,   p = B ((rho/rho0)^n - 1) + p0,   B = rho0 c^2 / n

rho0 density at rest [kg/m^3], c sound speed [m/s], G gravity [m/s^2], delta [1], e duration [s], p0 background pressure
[Pa]. The term of G leaves a fluid at rest alone. One V for all pairs conserves the sum of the densities. With z the
adjoint of a pair's rate, g' = dg/dd / d and s = rho0 V z of the continuity, or 2 delta h V z c of the diffusion:

    continuity     adj_d = s (g u + g' (u.d) d)      adj_u = s g d      adj_rho0 = V g u.d z
    diffusion      m = w - rho0 G.d/c^2              adj_d = s (g' m d - g rho0 G/c^2)         adj_w = s g
                   adj_rho0 = -s g G.d/c^2           adj_G = -s g rho0 d/c^2     adj_c = s g (m + 2 rho0 G.d/c^2)/c
    pressure       adj_rho = (c^2 (rho/rho0)^(n-1) - 2 p/rho) z/rho^2         adj_rho0 = c^2 ((1 - n) a - 1)/n z/rho^2

with a = (rho/rho0)^n.

Source: Monaghan 1994 (equation of state); Antuono et al. 2010, Marrone et al. 2011 (diffusion); Fourtakas et al. 2019
(hydrostatic part of the diffusion).
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import neighbours, per_element

from .kernel import slope


@element
def continuity(d, u, rho0, V, k, h):
    g, _ = slope(d, k, h)
    return rho0 * V * g * u.dot(d)


@continuity.adjoint
def adj_continuity(d, u, rho0, V, k, h, adj_rate):
    g, g1 = slope(d, k, h)
    q, s = u.dot(d), rho0 * V * adj_rate
    return (s * g) * u + (s * g1 * q) * d, (s * g) * d, V * g * q * adj_rate


@element
def diffusion(d, w, rho0, c, G, i, j, D, k, h):
    g, _ = slope(d, k, h)
    return (1 - i) * (1 - j) * D * c * g * (w - rho0 * G.dot(d) / (c * c))


@diffusion.adjoint
def adj_diffusion(d, w, rho0, c, G, i, j, D, k, h, adj_rate):
    g, g1 = slope(d, k, h)
    q, R, s = G.dot(d) / (c * c), rho0 / (c * c), (1 - i) * (1 - j) * D * c * adj_rate
    m = w - rho0 * q
    return (s * g1 * m) * d - (s * g * R) * G, s * g, -s * g * q, s * g * (m + 2 * rho0 * q) / c, (-s * g * R) * d


@element
def advance(rho, r, fluid, e):
    return rho + e * fluid * r


@advance.adjoint
def adj_advance(rho, r, fluid, e, adj_rho):
    return 1.0 * adj_rho, e * fluid * adj_rho


@element
def pressure(rho, rho0, c, n, p0):
    a = ti.pow(rho / rho0, n)
    return (rho0 * c * c / n * (a - 1) + p0) / (rho * rho)


@pressure.adjoint
def adj_pressure(rho, rho0, c, n, p0, adj_y):
    a = ti.pow(rho / rho0, n)
    p, z = rho0 * c * c / n * (a - 1) + p0, adj_y / (rho * rho)
    return (c * c * rho0 * a / rho - 2 * p / rho) * z, c * c * ((1 - n) * a - 1) / n * z, 2 * rho0 * c / n * (a - 1) * z


Continuity = neighbours(
    continuity,
    over="particles",
    distance={"d": "position"},
    between={"u": "velocity"},
    shared={"rho0": "rest_density"},
    constant={"V": "volume", "k": "kernel", "h": "smoothing"},
    onto="compression",
    even=True,
    result=(),
)
"""Rate of the density [n] by the motion of the neighbours."""

Diffusion = neighbours(
    diffusion,
    over="particles",
    distance={"d": "position"},
    between={"w": "density"},
    shared={"rho0": "rest_density", "c": "sound_speed", "G": "gravity"},
    marks={("i", "j"): "walls"},
    constant={"D": "diffusion", "k": "kernel", "h": "smoothing"},
    onto="diffusion",
    result=(),
)
"""Rate of the density [n] by diffusion; D is 2 delta h V."""

Advance = per_element(
    advance,
    over="particles",
    own={"rho": "density", "r": "rate"},
    constant={"fluid": "fluid", "e": "time"},
    results={"density": "rho"},
)
"""Density [n] after a time; that of walls stays."""

Pressure = per_element(
    pressure,
    over="particles",
    own={"rho": "density"},
    shared={"rho0": "rest_density", "c": "sound_speed"},
    constant={"n": "exponent", "p0": "background"},
    results={"pressure": "rho"},
)
"""Pressure over the square of the density, [n]."""
