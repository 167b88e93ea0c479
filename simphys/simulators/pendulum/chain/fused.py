"""Kernels of the fused rollout, forward: the functions of the nested sub-steps in loops over time and members.

A segment's x and v are [B, rows, n]. Torques u are [B, T, n]; without torques, `driven` is 0 and u holds n zeros.
The workspace holds the carried masses mu [B, n]. For the Runge-Kutta method it also holds the stages sx, sv, sa
[B, 4, n] and their factors M [B, 4, n, n]. For the variational method it holds the momentum p, the midpoint rate w and
the midpoint y [B, n], right-hand sides R [B, n] and a matrix M [B, n, n]. The adjoint is in fused_adjoint.py, the
tangent in fused_tangent.py.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from ..integrators import NODES, WEIGHTS
from . import acceleration, linear, loads, midpoint, momentum


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """A step of either integrator for member b; the old state begins at index `at`, the new one at `at` + n."""
    accelerate, solve_rate = acceleration.functions(real).accelerate, midpoint.functions(real).solve_rate
    move, solve = momentum.functions(real), linear.functions(real).solve

    @ti.func
    def stage_node(stage) -> real:
        return ti.Vector(NODES)[stage]

    @ti.func
    def stage_weight(stage) -> real:
        return ti.Vector(WEIGHTS)[stage]

    @ti.func
    def stages(
        x: ti.template(), v: ti.template(), at, u: ti.template(), at_u, L: ti.template(), mu: ti.template(),
        c: ti.template(), g: ti.template(), e: ti.template(), b, n, h,
        sx: ti.template(), sv: ti.template(), sa: ti.template(), M: ti.template(),
    ):
        """Compute the states of the four stages, and the accelerations there."""
        for stage in range(4):
            here = (b * 4 + stage) * n
            for i in range(n):
                v_i, a_i = real(0.0), real(0.0)  # slope of the stage before
                if stage > 0:
                    v_i = sv[here - n + i]
                    a_i = sa[here - n + i]
                sx[here + i] = x[at + i] + stage_node(stage) * h * v_i
                sv[here + i] = v[at + i] + stage_node(stage) * h * a_i
            accelerate(sx, sv, here, u, at_u, L, mu, c, g, e, b * n, b, n, M, here * n, sa)

    @ti.func
    def runge_kutta(x: ti.template(), v: ti.template(), at, b, n, h, sv: ti.template(), sa: ti.template()):
        for i in range(n):
            x_i, v_i = x[at + i], v[at + i]
            for stage in range(4):
                x_i += stage_weight(stage) * h * sv[(b * 4 + stage) * n + i]
                v_i += stage_weight(stage) * h * sa[(b * 4 + stage) * n + i]
            x[at + n + i] = x_i
            v[at + n + i] = v_i

    @ti.func
    def solve_midpoint(
        x: ti.template(), v: ti.template(), at, u: ti.template(), at_u, L: ti.template(), mu: ti.template(),
        c: ti.template(), g: ti.template(), e: ti.template(), b, n, h, nan,
        p: ti.template(), w: ti.template(), y: ti.template(), R: ti.template(), M: ti.template(),
    ):
        """Compute the momentum before the step, and the midpoint with its rate."""
        for i in range(n):
            p[b * n + i] = 0.0
            w[b * n + i] = v[at + i]
        move.momentum(1.0, x, v, at, L, mu, b * n, n, p)
        solve_rate(x, at, w, p, u, at_u, L, mu, c, g, e, b * n, b, n, h / 2, y, R, M, b * n * n, nan)

    @ti.func
    def variational(
        x: ti.template(), v: ti.template(), at, L: ti.template(), mu: ti.template(), b, n, h,
        p: ti.template(), w: ti.template(), y: ti.template(), M: ti.template(),
    ):
        """Compute the new state; p becomes the momentum after the step."""
        for i in range(n):
            x[at + n + i] = x[at + i] + h * w[b * n + i]
            p[b * n + i] = -p[b * n + i]
        move.momentum(2.0, y, w, b * n, L, mu, b * n, n, p)
        for i in range(n):
            v[at + n + i] = p[b * n + i]
        move.factor(x, at + n, L, mu, b * n, n, M, b * n * n)
        solve(M, b * n * n, v, at + n, n)

    return SimpleNamespace(
        stage_node=stage_node, stage_weight=stage_weight, stages=stages, runge_kutta=runge_kutta,
        solve_midpoint=solve_midpoint, variational=variational,
    )


@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Kernels that advance a segment, whose first row is step `first`, from row `start` on.

    A parallel loop has `spread` iterations per member, of which the first does the work.
    """
    f, sum_masses = functions(real), loads.functions(real).sum_masses
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def rk4(
        x: reals, v: reals, u: reals, L: reals, m: reals, c: reals, g: reals, e: reals, n: ti.i32, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        mu: reals, sx: reals, sv: reals, sa: reals, M: reals, start: ti.i32, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                sum_masses(m, b * n, n, mu)
                for row in range(start, start + steps):
                    at, at_u = (b * rows + row) * n, driven * (b * T + first + row) * n
                    f.stages(x, v, at, u, at_u, L, mu, c, g, e, b, n, h, sx, sv, sa, M)
                    f.runge_kutta(x, v, at, b, n, h, sv, sa)

    @kernel
    def variational(
        x: reals, v: reals, u: reals, L: reals, m: reals, c: reals, g: reals, e: reals, n: ti.i32, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        nan: real, mu: reals, p: reals, w: reals, y: reals, R: reals, M: reals, start: ti.i32, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                sum_masses(m, b * n, n, mu)
                for row in range(start, start + steps):
                    at, at_u = (b * rows + row) * n, driven * (b * T + first + row) * n
                    f.solve_midpoint(x, v, at, u, at_u, L, mu, c, g, e, b, n, h, nan, p, w, y, R, M)
                    f.variational(x, v, at, L, mu, b, n, h, p, w, y, M)

    return SimpleNamespace(rk4=rk4, variational=variational)
