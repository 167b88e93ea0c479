"""The adjoint of the fused rollout: the stages of its steps in reverse, in the same loops over time and members.

Each stage has two loops over the bodies. The first turns the adjoint of the new state into that of the force on each
body. The second adds up, for each body and its parameters, the contributions of all forces: a sum over all other
bodies.
"""

import functools
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from .fused import Variant, types


# fmt: off
@functools.cache
@no_type_check
def adjoint_kernel(variant: Variant) -> Any:
    """Kernel for the steps of `forward_kernel` in reverse.

    ax, av [B, n] hold the adjoint of the state: of the last one on entry, of the first one on return. adj_q .. adj_E
    accumulate, with one entry per body or step. g is workspace. Dense: adj_x, adj_v [B, rows, n] hold the derivatives
    of the loss with respect to each state on entry, and the complete adjoints on return.
    """
    t = types(variant)
    real, dim, vectors, reals, stages, spread = variant.real, variant.dim, t.vectors, t.reals, t.stages, variant.spread
    vec, force_, field_, integrate_, light = t.vec, t.force, t.field, t.integrate, t.light

    @ti.func
    def kick(
        stage: ti.template(), m: ti.template(), g: ti.template(), ax: ti.template(), av: ti.template(), h, b, i, n,
    ):
        """Compute the adjoint of the force on body i from those of its new velocity and position."""
        at = b * n + i
        w = av[at]
        duration = h if ti.static(stages == 1) else h / 2
        if ti.static(stage == 0):
            w += h * ax[at]
            av[at] = w
        adj_f = integrate_.adj_force(m[at], duration, w)
        for c in ti.static(range(dim)):
            g[(b * dim + c) * n + i] = adj_f[c]

    @ti.func
    def adj_field(q: ti.template(), g: ti.template(), E: ti.template(), b, n, E_row) -> vec:
        total = vec(0.0)
        for i in range(n):
            _, gE = field_.adj(q[b * n + i], E[E_row], force_.body_vector(g, b, n, i))
            total += gE
        return total

    @ti.func
    def body(
        stage: ti.template(), x: ti.template(), q: ti.template(), m: ti.template(), k: ti.template(), s: ti.template(),
        E: ti.template(), g: ti.template(), ax: ti.template(), adj_q: ti.template(), adj_m: ti.template(),
        adj_k: ti.template(), adj_s: ti.template(), n, rows, T, b, i, row, time,
    ):
        """Add the contributions of all forces in a stage of the step from `row` to the adjoints of body i."""
        at, place, E_row = b * n + i, b * rows + row, b * T + time
        if ti.static(stage == 1):
            place += 1
        q_i, k_b = q[at], k[b]
        gd, e, h, total = force_.adj_sum(x, q, g, place, b, n, i, s[b])
        adj_f = force_.body_vector(g, b, n, i)
        gq = k_b * e
        if ti.static(variant.field):
            gq_field, _ = field_.adj(q_i, E[E_row], adj_f)
            gq += gq_field
        ax[at] = ax[at] + k_b * q_i * gd
        adj_q[at] = adj_q[at] + gq
        adj_k[at] = adj_k[at] + 0.5 * q_i * e
        if ti.static(variant.adj_softening):
            adj_s[at] = adj_s[at] - 0.5 * k_b * s[b] * q_i * h
        if ti.static(variant.adj_mass):
            f = k_b * q_i * total
            if ti.static(variant.field):
                f += field_.force(q_i, E[E_row])
            adj_m[at] = adj_m[at] + integrate_.adj_mass(f, m[at], adj_f)

    @ti.func
    def store_dense(ax: ti.template(), av: ti.template(), adj_x: ti.template(), adj_v: ti.template(), at, at_row):
        """Add the derivative of the loss with respect to this state, and store the sum."""
        ax[at] = ax[at] + adj_x[at_row]
        av[at] = av[at] + adj_v[at_row]
        adj_x[at_row] = ax[at]
        adj_v[at_row] = av[at]

    @kernel
    def adjoint(
        x: reals, q: reals, m: reals, k: reals, s: reals, E: vectors, h: real, n: ti.i32, B: ti.i32,
        rows: ti.i32, T: ti.i32, pieces: ti.i32, g: reals, ax: vectors, av: vectors,
        adj_x: vectors, adj_v: vectors, adj_rows: ti.i32,
        adj_q: reals, adj_m: reals, adj_k: reals, adj_s: reals, adj_E: vectors,
        first: ti.i32, start: ti.i32, steps: ti.i32,
    ):
        if ti.static(variant.single_launch):
            ti.loop_config(serialize=not variant.parallel)
            for r in range(B * spread):
                if r % spread == 0:
                    b = r // spread
                    for back in range(steps):
                        row = start + steps - 1 - back
                        E_row = b * T + first + row
                        for reverse in ti.static(range(stages)):
                            for i in range(n):
                                kick(stages - 1 - reverse, m, g, ax, av, h, b, i, n)
                            if ti.static(variant.adj_field):
                                adj_E[E_row] = adj_E[E_row] + adj_field(q, g, E, b, n, E_row)
                            for i in range(n):
                                body(
                                    stages - 1 - reverse, x, q, m, k, s, E, g, ax, adj_q, adj_m, adj_k, adj_s,
                                    n, rows, T, b, i, row, first + row,
                                )
                        if ti.static(variant.dense):
                            for i in range(n):
                                store_dense(ax, av, adj_x, adj_v, b * n + i, (b * adj_rows + row) * n + i)
        else:
            for reverse in ti.static(range(stages)):
                ti.loop_config(serialize=not light)
                for at in range(B * n):
                    kick(stages - 1 - reverse, m, g, ax, av, h, at // n, at % n, n)
                if ti.static(variant.adj_field):
                    ti.loop_config(serialize=not light)
                    for b in range(B):
                        E_row = b * T + first + start
                        adj_E[E_row] = adj_E[E_row] + adj_field(q, g, E, b, n, E_row)
                ti.loop_config(serialize=not variant.parallel)
                for r in range(pieces * spread):
                    if r % spread == 0:
                        piece = r // spread
                        for at in range(B * n * piece // pieces, B * n * (piece + 1) // pieces):
                            body(
                                stages - 1 - reverse, x, q, m, k, s, E, g, ax, adj_q, adj_m, adj_k, adj_s,
                                n, rows, T, at // n, at % n, start, first + start,
                            )
            if ti.static(variant.dense):
                ti.loop_config(serialize=not light)
                for at in range(B * n):
                    store_dense(ax, av, adj_x, adj_v, at, (at // n * adj_rows + start) * n + at % n)

    return adjoint
