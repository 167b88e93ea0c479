"""The tangent of the fused rollout: tangents of all states of a segment, from that of its first one."""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import acceleration, fused, linear, loads, midpoint, momentum


# fmt: off
@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Kernels for the tangents dx, dv [B, rows, n], given their first row and du .. de of torques and parameters.

    Workspace: that of the forward kernels, and dmu .. zero [B, n]; for Runge-Kutta, dsx, dsv, dsa [B, 4, n].
    """
    f, sum_masses = fused.functions(real), loads.functions(real).sum_masses
    accelerate, solve_rate, move = acceleration.functions(real), midpoint.functions(real), momentum.functions(real)
    s = linear.functions(real)
    reals = ti.types.ndarray(dtype=real, ndim=1)

    @kernel
    def jvp_rk4(
        x: reals, v: reals, u: reals, L: reals, m: reals, c: reals, g: reals, e: reals, n: ti.i32, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        mu: reals, sx: reals, sv: reals, sa: reals, M: reals,
        dx: reals, dv: reals, du: reals, dL: reals, dm: reals, dc: reals, dg: reals, de: reals,
        dmu: reals, dsx: reals, dsv: reals, dsa: reals, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                sum_masses(m, b * n, n, mu)
                sum_masses(dm, b * n, n, dmu)
                for row in range(steps):
                    at, at_u = (b * rows + row) * n, driven * (b * T + first + row) * n
                    f.stages(x, v, at, u, at_u, L, mu, c, g, e, b, n, h, sx, sv, sa, M)
                    for stage in range(4):
                        here = (b * 4 + stage) * n
                        for i in range(n):
                            dv_i, da_i = real(0.0), real(0.0)
                            if stage > 0:
                                dv_i = dsv[here - n + i]
                                da_i = dsa[here - n + i]
                            dsx[here + i] = dx[at + i] + f.stage_node(stage) * h * dv_i
                            dsv[here + i] = dv[at + i] + f.stage_node(stage) * h * da_i
                        accelerate.jvp(
                            sx, sv, sa, here, L, mu, c, g, e, b * n, b, n, M, here * n,
                            dsx, dsv, here, du, at_u, dL, dmu, dc, dg, de, dsa,
                        )
                    f.runge_kutta(dx, dv, at, b, n, h, dsv, dsa)  # linear, so its own tangent

    @kernel
    def jvp_variational(
        x: reals, v: reals, u: reals, L: reals, m: reals, c: reals, g: reals, e: reals, n: ti.i32, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        nan: real, mu: reals, p: reals, w: reals, y: reals, R: reals, M: reals,
        dx: reals, dv: reals, du: reals, dL: reals, dm: reals, dc: reals, dg: reals, de: reals,
        dmu: reals, dp: reals, dw: reals, dy: reals, zero: reals, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                par = b * n
                sum_masses(m, par, n, mu)
                sum_masses(dm, par, n, dmu)
                for row in range(steps):
                    at, at_u = (b * rows + row) * n, driven * (b * T + first + row) * n
                    new = at + n
                    f.solve_midpoint(x, v, at, u, at_u, L, mu, c, g, e, b, n, h, nan, p, w, y, R, M)
                    for i in range(n):
                        dp[par + i] = 0.0
                    move.jvp(1.0, x, v, at, L, mu, par, n, dx, dv, at, dL, dmu, dp)
                    solve_rate.jvp(
                        y, w, L, mu, c, g, e, par, b, n, h / 2, M, par * n,
                        dx, at, zero, dp, du, at_u, dL, dmu, dc, dg, de, dy, dw,
                    )
                    for i in range(n):
                        dy[par + i] = dx[at + i] + h / 2 * dw[par + i]
                        dx[new + i] = dx[at + i] + h * dw[par + i]
                        dp[par + i] = -dp[par + i]
                        dv[new + i] = 0.0
                    move.jvp(2.0, y, w, par, L, mu, par, n, dy, dw, par, dL, dmu, dp)
                    move.jvp(-1.0, x, v, new, L, mu, par, n, dx, dv, new, dL, dmu, dp)  # with v held fixed
                    for i in range(n):
                        dv[new + i] = dp[par + i]
                    move.factor(x, new, L, mu, par, n, M, par * n)
                    s.solve(M, par * n, dv, new, n)

    return SimpleNamespace(rk4=jvp_rk4, variational=jvp_variational)
