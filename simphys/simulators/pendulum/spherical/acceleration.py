"""Angular acceleration of the spherical pendulum:

    alpha = d x G / L + (t - (t.d) d - c w) / (m L^2)                       [rad/s^2]

d direction (unit), w angular velocity [rad/s], G gravity [m/s^2], L length [m], m mass [kg], c damping [N m s/rad], t
torque [N m]. alpha is perpendicular to d if w is. Adjoint, for y = adj_alpha, r = 1 / (m L^2), F = t - (t.d) d - c w:

    adj_d = G x y / L - r ((t.d) y + (d.y) t)    adj_w = -c r y    adj_t = r (y - (d.y) d)    adj_c = -r w.y
    adj_G = y x d / L    adj_m = -r F.y / m    adj_L = -((d x G).y / L + 2 r F.y) / L

Source: the rate of the angular momentum m L^2 w of a point mass is the torque about its support.
"""

from simphys.numerics.element import element
from simphys.substep import per_element


@element
def acceleration(d, w, t, L, m, c, G):
    return d.cross(G) / L + (t - t.dot(d) * d - c * w) / (m * L * L)


@acceleration.adjoint
def adj_acceleration(d, w, t, L, m, c, G, y):
    r = 1 / (m * L * L)
    pull = (t - t.dot(d) * d - c * w).dot(y)
    return (
        G.cross(y) / L - r * (t.dot(d) * y + d.dot(y) * t),
        -c * r * y,
        r * (y - d.dot(y) * d),
        -(d.cross(G).dot(y) / L + 2 * r * pull) / L,
        -r * pull / m,
        -r * w.dot(y),
        y.cross(d) / L,
    )


Acceleration = per_element(
    acceleration,
    own={
        "d": "direction",
        "w": "rate",
        "t": "torque",
        "L": "length",
        "m": "mass",
        "c": "damping",
        "G": "gravity",
    },
)
"""Angular acceleration [3] [rad/s^2] at direction and rate [3], under a torque [3]."""
