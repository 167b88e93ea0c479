"""Kernels of the fused rollout: sums and element functions of the nested sub-steps in loops over time and members.

For few bodies, the loop over time lies inside a loop over the batch members: one launch for all steps. For many bodies,
each step is a launch of loops over all bodies of all members, which run in parallel, piece by piece. The choice does
not depend on the number of threads, and each body's sum over all others has a fixed order. So the results do not depend
on it either. The adjoint is in fused_adjoint.py.

A member's position and velocity are stored component by component, [rows, dim, n], so that the sums are vectorized.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import field, force, integrate


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Compile-time options of a rollout."""

    real: Any
    dim: int
    verlet: bool
    """True if a step has a second stage: half a kick at the new position."""
    single_launch: bool
    """True: all steps in one launch. False: one launch per step."""
    parallel: bool
    """True if loops over members, or over pieces of all bodies, run on several threads."""
    spread: int = 1
    """Iterations of such a loop per member or piece, of which the first does the work; 1 on a GPU."""
    field: bool
    """True if there is an external field."""
    adj_field: bool = False
    adj_mass: bool = False
    adj_softening: bool = False
    """True if the adjoint of this input is wanted; likewise for the two above. Charge and coupling cost nothing."""
    dense: bool = False
    """True if the adjoint of the state is given, and stored, at every step; False for the last state alone."""


def types(variant: Variant) -> SimpleNamespace:
    """Type annotations of array arguments, and the element functions of the sub-steps."""
    real, dim = variant.real, variant.dim
    array = functools.partial(ti.types.ndarray, ndim=1)
    return SimpleNamespace(
        vec=ti.types.vector(dim, real),
        vectors=array(dtype=ti.types.vector(dim, real)),
        reals=array(dtype=real),
        force=force.functions(real, dim),
        field=field.functions(real, dim),
        integrate=integrate.functions(real, dim),
        stages=2 if variant.verlet else 1,
        light=variant.parallel and variant.spread == 1,  # True if loops with little work are parallel, too
    )


# fmt: off
@functools.cache
@no_type_check
def copy_kernels(real: Any, dim: int, parallel: bool) -> SimpleNamespace:
    """Kernels that copy between rows of a segment x [B, rows, dim * n] and vectors [B, number of these rows, n]."""
    array, body_vector = functools.partial(ti.types.ndarray, ndim=1), force.functions(real, dim).body_vector
    vectors, reals, ints = array(dtype=ti.types.vector(dim, real)), array(dtype=real), array(dtype=ti.i32)

    @kernel
    def put(given: vectors, n: ti.i32, B: ti.i32, rows: ti.i32, x: reals):
        """Write given vectors [B, n] to the first row."""
        ti.loop_config(serialize=not parallel)
        for k in range(B * n):
            b, i = k // n, k % n
            for c in ti.static(range(dim)):
                x[(b * rows * dim + c) * n + i] = given[k][c]

    @kernel
    def take(x: reals, n: ti.i32, B: ti.i32, rows: ti.i32, wanted: ints, count: ti.i32, taken: vectors):
        ti.loop_config(serialize=not parallel)
        for k in range(B * count * n):
            b, row, i = k // (count * n), wanted[k // n % count], k % n
            taken[k] = body_vector(x, b * rows + row, n, i)

    return SimpleNamespace(put=put, take=take)


@functools.cache
@no_type_check
def forward_kernel(variant: Variant) -> Any:
    """Kernel that advances a segment x, v, whose first row is step `first`, from row `start` to row `last`.

    E holds the field at T steps. Parameter arrays have an entry per member, or per body of each. If each row is a
    launch, `row` is its index. The half kicks that end a step and begin the next one share their force.
    """
    t = types(variant)
    real, dim, vectors, reals, spread = variant.real, variant.dim, t.vectors, t.reals, variant.spread
    vec, force_, field_, integrate_ = t.vec, t.force, t.field, t.integrate

    @ti.func
    def kick_velocity(q: ti.template(), m: ti.template(), E: ti.template(), v_i, f, h, at, E_row) -> vec:
        if ti.static(variant.field):
            f += field_.force(q[at], E[E_row])
        return integrate_.kick(v_i, f, m[at], h / 2 if ti.static(variant.verlet) else h)

    @ti.func
    def body(
        x: ti.template(), v: ti.template(), q: ti.template(), m: ti.template(), k: ti.template(), s: ti.template(),
        E: ti.template(), h, n, rows, T, b, i, row, time, ends, begins,
    ):
        """For body i of member b, end the step that leads to a row, and begin the next."""
        at, now, new, E_row = b * n + i, b * rows + row, b * rows + row + 1, b * T + time
        f = k[b] * q[at] * force_.sum(x, q, now, b, n, i, s[b])
        v_i = force_.body_vector(v, now, n, i)
        if ti.static(variant.verlet):  # noqa: SIM102 - decided when compiling
            if ends:
                v_i = kick_velocity(q, m, E, v_i, f, h, at, E_row - 1)
                for c in ti.static(range(dim)):
                    v[(now * dim + c) * n + i] = v_i[c]
        if begins:
            v_i = kick_velocity(q, m, E, v_i, f, h, at, E_row)
            for c in ti.static(range(dim)):
                v[(new * dim + c) * n + i] = v_i[c]
                x[(new * dim + c) * n + i] = x[(now * dim + c) * n + i] + h * v_i[c]

    @kernel
    def forward(
        x: reals, v: reals, q: reals, m: reals, k: reals, s: reals, E: vectors, h: real, n: ti.i32, B: ti.i32,
        rows: ti.i32, T: ti.i32, pieces: ti.i32, first: ti.i32, start: ti.i32, last: ti.i32, row: ti.i32,
    ):
        if ti.static(variant.single_launch):
            ti.loop_config(serialize=not variant.parallel)
            for r in range(B * spread):
                if r % spread == 0:
                    for now in range(start, last + (1 if ti.static(variant.verlet) else 0)):
                        for i in range(n):
                            body(
                                x, v, q, m, k, s, E, h, n, rows, T, r // spread, i, now, first + now,
                                now > start, now < last,
                            )
        else:
            ti.loop_config(serialize=not variant.parallel)
            for r in range(pieces * spread):
                if r % spread == 0:
                    piece = r // spread
                    for at in range(B * n * piece // pieces, B * n * (piece + 1) // pieces):
                        body(
                            x, v, q, m, k, s, E, h, n, rows, T, at // n, at % n, row, first + row,
                            row > start, row < last,
                        )

    return forward


@functools.cache
@no_type_check
def tangent_kernel(variant: Variant) -> Any:
    """Kernel that computes the tangents dx, dv of a segment's states, from their first rows; a loop over members."""
    t = types(variant)
    real, dim, vectors, reals, stages, spread = variant.real, variant.dim, t.vectors, t.reals, t.stages, variant.spread
    force_, field_, integrate_ = t.force, t.field, t.integrate

    @ti.func
    def body(
        stage: ti.template(), x: ti.template(), q: ti.template(), m: ti.template(), k: ti.template(), s: ti.template(),
        E: ti.template(), dx: ti.template(), dv: ti.template(), dq: ti.template(), dm: ti.template(),
        dk: ti.template(), ds: ti.template(), dE: ti.template(), h, n, rows, T, b, i, row, time,
    ):
        at, now, new, E_row = b * n + i, b * rows + row, b * rows + row + 1, b * T + time
        place = now if ti.static(stage == 0) else new
        total = force_.sum(x, q, place, b, n, i, s[b])
        dtotal = force_.jvp_sum(x, q, dx, dq, place, b, n, i, s[b], ds[b])
        f = k[b] * q[at] * total
        df = (dk[b] * q[at] + k[b] * dq[at]) * total + k[b] * q[at] * dtotal
        if ti.static(variant.field):
            f += field_.force(q[at], E[E_row])
            df += field_.jvp(q[at], E[E_row], dq[at], dE[E_row])
        kick = h if ti.static(stages == 1) else h / 2
        dv_new = integrate_.jvp_kick(f, m[at], kick, force_.body_vector(dv, place, n, i), df, dm[at])
        for c in ti.static(range(dim)):
            dv[(new * dim + c) * n + i] = dv_new[c]
            if ti.static(stage == 0):
                dx[(new * dim + c) * n + i] = dx[(now * dim + c) * n + i] + h * dv_new[c]

    @kernel
    def tangent(
        x: reals, q: reals, m: reals, k: reals, s: reals, E: vectors, h: real, n: ti.i32, B: ti.i32,
        rows: ti.i32, T: ti.i32, pieces: ti.i32, dx: reals, dv: reals, dq: reals, dm: reals, dk: reals, ds: reals,
        dE: vectors, first: ti.i32, steps: ti.i32,
    ):
        ti.loop_config(serialize=not variant.parallel)
        for r in range(B * spread):
            if r % spread == 0:
                b = r // spread
                for row in range(steps):
                    for stage in ti.static(range(stages)):
                        for i in range(n):
                            body(
                                stage, x, q, m, k, s, E, dx, dv, dq, dm, dk, ds, dE, h,
                                n, rows, T, b, i, row, first + row,
                            )

    return tangent
