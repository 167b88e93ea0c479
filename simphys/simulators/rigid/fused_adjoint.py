"""Adjoint of the fused loop over time: recomputes each step, then reverses its sub-steps."""

import functools
from typing import Any, no_type_check

from simphys.autograd import View, kernel
from simphys.autograd.kernels.runtime import ti
from simphys.nn import Network

from . import arrays, rows
from .arrays import from_row, rows_of_contacts, select_rows
from .fused import Variant, drift_to_stage, loops, velocity_step
from .nested import orientation_adjoint
from .workspace import (
    ADJ_MEMBER,
    ADJ_NEW,
    ADJ_STAGE,
    ADJ_UNUSED_ROW,
    ADJ_UNUSED_TARGET,
    AT,
    MEMBER,
    PARAM_NAMES,
    UNUSED_TARGET,
    select_impact,
    views,
)

CLEAR = len(AT.__dict__)
"""Index in the layout of the begin, then the end, of the regions that are cleared before each step."""


@functools.cache
@no_type_check
def adj_velocity_step(variant: Variant) -> Any:
    """Return the adjoint of `velocity_step`: from the new motion, `adj_new`, to that where forces act, `adj.stage`.

    Adjoints of parameters are added to `adj.params`, those of the control to `adj_control`. In steps with impulses,
    `adj_rows` are those of the joint rows where forces act, and at the impact.
    """
    f, real, dim = loops(variant), variant.real, variant.dim
    add_turns = orientation_adjoint(real, dim)
    D, W = (3, 4) if dim == 2 else (6, 9)

    sizes = variant.network or Network(inputs=1, hidden=1, outputs=1)

    @ti.func
    def add_weights(signals: ti.template(), adj_signals: ti.template(), adj_params: ti.template()):
        """Add the contribution of a step to the adjoints of a network's weights."""
        x, h, g_h, g_y = ti.static(signals.inputs, signals.hidden, adj_signals.hidden, adj_signals.outputs)
        W1, b1 = ti.static(adj_params.hidden_weight, adj_params.hidden_bias)
        W2, b2 = ti.static(adj_params.output_weight, adj_params.output_bias)
        for i in range(sizes.hidden):
            for j in range(sizes.inputs):
                W1[i * sizes.inputs + j] = W1[i * sizes.inputs + j] + g_h[i] * x[j]
            b1[i] = b1[i] + g_h[i]
        for i in range(sizes.outputs):
            for j in range(sizes.hidden):
                W2[i * sizes.hidden + j] = W2[i * sizes.hidden + j] + g_y[i] * h[j]
            b2[i] = b2[i] + g_y[i]

    @ti.func
    def adj_drive(member: ti.template(), adj: ti.template(), adj_control: ti.template(), A, constants: ti.template()):
        """Add to the adjoint of what motors and the damping of joints depend on."""
        stage, signals, adj_signals = ti.static(member.stage, member.signals, adj.signals)
        if ti.static(variant.controlled):
            f.motor.adj(
                constants.free_rows, stage, signals.outputs, member.params, adj.change, adj.stage,
                adj_signals.outputs, adj.params,
            )  # fmt: skip
            weights, hidden, outputs = ti.static(signals.weights, signals.hidden, signals.outputs)
            adj_inputs, adj_hidden, adj_outputs = ti.static(adj_signals.inputs, adj_signals.hidden, adj_signals.outputs)
            f.network.adjoint(
                weights.array, weights.start, hidden.array, hidden.start, outputs.array, outputs.start,
                adj_outputs.array, adj_outputs.start, adj_hidden.array, adj_hidden.start,
                adj_inputs.array, adj_inputs.start,
            )  # fmt: skip
            add_weights(signals, adj_signals, adj.params)
            sensed, adj_sensed = ti.static(View(signals.inputs, A), View(adj_inputs, A))
            f.sense.adj_sense(constants.system.n, sensed, adj_sensed, adj.stage)
            for e in range(A):
                adj_control[e] = adj_control[e] + adj_inputs[e]
        else:
            f.motor.adj(
                constants.free_rows, stage, signals.action, member.params, adj.change, adj.stage,
                adj_signals.action, adj.params,
            )  # fmt: skip
            for e in range(A):
                adj_control[e] = adj_control[e] + adj_signals.action[e]

    @ti.func
    def back(
        member: ti.template(), adj: ti.template(), adj_new: ti.template(), adj_joint_rows: ti.template(),
        adj_control: ti.template(), A, constants: ti.template(),
    ):  # fmt: skip
        stage, change, contacts = ti.static(member.stage, member.change, member.contacts)
        rows, impact, params = ti.static(member.rows, member.impact, member.params)
        candidates, joints, times = ti.static(constants.candidates, constants.joints, constants.times)
        system = ti.static(select_rows(constants.system, variant.impulses))
        n, h, threshold = system.n, times.h, times.threshold

        f.drift.adj(
            n, h / 2, stage, change.new, change.shift, params, adj_new, adj.stage, adj.change.new, adj.change.shift,
            adj.params,
        )  # fmt: skip

        if ti.static(variant.rows):
            f.phases.adj(h, system, member, adj)
            f.mobility.adj(
                system, rows, contacts, stage, impact, params, adj.rows, adj.contacts, adj.stage, adj.impact, adj.params
            )
            if ti.static(variant.joints):
                if ti.static(variant.impulses):
                    f.joint_constraints.adj(joints, times.gain, stage, adj_joint_rows[0], adj.stage)
                    f.joint_constraints.adj(joints, times.gain, impact, adj_joint_rows[1], adj.impact)
                else:
                    f.joint_constraints.adj(joints, times.gain, stage, adj.rows, adj.stage)
            if ti.static(variant.impulses):
                f.split_step.adj(n, h, stage, change, contacts, impact, adj.impact, adj.stage, adj.change, adj.contacts)
                lines = ti.static(rows_of_contacts(rows, system.NJ, W))
                adj_lines = ti.static(rows_of_contacts(adj.rows, system.NJ, W))
                f.contact_rows.adj_contact_rows(
                    system, h, threshold, contacts, lines, adj_lines, adj.contacts, adj.params
                )
                f.time_of_impact.adj(candidates, system, stage, change, contacts, adj.contacts, adj.stage, adj.change)
        else:
            for e in range(n * D):
                adj.change.twist[e] = adj.change.new[e]

        f.kick.adj(system, h, stage, change, params, adj.change, adj.stage, adj.params)

        if ti.static(variant.driven):
            adj_drive(member, adj, adj_control, A, constants)
        if ti.static(variant.springs):
            f.springs.adj(constants.springs, stage, params, adj.change, adj.stage, adj.params)
        if ti.static(variant.compliant):
            f.compliant.adj(
                candidates, threshold, contacts, stage, params, adj.change, adj.contacts, adj.stage, adj.params
            )
            f.contacts.adj(candidates, stage, contacts, adj.contacts, adj.stage)
        add_turns(stage.q, n, adj.stage.theta, adj.stage.q)

    return back


@functools.cache
@no_type_check
def adj_drift_to_stage(variant: Variant) -> Any:
    """Return the adjoint of `drift_to_stage`: from adj.stage, where forces act, to the start of the step, in place.

    The two are connected by a drift of length h from the motion `old`; `adj_stage` is working memory.
    """
    at, move, dim = rows.functions(variant.real, variant.dim), loops(variant).drift, variant.dim
    D, S, R = dim + at.spins, at.spins, at.rotations

    @ti.func
    def move_region(source: ti.template(), to: ti.template(), size):
        """Move a region of the workspace, and clear it."""
        for e in range(size):
            to[e] = source[e]
            source[e] = 0.0

    @ti.func
    def adj_drift(
        old: ti.template(), member: ti.template(), n, h, adj: ti.template(), adj_stage: ti.template()
    ):  # fmt: skip
        change, adj_change, adj_old = ti.static(member.change, adj.change, adj.stage)
        move_region(adj_old.x, adj_stage.x, n * dim)
        move_region(adj_old.q, adj_stage.q, n * R)
        move_region(adj_old.v, adj_stage.v, n * dim)
        move_region(adj_old.w, adj_stage.w, n * S)
        at.start_change(old, change, n)
        for e in range(n * D):
            adj_change.twist[e] = 0.0
            adj_change.shift[e] = 0.0
        move.adj(
            n, h, old, change.twist, change.shift, member.params, adj_stage, adj_old, adj_change.twist,
            adj_change.shift, adj.params,
        )  # fmt: skip
        for i in range(n):
            at.add_vec_of(adj_old.v, i, at.linear(adj_change.twist, i))
            at.add_spin_of(adj_old.w, i, at.angular(adj_change.twist, i))

    return adj_drift


@functools.cache
@no_type_check
def adjoint_kernel(variant: Variant) -> Any:
    """Return the kernel that reverses `steps` steps of a segment.

    adj_segment is [B, given, ...], for the last motion or (given > 1) for each. adj_params [B, P] and adj_control
    [B, T, A] are accumulated; for the others see fused.forward_kernel.
    """
    real, dim = variant.real, variant.dim
    spins, rotations = (1, 1) if dim == 2 else (3, 4)
    to_stage, step = drift_to_stage(variant), velocity_step(variant)
    back, back_to_start = adj_velocity_step(variant), adj_drift_to_stage(variant)
    types, copy_motion = arrays.types(real), rows.functions(real, dim).copy_motion
    motion_type, packed_type, constants_type, reals = types.motion, types.packed, types.constants, types.reals

    @ti.func
    def move(size, given: ti.template(), source: ti.template(), to: ti.template(), is_stored):
        """Pass the adjoint of a motion to the step before; if every motion has its own, add it and store the sum."""
        for e in range(size):
            value = source[e]
            if is_stored:
                value += given[e]
                given[e] = value
            to[e] = value

    @kernel(reduced=True)
    def adjoint(
        segment: motion_type, packed: packed_type, constants: constants_type, B: ti.i32, rows: ti.i32,
        first: ti.i32, steps: ti.i32, given: ti.i32, adj_segment: motion_type, adj_params: reals,
        adj_control: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not variant.parallel)
        for b in range(B):
            n, A, h = constants.system.n, packed.A, constants.times.h
            m0 = b * packed.size
            work = ti.static(views(MEMBER, packed.work, m0, packed.layout))
            params = ti.static(views(PARAM_NAMES, packed.params, b * packed.P, packed.layout))
            solver = ti.static(work.solver._replace(order=View(packed.order, b * packed.order_size)))
            impact = ti.static(select_impact(work, variant.impulses))
            member = ti.static(work._replace(solver=solver, params=params, impact=impact))
            adj_work = ti.static(views(ADJ_MEMBER, packed.work, m0, packed.layout))
            sums = ti.static(views(PARAM_NAMES, adj_params, b * packed.P, packed.layout))
            adj = ti.static(adj_work._replace(params=sums, impact=select_impact(adj_work, variant.impulses)))
            unused, adj_new, adj_stage, adj_joint_rows = ti.static(
                views(UNUSED_TARGET, packed.work, m0, packed.layout),
                views(ADJ_NEW, packed.work, m0, packed.layout),
                views(ADJ_STAGE, packed.work, m0, packed.layout),
                views((ADJ_UNUSED_ROW, ADJ_UNUSED_TARGET), packed.work, m0, packed.layout),
            )
            last = ti.static(from_row(adj_segment, (b * given + given - 1) * n, dim))
            copy_motion(last, adj_new, n)
            for k_back in range(steps):
                j = steps - 1 - k_back
                at, u0, dense = (b * rows + j) * n, (b * packed.T + first + j) * A, given > 1
                for e in range(packed.layout[CLEAR], packed.layout[CLEAR + 1]):
                    packed.work[m0 + e] = 0.0
                old = ti.static(from_row(segment, at, dim))
                to_stage(old, member, n, h / 2)
                step(member, unused, ti.static(View(packed.control, u0)), A, constants)
                back(member, adj, adj_new, adj_joint_rows, ti.static(View(adj_control, u0)), A, constants)
                back_to_start(old, member, n, h / 2, adj, adj_stage)
                to = ti.static(from_row(adj_segment, (b * given + ti.select(dense, j, 0)) * n, dim))
                move(n * dim, to.x, adj.stage.x, adj_new.x, dense)
                move(n * rotations, to.q, adj.stage.q, adj_new.q, dense)
                move(n * dim, to.v, adj.stage.v, adj_new.v, dense)
                move(n * spins, to.w, adj.stage.w, adj_new.w, dense)
            if given == 1:
                copy_motion(adj_new, last, n)

    return adjoint
