"""Kernels of the fused rollout under a controller: network, springs and ground in one loop over time.

Each step senses the state, evaluates the network and runs the stages of fused.py, with the outputs of the network as
their control. The adjoint reverses this. Batch members are serial, one thread each. The rows of the network are stored
for the adjoint, one per step of the segment, padded as in `nn.fused.Layout`:

    inputs, hidden, outputs [B, steps, ...]        x, h, y of the network
    adj_hidden, adj_outputs [B, steps, ...]        adjoints before tanh; those of the weights follow from them
    weights [B or 1, size]

The adjoint of the pattern is the leading part of each row of adj_inputs [B, steps, ...].
"""

import functools
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti
from simphys.nn import Network
from simphys.nn import fused as network_loops

from . import sense
from .fused import Variant, forward_stage, types
from .fused_adjoint import adjoint_stage


# fmt: off
@functools.cache
@no_type_check
def forward_kernel(variant: Variant, network: Network, waves: int) -> Any:
    """Kernel that advances a segment, which begins at step `time`, from step `first` to step `last`."""
    layout = network_loops.Layout(network)
    X, H, Y = layout.inputs, layout.hidden, layout.outputs
    t_ = types(variant.real, variant.dim)
    vectors, reals, floors, pairs, ints = t_.vectors, t_.reals, t_.floors, t_.pairs, t_.ints
    stage, net, sense_ = (
        forward_stage(variant), network_loops.loops(variant.real, layout), sense.loops(variant.real, variant.dim)
    )
    real, period = variant.real, max(variant.spread, 1)

    @kernel
    def forward(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, amp: reals, act: ints, ends: pairs,
        a: reals, b: reals, m: reals, g: vectors, floor: floors, drifts: reals,
        weights: reals, pattern: reals, goal: vectors, inputs: reals, hidden: reals, outputs: reals, work: vectors,
        n: ti.i32, S: ti.i32, stages: ti.i32, spring_stride: ti.i32, node_stride: ti.i32, world_stride: ti.i32,
        weight_stride: ti.i32, pattern_stride: ti.i32, scale: real, members: ti.i32, tasks: ti.i32, steps: ti.i32,
        time: ti.i32, first: ti.i32, last: ti.i32,
    ):
        ti.loop_config(serialize=variant.spread == 0)
        for z in range(tasks * period):
            if z % period == 0:
                task = z // period
                for member in range(task * members // tasks, (task + 1) * members // tasks):
                    rows = steps * stages + 1
                    for t in range(first, last):
                        row, now = member * steps + t, (member * rows + t * stages) * n
                        at = member * pattern_stride + (time + t) * waves
                        for j in range(waves):
                            inputs[row * X + j] = pattern[at + j]
                        sense_.sense(x, v, now, n, goal[0], scale, inputs, row * X + waves)
                        net.forward(
                            weights, member * weight_stride, inputs, row * X, hidden, row * H, outputs, row * Y
                        )
                        for q in range(stages):
                            stage(
                                x, v, k, c, L, amp, act, outputs, ends, act, act, a, b, m, g, floor, work,
                                n, S, Y, rows, stages, spring_stride, node_stride, world_stride, steps * Y,
                                member, 1, drifts[q], t, q, 0, t == first and q == 0,
                            )

    return forward


@functools.cache
@no_type_check
def adjoint_kernel(variant: Variant, network: Network, waves: int) -> Any:
    """Kernel that pulls the adjoint of the state, in adj_x and adj_v, back over a segment's first `steps` steps."""
    layout = network_loops.Layout(network)
    X, H, Y = layout.inputs, layout.hidden, layout.outputs
    t_ = types(variant.real, variant.dim)
    vectors, reals, floors, pairs, ints = t_.vectors, t_.reals, t_.floors, t_.pairs, t_.ints
    stage, net, sense_ = (
        adjoint_stage(variant), network_loops.loops(variant.real, layout), sense.loops(variant.real, variant.dim)
    )
    real, period = variant.real, max(variant.spread, 1)

    @kernel
    def adjoint(
        x: vectors, v: vectors, k: reals, c: reals, L: reals, amp: reals, act: ints, ends: pairs,
        a: reals, b: reals, m: reals, g: vectors, floor: floors, drifts: reals,
        weights: reals, hidden: reals, outputs: reals, adj_inputs: reals, adj_hidden: reals, adj_outputs: reals,
        w: vectors, adj_f: vectors, adj_x: vectors, adj_v: vectors, dense_x: vectors, dense_v: vectors,
        adj_springs: reals, adj_nodes: reals, adj_g: vectors, adj_floor: floors,
        n: ti.i32, S: ti.i32, stages: ti.i32, spring_stride: ti.i32, node_stride: ti.i32, world_stride: ti.i32,
        weight_stride: ti.i32, scale: real, members: ti.i32, tasks: ti.i32, steps: ti.i32, rows_steps: ti.i32,
    ):
        ti.loop_config(serialize=variant.spread == 0)
        for z in range(tasks * period):
            if z % period == 0:
                task = z // period
                for member in range(task * members // tasks, (task + 1) * members // tasks):
                    for back in range(steps):
                        t = steps - 1 - back
                        row = member * rows_steps + t
                        for left in range(stages):
                            q = stages - 1 - left
                            stage(
                                x, v, k, c, L, amp, act, outputs, ends, act, act, a, b, m, g, floor,
                                w, adj_f, w, w, w, w, adj_x, adj_v, dense_x, dense_v,
                                adj_springs, adj_outputs, adj_nodes, adj_g, adj_floor,
                                act, act, n, S, Y, rows_steps * stages + 1, stages, spring_stride, node_stride,
                                world_stride, rows_steps * Y, member, 1, steps + 1, rows_steps,
                                drifts[q], t, q, 0,
                            )
                        net.adjoint(
                            weights, member * weight_stride, hidden, row * H, outputs, row * Y,
                            adj_outputs, row * Y, adj_hidden, row * H, adj_inputs, row * X,
                        )
                        sense_.adj_sense(n, scale, adj_inputs, row * X + waves, adj_x, adj_v, member * n)

    return adjoint
