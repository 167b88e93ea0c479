"""Motion: kick by forces, drift, and friction and noise of a heat bath (Langevin).

    kick         v' = v + (h/m) f
    heat bath    v' = c v + b xi,      c = exp(-gamma h),  b = sqrt((1 - c^2) T / m)

h duration [s], m mass [kg], gamma friction [1/s], T temperature as an energy [J]. xi are normal random numbers, given
by a hash of seed, step, atom and axis: each pass over a step meets the same ones. Adjoint of the heat bath, for
z = adj_v':

    adj_v = c z    adj_m = -b xi.z / (2 m)   adj_T = b xi.z / (2 T)   adj_gamma = h (c^2 T xi.z / (m b) - c v.z)

Source: Leimkuhler and Matthews 2013 (BAOAB); the hash pcg of Jarzynski and Olano 2020.
"""

from simphys.autograd.kernels.runtime import ti
from simphys.numerics.drift import drift
from simphys.numerics.element import element
from simphys.numerics.kick import kick
from simphys.substep import per_element


@ti.func
def mix(number):
    """Hash a number of 32 bits."""
    state = number * ti.u32(747796405) + ti.u32(2891336453)
    word = ((state >> ((state >> ti.u32(28)) + ti.u32(4))) ^ state) * ti.u32(277803737)
    return (word >> ti.u32(22)) ^ word


@ti.func
def draw(number):
    """Return a normal random number, by Box and Muller's method."""
    first = mix(number)
    second = mix(first + ti.u32(1))
    radius = ti.sqrt(-2 * ti.log((float(first) + 0.5) / 4294967296.0))
    return radius * ti.cos(float(second) * (6.283185307179586 / 4294967296.0))


@ti.func
def noise(v, atom, t, h, seed):
    """Return normal random numbers in the shape of v."""
    of_step = mix(ti.cast(ti.cast(ti.round(t / h), ti.i32), ti.u32) + mix(ti.cast(seed, ti.u32)))
    of_atom = mix(of_step + ti.cast(atom, ti.u32))
    return ti.Vector([draw(of_atom + ti.u32(3 * axis)) for axis in ti.static(range(v.n))])


@element
def warm(v, m, gamma, T, t, atom, h, seed):
    c = ti.exp(-gamma * h)
    return c * v + ti.sqrt((1 - c * c) * T / m) * noise(v, atom, t, h, seed)


@warm.adjoint
def adj_warm(v, m, gamma, T, t, atom, h, seed, adj_v):
    c = ti.exp(-gamma * h)
    b = ti.sqrt((1 - c * c) * T / m)
    e = noise(v, atom, t, h, seed).dot(adj_v)
    adj_gamma = h * (c * c * T / (m * b) * e - c * v.dot(adj_v))
    return c * adj_v, -0.5 * b / m * e, adj_gamma, 0.5 * b / T * e, 0.0


@warm.tangent
def jvp_warm(v, m, gamma, T, t, atom, h, seed, dv, dm, dgamma, dT, dt):
    c = ti.exp(-gamma * h)
    b = ti.sqrt((1 - c * c) * T / m)
    db = 0.5 * b * (dT / T - dm / m) + h * c * c * T / (m * b) * dgamma
    return c * dv - h * c * dgamma * v + db * noise(v, atom, t, h, seed)


Kick = per_element(
    kick,
    over="atoms",
    own={"v": "velocity", "f": "force", "m": "mass"},
    constant={"h": "kick"},
    results={"velocity": "v"},
)
"""Velocity [n, dim] after a kick."""

Drift = per_element(
    drift, over="atoms", own={"x": "position", "v": "velocity"}, constant={"e": "drift"}, results={"position": "x"}
)
"""Position [n, dim] after a drift."""

Warm = per_element(
    warm,
    over="atoms",
    own={"v": "velocity", "m": "mass"},
    shared={"gamma": "friction", "T": "temperature", "t": "elapsed"},
    constant={"atom": "atom_number", "h": "time step", "seed": "seed"},
    results={"velocity": "v"},
)
"""Velocity [n, dim] after a time in the heat bath."""
