"""The adjoint of the fused rollout: steps in reverse, each recomputed from the state before it.

Runge-Kutta: with k_s = (w x d, alpha) the slope at stage s, Y_s the state there, nodes c_s and weights b_s,

    adj_k_s = b_s h adj_new + c_{s+1} h adj_Y_{s+1},   adj_Y_s = (dk_s/dY_s)^T adj_k_s
    adj_old = adj_new + sum_s adj_Y_s

Variational: the lines of step.py in reverse.
"""

import functools
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import acceleration, damp, drift, fused, sphere


# fmt: off
@functools.cache
@no_type_check
def kernels(real: Any, parallel: bool) -> SimpleNamespace:
    """Kernels for the steps of a segment in reverse. adj_d, adj_w [B, 1] or, dense, [B, rows]: see `Engine.pull`.

    adj_t .. adj_G accumulate.
    """
    vec = ti.types.vector(3, real)
    vectors, reals = ti.types.ndarray(dtype=vec, ndim=1), ti.types.ndarray(dtype=real, ndim=1)
    f, project, a = fused.functions(real), sphere.functions(real), acceleration.functions(real)
    drift_, damp_ = drift.functions(real), damp.functions(real)

    @ti.func
    def adj_params(
        b, at_t, gt: vec, gL: real, gm: real, gc: real, gG: vec,
        adj_t: ti.template(), adj_L: ti.template(), adj_m: ti.template(), adj_c: ti.template(), adj_G: ti.template(),
    ):
        adj_t[at_t] = adj_t[at_t] + gt
        adj_L[b] = adj_L[b] + gL
        adj_m[b] = adj_m[b] + gm
        adj_c[b] = adj_c[b] + gc
        adj_G[b] = adj_G[b] + gG

    @ti.func
    def adj_state(adj_d: ti.template(), adj_w: ti.template(), b, adj_rows, row, ad: vec, aw: vec):
        """Add the derivative of the loss with respect to the state at `row`; store the sum if it is wanted."""
        at = b * adj_rows + row
        d_all, w_all = ad, aw
        if adj_rows > 1:
            d_all += adj_d[at]
            w_all += adj_w[at]
        if adj_rows > 1 or row == 0:
            adj_d[at] = d_all
            adj_w[at] = w_all
        return d_all, w_all

    @kernel
    def adj_rk4(
        d: vectors, w: vectors, t: vectors, L: reals, m: reals, c: reals, G: vectors, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        sd: vectors, sw: vectors, sa: vectors,
        adj_d: vectors, adj_w: vectors, adj_rows: ti.i32, adj_t: vectors, adj_L: reals, adj_m: reals, adj_c: reals,
        adj_G: vectors, steps: ti.i32,
    ):
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                ad, aw = adj_d[b * adj_rows + adj_rows - 1], adj_w[b * adj_rows + adj_rows - 1]
                for back in range(steps):
                    row = steps - 1 - back
                    at, at_t = b * rows + row, driven * (b * T + first + row)
                    f.stages(d[at], w[at], t[at_t], L[b], m[b], c[b], G[b], b, h, sd, sw, sa)
                    d_sum, w_sum = f.combine_stages(d[at], w[at], b, h, sd, sw, sa)
                    new_d, new_w = project.adj(d_sum, w_sum, ad, aw)
                    sum_d, sum_w = new_d, new_w
                    stage_d, stage_w = vec(0.0), vec(0.0)
                    for late in range(4):
                        s = 3 - late
                        here, next_node = b * 4 + s, real(0.0)  # c_{s+1}
                        if s < 3:
                            next_node = f.stage_node(s + 1)
                        turn = h * (f.stage_weight(s) * new_d + next_node * stage_d)
                        y = h * (f.stage_weight(s) * new_w + next_node * stage_w)
                        gd, gw, gt, gL, gm, gc, gG = a.adj(
                            sd[here], sw[here], t[at_t], L[b], m[b], c[b], G[b], y
                        )
                        stage_d = gd + turn.cross(sw[here])
                        stage_w = gw + sd[here].cross(turn)
                        sum_d += stage_d
                        sum_w += stage_w
                        adj_params(b, at_t, gt, gL, gm, gc, gG, adj_t, adj_L, adj_m, adj_c, adj_G)
                    ad, aw = adj_state(adj_d, adj_w, b, adj_rows, row, sum_d, sum_w)

    @kernel
    def adj_variational(
        d: vectors, w: vectors, t: vectors, L: reals, m: reals, c: reals, G: vectors, h: real,
        B: ti.i32, rows: ti.i32, T: ti.i32, driven: ti.i32, spread: ti.i32, first: ti.i32,
        adj_d: vectors, adj_w: vectors, adj_rows: ti.i32, adj_t: vectors, adj_L: reals, adj_m: reals, adj_c: reals,
        adj_G: vectors, steps: ti.i32,
    ):
        k = h / 2
        ti.loop_config(serialize=not parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                ad, aw = adj_d[b * adj_rows + adj_rows - 1], adj_w[b * adj_rows + adj_rows - 1]
                for back in range(steps):
                    row = steps - 1 - back
                    at, at_t = b * rows + row, driven * (b * T + first + row)
                    middle = w[at] + k * a.acceleration(d[at], w[at], t[at_t], L[b], m[b], c[b], G[b])
                    kicked = middle + k * a.acceleration(d[at + 1], vec(0.0), t[at_t], L[b], m[b], c[b], G[b])
                    g_middle, gL, gm, gc = damp_.adj(kicked, L[b], m[b], c[b], k, aw)
                    adj_params(b, at_t, vec(0.0), gL, gm, gc, vec(0.0), adj_t, adj_L, adj_m, adj_c, adj_G)
                    old_d, old_w = vec(0.0), vec(0.0)
                    for late in range(2):  # first the kick at the end, then that at the start
                        place, rate, y = d[at], w[at], k * g_middle
                        if late == 0:
                            place = d[at + 1]
                            rate = vec(0.0)
                        gd, gw, gt, gL_kick, gm_kick, gc_kick, gG = a.adj(
                            place, rate, t[at_t], L[b], m[b], c[b], G[b], y
                        )
                        adj_params(b, at_t, gt, gL_kick, gm_kick, gc_kick, gG, adj_t, adj_L, adj_m, adj_c, adj_G)
                        if late == 0:
                            gd_drift, gw_drift = drift_.adj(d[at], middle, h, ad + gd)
                            old_d = gd_drift
                            g_middle += gw_drift
                        else:
                            old_d += gd
                            old_w = g_middle + gw
                    ad, aw = adj_state(adj_d, adj_w, b, adj_rows, row, old_d, old_w)

    return SimpleNamespace(rk4=adj_rk4, variational=adj_variational)
