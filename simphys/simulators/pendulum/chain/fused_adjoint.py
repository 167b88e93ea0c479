"""The adjoint of the fused rollout: steps in reverse, each recomputed from the state before it.

Runge-Kutta: with k_s = (v, a) the slope at stage s, Y_s the state there, nodes c_s and weights b_s,

    adj_k_s = b_s h adj_new + c_{s+1} h adj_Y_{s+1},   adj_Y_s = (dk_s/dY_s)^T adj_k_s
    adj_old = adj_new + sum_s adj_Y_s

Variational: the lines of step.py in reverse.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import acceleration, fused, linear, loads, midpoint, momentum


# fmt: off
@functools.cache
@no_type_check
def functions(real: Any) -> SimpleNamespace:
    """The adjoint of a step of either integrator for member b.

    ax, av [B, n] hold the adjoint of the new state on entry, that of the old state on return. The old state begins at
    index `at` of a segment.
    """
    f, s = fused.functions(real), linear.functions(real)
    accelerate, move, solve_rate, adj_sum_masses = (
        acceleration.functions(real), momentum.functions(real), midpoint.functions(real),
        loads.functions(real).adj_sum_masses,
    )
    add = s.add

    @ti.func
    def adj_runge_kutta(
        L: ti.template(), mu: ti.template(), c: ti.template(), g: ti.template(), e: ti.template(), b, n, h,
        sx: ti.template(), sv: ti.template(), sa: ti.template(), M: ti.template(),
        ax: ti.template(), av: ti.template(), gx: ti.template(), gv: ti.template(), y: ti.template(),
        kx: ti.template(), kv: ti.template(), adj_u: ti.template(), at_u, adj_L: ti.template(),
        adj_mu: ti.template(), adj_m: ti.template(), adj_c: ti.template(), adj_g: ti.template(), adj_e: ti.template(),
    ):
        """Reverse a Runge-Kutta step.

        Workspace [B, n]: gx, gv, y for the adjoints of a stage's state and slope; kx, kv for those of the new state.
        """
        par = b * n
        for i in range(n):
            kx[par + i] = ax[par + i]
            kv[par + i] = av[par + i]
            gx[par + i] = 0.0
            gv[par + i] = 0.0
        for back in range(4):
            stage = 3 - back
            next_node = real(0.0)  # c_{s+1}
            if stage < 3:
                next_node = f.stage_node(stage + 1)
            for i in range(n):
                adj_slope = h * (f.stage_weight(stage) * kx[par + i] + next_node * gx[par + i])
                y[par + i] = h * (f.stage_weight(stage) * kv[par + i] + next_node * gv[par + i])
                gx[par + i] = 0.0
                gv[par + i] = adj_slope
            here = (b * 4 + stage) * n
            accelerate.adj(
                sx, sv, sa, here, L, mu, c, g, e, par, b, n, M, here * n, y,
                gx, gv, adj_u, at_u, adj_L, adj_mu, adj_m, adj_c, adj_g, adj_e,
            )
            for i in range(n):
                add(ax, par + i, gx[par + i])
                add(av, par + i, gv[par + i])

    @ti.func
    def adj_variational(
        x: ti.template(), v: ti.template(), at, L: ti.template(), mu: ti.template(), c: ti.template(),
        g: ti.template(), e: ti.template(), b, n, h,
        w: ti.template(), y: ti.template(), M: ti.template(),
        ax: ti.template(), av: ti.template(), gy: ti.template(), gw: ti.template(), gp: ti.template(),
        unused: ti.template(), adj_u: ti.template(), at_u, adj_L: ti.template(), adj_mu: ti.template(),
        adj_m: ti.template(), adj_c: ti.template(), adj_g: ti.template(), adj_e: ti.template(),
    ):
        """Reverse a variational step.

        Workspace [B, n]: gy, gw, gp for the adjoints of the midpoint, its rate, and of momenta. M: factor at the new
        state.
        """
        par = b * n
        for i in range(n):
            adj_mu[par + i] = 0.0
            gy[par + i] = 0.0
            gw[par + i] = 0.0
            gp[par + i] = av[par + i]
        s.solve(M, par * n, gp, par, n)  # adjoint of the momentum after the step
        move.adj(-1.0, x, v, at + n, L, mu, par, n, gp, ax, unused, adj_L, adj_mu)
        move.adj(2.0, y, w, par, L, mu, par, n, gp, gy, gw, adj_L, adj_mu)
        for i in range(n):
            add(gw, par + i, h * ax[par + i] + h / 2 * gy[par + i])
            add(ax, par + i, gy[par + i])
        solve_rate.adj(
            y, w, L, mu, c, g, e, par, b, n, h / 2, M, par * n, gw,
            ax, unused, adj_u, at_u, adj_L, adj_mu, adj_c, adj_g, adj_e,
        )
        for i in range(n):
            gp[par + i] = gw[par + i] - gp[par + i]  # adjoint of the momentum before the step
            av[par + i] = 0.0
        move.adj(1.0, x, v, at, L, mu, par, n, gp, ax, av, adj_L, adj_mu)
        adj_sum_masses(adj_mu, par, n, adj_m)

    return SimpleNamespace(adj_runge_kutta=adj_runge_kutta, adj_variational=adj_variational)


@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Kernels for the steps of a segment in reverse. adj_x, adj_v [B, 1, n] or, dense, [B, rows, n]: see `Engine.pull`.

    adj_u .. adj_e accumulate. Workspace: that of the forward kernels, and g1 .. g5 [B, n].
    """
    f, own = fused.functions(real), functions(real)
    sum_masses, factor = loads.functions(real).sum_masses, momentum.functions(real).factor
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @ti.func
    def adj_last(adj_x: ti.template(), adj_v: ti.template(), b, n, adj_rows, ax: ti.template(), av: ti.template()):
        for i in range(n):
            ax[b * n + i] = adj_x[(b * adj_rows + adj_rows - 1) * n + i]
            av[b * n + i] = adj_v[(b * adj_rows + adj_rows - 1) * n + i]

    @ti.func
    def adj_state(
        adj_x: ti.template(), adj_v: ti.template(), b, n, adj_rows, row, ax: ti.template(), av: ti.template(),
    ):
        """Add the derivative of the loss with respect to the state at `row`, and store the sum."""
        for i in range(n):
            at = (b * adj_rows + row) * n + i
            if adj_rows > 1:
                ax[b * n + i] = ax[b * n + i] + adj_x[at]
                av[b * n + i] = av[b * n + i] + adj_v[at]
                adj_x[at] = ax[b * n + i]
                adj_v[at] = av[b * n + i]
            elif row == 0:
                adj_x[at] = ax[b * n + i]
                adj_v[at] = av[b * n + i]

    @kernel
    def adj_rk4(
        x: reals, v: reals, u: reals, L: reals, m: reals, c: reals, g: reals, e: reals, n: ti.i32, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        mu: reals, sx: reals, sv: reals, sa: reals, M: reals,
        adj_x: reals, adj_v: reals, adj_rows: ti.i32, adj_u: reals, adj_L: reals, adj_m: reals, adj_c: reals,
        adj_g: reals, adj_e: reals, ax: reals, av: reals, adj_mu: reals,
        g1: reals, g2: reals, g3: reals, g4: reals, g5: reals, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                sum_masses(m, b * n, n, mu)
                adj_last(adj_x, adj_v, b, n, adj_rows, ax, av)
                for back in range(steps):
                    row = steps - 1 - back
                    at_u = driven * (b * T + first + row) * n
                    f.stages(x, v, (b * rows + row) * n, u, at_u, L, mu, c, g, e, b, n, h, sx, sv, sa, M)
                    own.adj_runge_kutta(
                        L, mu, c, g, e, b, n, h, sx, sv, sa, M, ax, av, g1, g2, g3, g4, g5,
                        adj_u, at_u, adj_L, adj_mu, adj_m, adj_c, adj_g, adj_e,
                    )
                    adj_state(adj_x, adj_v, b, n, adj_rows, row, ax, av)

    @kernel
    def adj_variational(
        x: reals, v: reals, u: reals, L: reals, m: reals, c: reals, g: reals, e: reals, n: ti.i32, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        nan: real, mu: reals, p: reals, w: reals, y: reals, R: reals, M: reals,
        adj_x: reals, adj_v: reals, adj_rows: ti.i32, adj_u: reals, adj_L: reals, adj_m: reals, adj_c: reals,
        adj_g: reals, adj_e: reals, ax: reals, av: reals, adj_mu: reals,
        g1: reals, g2: reals, g3: reals, g4: reals, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                sum_masses(m, b * n, n, mu)
                adj_last(adj_x, adj_v, b, n, adj_rows, ax, av)
                for back in range(steps):
                    row = steps - 1 - back
                    at, at_u = (b * rows + row) * n, driven * (b * T + first + row) * n
                    f.solve_midpoint(x, v, at, u, at_u, L, mu, c, g, e, b, n, h, nan, p, w, y, R, M)
                    factor(x, at + n, L, mu, b * n, n, M, b * n * n)
                    own.adj_variational(
                        x, v, at, L, mu, c, g, e, b, n, h, w, y, M, ax, av, g1, g2, g3, g4,
                        adj_u, at_u, adj_L, adj_mu, adj_m, adj_c, adj_g, adj_e,
                    )
                    adj_state(adj_x, adj_v, b, n, adj_rows, row, ax, av)

    return SimpleNamespace(rk4=adj_rk4, variational=adj_variational)
