"""Search for the next impact: the first time at which a gap closes while the partners approach.

While no ball comes to rest, the vector between two centres is d(t) = d + w t + b t^2 / 2. Here w and b are the
differences of their velocities and of their accelerations -a e. With the sum of radii R they touch at a root of the
quartic

    f(t) = |d(t)|^2 - R^2 = c0 + c1 t + c2 t^2 + c3 t^3 + c4 t^4            [m^2]
    c0 = |d|^2 - R^2   c1 = 2 d.w   c2 = |w|^2 + d.b   c3 = w.b   c4 = |b|^2 / 4

A ball and a cushion touch at a root of their gap [m], which has c0, c1, c2 only. With -k the minimum of the second
derivative, or 0 if that is positive, f(t + s) >= f + f' s - k s^2 / 2. Stepping to the root s of that parabola never
passes the first root of f. It converges like Newton's method, since the parabola is tangent to f. Where f is convex and
rises, there is no root.

Rounding sets the tolerances. Partners touch if their gap is within CLOSE roundings of their coordinates; they approach
if their rate exceeds CLOSE roundings of their speed. A graze counts as a miss if the straight path would penetrate the
partner by less than that. Impacts whose times agree to rounding take place one after the other, in the order of ball
numbers: those of ball 0 first, balls before cushions. Balls may touch and be pushed together without approaching, if
one behind slows less. They collide again every 1024th of the time step, until the step exceeds its limit of impacts.
Source: conservative advancement (Mirtich 1996, Impulse-based dynamic simulation, section 2.3), with a bound on the
second derivative instead of a bound on the speed.
"""

import numpy as np

from simphys.autograd import runtime
from simphys.autograd.kernels.runtime import ti

from .model import Billiards

CLOSE = 64
"""Tolerance of all comparisons, in units of rounding."""
LIMIT = 4096
"""Maximum number of steps to a root: more than any search needs."""


def rounding() -> float:
    """Return the relative tolerance of comparisons in the precision of this process."""
    return CLOSE * float(np.finfo(runtime.real_dtype()).eps)


def min_step(model: Billiards) -> float:
    """Return the interval [s] at which balls that are pushed together collide again."""
    return model.dt / 1024


@ti.func
def first_root(c0, c1, c2, c3, c4, end, near, slow, min_step):
    """Find the first root in [0, end], or -1 without one; and its uncertainty due to rounding."""
    low = ti.min(c2, c2 + (3 * c3 + 6 * c4 * end) * end)  # half the minimum of the second derivative
    if c4 > 0:
        turn = -c3 / (4 * c4)
        if turn > 0 and turn < end:
            low = c2 + (3 * c3 + 6 * c4 * turn) * turn
    k = ti.max(-2 * low, 0.0)
    t, found, uncertainty = 0.0 * end, 0.0 * end - 1, 0.0 * end
    going, count = True, 0
    while going:
        value = c0 + t * (c1 + t * (c2 + t * (c3 + t * c4)))
        slope = c1 + t * (2 * c2 + t * (3 * c3 + t * 4 * c4))
        bend = 2 * (c2 + t * (3 * c3 + t * 6 * c4))
        count += 1
        if value <= near and slope < -slow and slope * slope > 2 * near * bend:
            found = ti.min(ti.max(t - value / slope, 0.0), end)
            uncertainty = -near / slope
            going = False
        elif k == 0 and slope >= 0:
            going = False
        else:
            above = ti.max(value, 0.0)
            root = ti.sqrt(slope * slope + 2 * k * above)
            step = min_step
            if slope < 0:
                step = 2 * above / (root - slope)
            elif k > 0:
                step = (slope + root) / k
            if value <= near:
                step = ti.max(step, min_step)
            t += step
            going = t <= end and count < LIMIT
    return found, uncertainty


@ti.func
def acceleration(v, a, rolls):
    """Compute the acceleration of a ball with this velocity at the start, if it still rolls."""
    u, b = v.norm(), 0.0 * v
    if rolls and u > 0:
        b = (-a / u) * v
    return b
