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

import functools
from types import SimpleNamespace
from typing import Any, NamedTuple, no_type_check

import numpy as np

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.simulator import Array

from . import arrays, flight
from .model import Billiards

CLOSE = 64
"""Tolerance of all comparisons, in units of rounding."""
LIMIT = 4096
"""Maximum number of steps to a root: more than any search needs."""


def rounding() -> float:
    """Return the relative tolerance of comparisons in the precision of this process."""
    return CLOSE * float(np.finfo(runtime.real_dtype()).eps)


@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """Return the search for one pair of partners, and for the first impact of all."""
    vec = ti.types.vector(2, real)
    f = flight.functions(real)
    tiny = rounding()

    @ti.func
    def first_root(c0, c1, c2, c3, c4, end, near, slow, min_step):
        """First root in [0, end], or -1 without one; and its uncertainty due to rounding."""
        low = ti.min(c2, c2 + (3 * c3 + 6 * c4 * end) * end)  # half the minimum of the second derivative
        if c4 > 0:
            turn = -c3 / (4 * c4)
            if turn > 0 and turn < end:
                low = c2 + (3 * c3 + 6 * c4 * turn) * turn
        k = ti.max(-2 * low, 0.0)
        t, found, uncertainty = real(0.0), real(-1.0), real(0.0)
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
    def component(w: vec, axis) -> real:
        return ti.select(axis == 0, w[0], w[1])

    @ti.func
    def time_of_impact(balls: ti.template(), table: ti.template(), n, a, i, j, end, min_step):
        """Time of impact of ball i and partner j, NEVER if later than `end`; and its uncertainty due to rounding."""
        o = i
        if j < n:
            o = j
        v_i, v_j = balls.v[i], balls.v[o]
        d = balls.x[i] - balls.x[o]
        reach, speed = table.r[i], v_i.norm()
        place = ti.abs(balls.x[i]).max()
        side = ti.max(j - n, 0)
        axis, sign = side // 2, 1 - 2 * (side % 2)
        gap = real(0.0)
        if j < n:
            reach += table.r[j]
            speed += v_j.norm()
            place += ti.abs(balls.x[o]).max()
            gap = d.norm() - reach
        else:
            gap = sign * (component(balls.x[i], axis) - table.walls[side]) - reach
        near, slow = tiny * (place + reach), tiny * speed
        time, uncertainty = real(flight.NEVER), real(0.0)
        if speed > 0 and gap <= (speed + ti.max(-a, 0.0) * end) * end + near:
            rest_i, rest_j = f.rest_time(v_i, a), f.rest_time(v_j, a)
            begin = real(0.0)
            for part in range(2):  # first both move, then one
                until = ti.min(rest_i, rest_j)
                if part == 1:
                    until = ti.max(rest_i, rest_j)
                until = ti.min(until, end)
                if time == flight.NEVER and until > begin:
                    y_i, u_i = f.flight(balls.x[i], v_i, a, begin)
                    y_j, u_j = f.flight(balls.x[o], v_j, a, begin)
                    b_i, b_j = vec(0.0), vec(0.0)
                    if begin < rest_i and v_i.norm() > 0:
                        b_i = (-a / v_i.norm()) * v_i
                    if begin < rest_j and v_j.norm() > 0:
                        b_j = (-a / v_j.norm()) * v_j
                    y, w, b = y_i - y_j, u_i - u_j, b_i - b_j
                    c0, c1, c2, c3, c4 = y.dot(y) - reach * reach, 2 * y.dot(w), w.dot(w) + y.dot(b), w.dot(b), b.dot(b)
                    scale = 2 * reach
                    if j >= n:
                        c0 = sign * (component(y_i, axis) - table.walls[side]) - reach
                        c1, c2 = sign * component(u_i, axis), 0.5 * sign * component(b_i, axis)
                        c3, c4, scale = real(0.0), real(0.0), real(1.0)
                    root, slack = first_root(
                        c0, c1, c2, c3, 0.25 * c4, until - begin, scale * near, scale * slow, min_step
                    )
                    if root >= 0:
                        time, uncertainty = begin + root, slack
                begin = ti.max(begin, until)
        return time, uncertainty

    @ti.func
    def first_impact(balls: ti.template(), table: ti.template(), n, partners, a, end, min_step):
        """Time of the first impact, NEVER if later than `end`; and the numbers of its ball and its partner."""
        first, slack, ball, partner = real(flight.NEVER), real(0.0), -1, -1
        for i in range(n):
            for j in range(i + 1, partners):
                time, uncertainty = time_of_impact(balls, table, n, a, i, j, end, min_step)
                if time + uncertainty + slack < first:
                    first, slack, ball, partner = time, uncertainty, i, j
        return first, ball, partner

    return SimpleNamespace(time_of_impact=time_of_impact, first_impact=first_impact)


@functools.cache
@no_type_check
def kernels(real: Any) -> SimpleNamespace:
    """Return kernels that run the search for the host."""
    f, types = functions(real), arrays.types(real)
    balls_type, rims_type = types.balls, types.rims
    reals, whole = types.reals, ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def first(
        balls: balls_type, table: rims_type, n: ti.i32, partners: ti.i32, a: real, end: real, min_step: real,
        time: reals, pair: whole,
    ):  # fmt: skip
        t, i, j = f.first_impact(balls, table, n, partners, a, end, min_step)
        time[0] = t
        pair[0] = i
        pair[1] = j

    @kernel
    def one(
        balls: balls_type, table: rims_type, n: ti.i32, i: ti.i32, j: ti.i32, a: real, end: real, min_step: real,
        time: reals,
    ):  # fmt: skip
        t, _ = f.time_of_impact(balls, table, n, a, i, j, end, min_step)
        time[0] = t

    return SimpleNamespace(first=first, one=one)


class NextImpact(NamedTuple):
    """The next impact: its time and its partners."""

    time: float
    """Time from now [s]."""
    ball: int
    partner: int
    """Number of the other ball, which is higher; or the number of balls plus the number of a cushion."""


def first_impact(
    model: Billiards, position: Array, velocity: Array, radius: Array, walls: Array, deceleration: float, end: float
) -> NextImpact | None:
    """Find the first impact until `end` [s]; position and velocity are [n, 2], `walls` [4] is made by `stack_walls`."""
    time, pair = np.empty(1, position.dtype), np.empty(2, np.int32)
    kernels(runtime.real()).first(
        arrays.Balls(position, velocity),
        arrays.Table(r=radius, walls=walls),
        model.balls,
        model.partners,
        deceleration,
        end,
        min_step(model),
        time,
        pair,
    )
    return NextImpact(float(time[0]), int(pair[0]), int(pair[1])) if time[0] < flight.NEVER else None


def min_step(model: Billiards) -> float:
    """Return the interval [s] at which balls that are pushed together collide again."""
    return model.dt / 1024


def stack_walls(lower: Array, upper: Array) -> Array:
    """Return coordinates of the four cushions [..., 4] for corners `lower` and `upper` [..., 2]; 0 without cushions."""
    if lower.shape[-1] == 0:
        return np.zeros((*lower.shape[:-1], 4), lower.dtype)
    return np.stack([lower[..., 0], upper[..., 0], lower[..., 1], upper[..., 1]], axis=-1)
