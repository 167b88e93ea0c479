"""Averages over time of temperature, pressure, energy and radial distribution function, and displacement, since t = 0.

    temperature = sum_i m v^2 / (dim n)    pressure = sum_i (m v^2 + W_i) / (dim V)    energy = sum_i U_i / n
    A' = A + w (a - A),   w = h / (max(t, 0) + h),   t' = t + h

U_i and W_i are an atom's halves of the energy and the virial of its pairs, V the volume, a the present value. Before
t = 0, A follows a; then it is the mean over all steps. Adjoint, for z of the three numbers, with g = z_0 T_0 + z_1 P_0,
T_0 = 1/(dim n) and P_0 = 1/(dim V):

    adj_v = 2 g m v    adj_m = g v^2    adj_W = z_1 P_0    adj_U = z_2 / n
    adj_A = (1 - w) adj_A'    adj_a = w adj_A'    adj_w = adj_A'.(a - A)    adj_t = adj_t' - h adj_w / (t + h)^2, t > 0

The displacement u is 0 before t = 0, and then u' = u + (x' - x), across the sides of the box. Its mean square is
sum_i u_i^2 / n: that of a liquid grows by 2 dim D t, with D the constant of diffusion.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.element import element
from simphys.substep import per_element, total


@element
def measure(v, m, s, n, area):
    square = m * v.dot(v)
    return ti.Vector([square / (v.n * n), (square + s[1]) * area / v.n, s[0] / n])


@measure.adjoint
def adj_measure(v, m, s, n, area, adj_y):
    g = adj_y[0] / (v.n * n) + adj_y[1] * area / v.n
    return (2 * g * m) * v, g * v.dot(v), ti.Vector([adj_y[2] / n, adj_y[1] * area / v.n])


@element
def tick(t, h):
    return h / (ti.max(t, 0.0) + h), t + h


@tick.adjoint
def adj_tick(t, h, adj_w, adj_t):
    w = h / (ti.max(t, 0.0) + h)
    return adj_t - ti.select(t > 0, w * w / h, 0.0) * adj_w


@element
def follow(A, a, w):
    return A + w * (a - A)


@follow.adjoint
def adj_follow(A, a, w, adj_A):
    return (1 - w) * adj_A, w * adj_A, (a - A).dot(adj_A)


@element
def travel(u, y, x, t, h):
    return ti.select(t > -0.5 * h, 1.0, 0.0) * (u + y - x)


@travel.adjoint
def adj_travel(u, y, x, t, h, adj_u):
    z = ti.select(t > -0.5 * h, 1.0, 0.0) * adj_u
    return z, z, -z, 0.0


@element
def spread(u, n):
    return ti.Vector([u.dot(u) / n])


@spread.adjoint
def adj_spread(u, n, adj_y):
    return (2 * adj_y[0] / n) * u


Measure = total(
    measure,
    over="atoms",
    own={"v": "velocity", "m": "mass", "s": "pair_sums"},
    constant={"n": "number of atoms", "area": "inverse volume"},
    results={"measured": (3,)},
)
"""Temperature, pressure and potential energy of an atom, [3]."""

Tick = per_element(tick, own={"t": "elapsed"}, constant={"h": "time step"}, results={"weight": "t", "elapsed": "t"})
"""Weight of the present step in the averages, and the time after it."""

Follow = per_element(follow, own={"A": "average", "a": "now", "w": "weight"}, results={"average": "A"})
"""Average of some numbers."""

Travel = per_element(
    travel,
    over="atoms",
    own={"u": "displacement", "y": "moved", "x": "position"},
    shared={"t": "elapsed"},
    constant={"h": "time step"},
    results={"displacement": "u"},
)
"""Displacement [n, dim] after a step."""

Spread = total(
    spread, over="atoms", own={"u": "displacement"}, constant={"n": "number of atoms"}, results={"msd": (1,)}
)
"""Mean square displacement, [1]."""
