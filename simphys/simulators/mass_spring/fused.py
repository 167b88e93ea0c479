"""Kernels of the fused rollout: stages of the same element functions as in the nested sub-steps, for a whole batch.

A stage consists of forces, kick and drift (MassSpring.stages). For small systems, or on one thread, the loop over
stages is serial for each batch member: springs scatter to their nodes, and members are spread over threads. For large
systems each stage is a launch of parallel loops over the nodes and springs of all members. Nodes then gather from their
springs in the same order, without atomics, so that results do not depend on the thread count.

Memory, for batch member b:

    states, flat over [B, rows, n]      one row per stage; stage j leads from row j to row j + 1
    parameters [B or 1, size]           index b * stride + i; the stride is 0 if all members share them, else the size
                                        (for springs, in blocks)
    kick coefficients [B or 1, stages, n]
    control, flat over [B or 1, T, A]   one row per step
    adjoint sums [B, size]              one per member; the engine adds up those of shared parameters
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti

from . import fused_elements


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Compile-time options of a rollout. Terms that are zero and unwanted adjoints are left out of the kernels."""

    real: Any
    dim: int
    serial: bool
    """True: one thread runs all stages of a member, in one launch. False: each stage launches parallel loops."""
    spread: int = 0
    """Serial: iterations of the parallel loop per task, of which the first does the work; 0 for a serial loop."""
    batched: bool = False
    """True if there is more than one batch member."""
    damped: bool
    """True if springs have dashpots."""
    ground: bool
    """True if there is a ground."""
    actuated: bool = False
    """True if a control acts on the rest lengths."""
    width: int = 1
    """Springs per block, which the compiler vectorizes; the number of springs is a multiple of it."""
    stiffness: bool = False
    damping: bool = False
    rest_length: bool = False
    amplitude: bool = False
    """True if the adjoint of this spring parameter is wanted; likewise for the three above."""
    control: bool = False
    """True if the adjoint of the control is wanted."""
    decay: bool = False
    """True if the adjoint of the kick coefficient a is wanted, for drag."""
    impulse: bool = False
    """True if the adjoint of the kick coefficient b is wanted, for mass or drag."""
    weight: bool = False
    """True if the adjoints of mass and gravity through the weight are wanted."""
    floor: bool = False
    """True if the adjoints of the ground's height, stiffness and friction are wanted."""
    dense: bool = False
    """True if the adjoint of the state is given, and stored, at every step; False for the last state alone."""


def types(real: Any, dim: int) -> SimpleNamespace:
    """Type annotations of array arguments."""
    array = functools.partial(ti.types.ndarray, ndim=1)
    return SimpleNamespace(
        vectors=array(dtype=ti.types.vector(dim, real)),
        reals=array(dtype=real),
        floors=array(dtype=ti.types.vector(3, real)),
        pairs=array(dtype=ti.types.vector(2, ti.i32)),
        ints=array(dtype=ti.i32),
    )


def elements(variant: Variant) -> tuple[SimpleNamespace, SimpleNamespace, SimpleNamespace, SimpleNamespace]:
    """The element functions of spring, external force, integration and actuation."""
    real, dim = variant.real, variant.dim
    return (
        fused_elements.spring_functions(real, dim, variant.damped),
        fused_elements.external_functions(real, dim, variant.ground),
        fused_elements.integrate_functions(real, dim),
        fused_elements.actuate_functions(real),
    )


# fmt: off
@functools.cache
@no_type_check
def indexing(variant: Variant) -> SimpleNamespace:
    """Index arithmetic and reads that all kernels share."""
    flat = variant.batched and not variant.serial
    _, _, _, actuate_ = elements(variant)

    @ti.func
    def split(y, size, b):
        """Split the loop index y into batch member and index, in a loop over all members or over member b alone."""
        member, i = b, y
        if ti.static(flat):
            member = y // size
            i = y - member * size
        return member, i

    @ti.func
    def rest_length(L: ti.template(), amp: ti.template(), act: ti.template(), u: ti.template(), s, p, now):
        """Rest length of spring s, whose parameters are at index p; the control of this step begins at `now`."""
        value = L[p]
        if ti.static(variant.actuated):
            value = actuate_.rest_length(value, amp[p], u[now + act[s]])
        return value

    return SimpleNamespace(split=split, rest_length=rest_length)


@functools.cache
@no_type_check
def forward_stage(variant: Variant) -> Any:
    """Stage q of step t of a segment that begins at step `time`, for one member or for all `members`."""
    serial, width, actuated = variant.serial, variant.width, variant.actuated
    spring_, external_, integrate_, _ = elements(variant)
    indexing_ = indexing(variant)

    @ti.func
    def stage(
        x: ti.template(), v: ti.template(), k: ti.template(), c: ti.template(), L: ti.template(), amp: ti.template(),
        act: ti.template(), u: ti.template(), ends: ti.template(), start: ti.template(), incidence: ti.template(),
        a: ti.template(), b: ti.template(), m: ti.template(), g: ti.template(), floor: ti.template(),
        work: ti.template(), n, S, A, rows, stages, spring_stride, node_stride, world_stride, control_stride,
        member, members, e, t, q, time, first_stage,
    ):
        j = t * stages + q
        if ti.static(serial):  # noqa: SIM102 - decided when compiling
            if first_stage:
                for i in range(n):
                    now, z, p = (member * rows + j) * n + i, member * world_stride, member * node_stride + i
                    work[member * n + i] = external_.force(x[now], v[now], m[p], g[z], floor[z])
        for y in range(members * (S // width)):
            o, block = indexing_.split(y, S // width, member)
            now, p, at = (o * rows + j) * n, (o * spring_stride + block) * width, 0
            if ti.static(actuated):
                at = o * control_stride + (time + t) * A
            springs = [block * width + r for r in ti.static(range(width))]
            h, i = [ends[s][0] for s in ti.static(springs)], [ends[s][1] for s in ti.static(springs)]
            d = [x[now + i[r]] - x[now + h[r]] for r in ti.static(range(width))]
            w = [v[now + i[r]] - v[now + h[r]] for r in ti.static(range(width))]
            f = [
                spring_.force(
                    d[r], w[r], k[p + r], c[p + r], indexing_.rest_length(L, amp, act, u, springs[r], p + r, at)
                )
                for r in ti.static(range(width))
            ]
            for r in ti.static(range(width)):
                if ti.static(serial):
                    end_h, end_i = o * n + h[r], o * n + i[r]
                    f_h, f_i = work[end_h], work[end_i]
                    work[end_h] = f_h + f[r]
                    work[end_i] = f_i - f[r]
                else:
                    work[o * S + springs[r]] = f[r]
        for y in range(members * n):
            o, i = indexing_.split(y, n, member)
            now, p, z = (o * rows + j) * n + i, o * node_stride, o * world_stride
            f = work[o * n + i]
            if ti.static(not serial):
                f = external_.force(x[now], v[now], m[p + i], g[z], floor[z])
                for r in range(start[i], start[i + 1]):
                    f += (1 - 2 * (incidence[r] & 1)) * work[o * S + (incidence[r] >> 1)]
            v_new = integrate_.kick(v[now], f, a[p * stages + q * n + i], b[p * stages + q * n + i])
            x_new = x[now] + e * v_new
            v[now + n] = v_new
            x[now + n] = x_new
            if ti.static(serial):  # for the next stage
                work[o * n + i] = external_.force(x_new, v_new, m[p + i], g[z], floor[z])

    return stage


@functools.cache
@no_type_check
def forward_kernel(variant: Variant) -> Any:
    """Kernel that advances a segment, which begins at step `time`, from stage `first` to stage `last`.

    In serial variants both stages begin a step. In the others the kernel runs the single stage between them.
    """
    real, serial, period = variant.real, variant.serial, max(variant.spread, 1)
    t = types(real, variant.dim)
    vectors, reals, floors, pairs, ints = t.vectors, t.reals, t.floors, t.pairs, t.ints
    stage = forward_stage(variant)

    @kernel
    def forward(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, amp: reals, act: ints, u: reals, ends: pairs,
        start: ints, incidence: ints, a: reals, b: reals, m: reals, g: vectors, floor: floors, drifts: reals,
        n: ti.i32, S: ti.i32, A: ti.i32, stages: ti.i32, spring_stride: ti.i32, node_stride: ti.i32,
        world_stride: ti.i32, control_stride: ti.i32, members: ti.i32, tasks: ti.i32, work: vectors, rows: ti.i32,
        time: ti.i32, first: ti.i32, last: ti.i32,
    ):
        if ti.static(serial):
            ti.loop_config(serialize=variant.spread == 0)
            for y in range(tasks * period):
                if y % period == 0:
                    task = y // period
                    for member in range(task * members // tasks, (task + 1) * members // tasks):
                        for t in range(first // stages, last // stages):
                            for q in range(stages):
                                stage(
                                    x, v, k, c, L, amp, act, u, ends, start, incidence, a, b, m, g, floor, work,
                                    n, S, A, rows, stages, spring_stride, node_stride, world_stride, control_stride,
                                    member, 1, drifts[q], t, q, time, t * stages + q == first,
                                )
        else:
            stage(
                x, v, k, c, L, amp, act, u, ends, start, incidence, a, b, m, g, floor, work,
                n, S, A, rows, stages, spring_stride, node_stride, world_stride, control_stride,
                0, members, drifts[first % stages], first // stages, first % stages, time, True,
            )

    return forward
