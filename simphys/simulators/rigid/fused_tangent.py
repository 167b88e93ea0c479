"""Tangent of the fused loop over time: computes each step again, then pushes tangents through its sub-steps."""

import functools
from typing import Any, no_type_check

from simphys.autograd import View, kernel
from simphys.autograd.kernels.runtime import ti

from . import arrays, rows
from .arrays import from_row, rows_of_contacts, select_rows
from .fused import Variant, drift_to_stage, loops, velocity_step
from .workspace import MEMBER, PARAM_NAMES, UNUSED_TARGET, select_impact, views


@functools.cache
@no_type_check
def jvp_velocity_step(variant: Variant) -> Any:
    """Return the tangent of `velocity_step`, from that of the motion in which forces act, in `dmember.stage`.

    `dmember` has the regions of `member`, with the tangents of their values.
    """
    f, dim = loops(variant), variant.dim
    D, W = (3, 4) if dim == 2 else (6, 9)

    @ti.func
    def jvp_drive(
        member: ti.template(), dmember: ti.template(), dcontrol: ti.template(), A, constants: ti.template()
    ):  # fmt: skip
        """Add the tangents of the forces of motors and of the damping of joints."""
        stage, signals, params = ti.static(member.stage, member.signals, member.params)
        dstage, dsignals, dparams = ti.static(dmember.stage, dmember.signals, dmember.params)
        action, daction = ti.static(
            (signals.outputs, dsignals.outputs) if variant.controlled else (signals.action, dsignals.action)
        )
        if ti.static(variant.controlled):
            for e in range(A):
                dsignals.inputs[e] = dcontrol[e]
            sensed, dsensed = ti.static(View(signals.inputs, A), View(dsignals.inputs, A))
            f.sense.jvp_sense(constants.system.n, stage, sensed, dstage, dsensed)
            f.network.tangent(
                signals.weights, dsignals.weights, signals.inputs, dsignals.inputs,
                signals.hidden, dsignals.hidden, signals.outputs, dsignals.outputs,
            )  # fmt: skip
        else:
            for e in range(A):
                dsignals.action[e] = dcontrol[e]
        f.motor.jvp(constants.free_rows, stage, action, params, dstage, daction, dparams, dmember.change)

    @ti.func
    def jvp_step(
        member: ti.template(), dmember: ti.template(), dunused: ti.template(), dcontrol: ti.template(), A,
        constants: ti.template(),
    ):  # fmt: skip
        stage, change, contacts = ti.static(member.stage, member.change, member.contacts)
        rows, impact, params = ti.static(member.rows, member.impact, member.params)
        dstage, dchange, dcontacts = ti.static(dmember.stage, dmember.change, dmember.contacts)
        drows, dimpact, dparams = ti.static(dmember.rows, dmember.impact, dmember.params)
        candidates, joints, times = ti.static(constants.candidates, constants.joints, constants.times)
        system = ti.static(select_rows(constants.system, variant.impulses))
        n, h, threshold = system.n, times.h, times.threshold
        for e in range(n * D):
            dchange.wrench[e] = 0.0
            dchange.shift[e] = 0.0

        if ti.static(variant.compliant):
            f.contacts.jvp(candidates, stage, contacts, dstage, dcontacts)
            f.compliant.jvp(
                candidates, threshold, contacts, stage, params, dcontacts, dstage, dparams, dchange
            )  # fmt: skip
        if ti.static(variant.springs):
            f.springs.jvp(constants.springs, stage, params, dstage, dparams, dchange)
        if ti.static(variant.driven):
            jvp_drive(member, dmember, dcontrol, A, constants)
        f.kick.jvp(system, h, stage, change, params, dstage, dchange, dparams)

        if ti.static(variant.rows):
            if ti.static(variant.impulses):
                lines = ti.static(rows_of_contacts(rows, system.NJ, W))
                dlines = ti.static(rows_of_contacts(drows, system.NJ, W))
                f.time_of_impact.jvp(candidates, system, stage, change, contacts, dstage, dchange, dcontacts)
                f.contact_rows.jvp(system, h, threshold, contacts, lines, dcontacts, dparams, dlines)
                f.split_step.jvp(n, h, stage, change, contacts, dstage, dchange, dcontacts, dimpact)
            else:
                for b in range(n):
                    dimpact.fraction[b] = 0.0
            if ti.static(variant.joints):
                f.joint_constraints.jvp(joints, times.gain, stage, dstage, drows)
                if ti.static(variant.impulses):
                    f.joint_constraints.jvp(joints, times.gain, impact, dimpact, dunused)
            f.mobility.jvp(system, rows, contacts, stage, impact, params, drows, dcontacts, dstage, dimpact, dparams)
            f.phases_tangent.jvp(h, system, member, dmember)
        else:
            for e in range(n * D):
                dchange.new[e] = dchange.twist[e]

    return jvp_step


@functools.cache
@no_type_check
def jvp_drift_to_stage(variant: Variant) -> Any:
    """Return the tangent of `drift_to_stage`, right after which it is called: `twist` is still that of the drift."""
    at, move = rows.functions(variant.real, variant.dim), loops(variant).drift

    @ti.func
    def jvp_drift(
        old: ti.template(), dold: ti.template(), member: ti.template(), dmember: ti.template(), n, h
    ):  # fmt: skip
        change, dstage, dchange = ti.static(member.change, dmember.stage, dmember.change)
        at.start_change(dold, dchange, n)
        move.jvp(
            n, h, old, change.twist, change.shift, member.params, dold, dchange.twist, dchange.shift,
            dmember.params, dstage,
        )  # fmt: skip

    return jvp_drift


@functools.cache
@no_type_check
def tangent_kernel(variant: Variant) -> Any:
    """Return the kernel that pushes tangents through `steps` steps of a segment.

    dsegment is [B, steps + 1, ...], at first the tangent of its first row; dpacked has those of parameters and control,
    and a second workspace. For the others see fused.forward_kernel.
    """
    real, dim = variant.real, variant.dim
    to_stage, step, move = drift_to_stage(variant), velocity_step(variant), loops(variant).drift
    jvp_to_stage, jvp_step = jvp_drift_to_stage(variant), jvp_velocity_step(variant)
    types = arrays.types(real)
    motion_type, packed_type, constants_type = types.motion, types.packed, types.constants

    @kernel(reduced=True)
    def tangent(
        segment: motion_type, packed: packed_type, constants: constants_type, B: ti.i32, rows: ti.i32,
        first: ti.i32, steps: ti.i32, dsegment: motion_type, dpacked: packed_type,
    ):  # fmt: skip
        ti.loop_config(serialize=not variant.parallel)
        for b in range(B):
            n, A, h = constants.system.n, packed.A, constants.times.h
            work = ti.static(views(MEMBER, packed.work, b * packed.size, packed.layout))
            params = ti.static(views(PARAM_NAMES, packed.params, b * packed.P, packed.layout))
            solver = ti.static(work.solver._replace(order=View(packed.order, b * packed.order_size)))
            impact = ti.static(select_impact(work, variant.impulses))
            member = ti.static(work._replace(solver=solver, params=params, impact=impact))
            unused = ti.static(views(UNUSED_TARGET, packed.work, b * packed.size, packed.layout))
            dwork = ti.static(views(MEMBER, dpacked.work, b * packed.size, packed.layout))
            dparams = ti.static(views(PARAM_NAMES, dpacked.params, b * packed.P, packed.layout))
            dimpact = ti.static(select_impact(dwork, variant.impulses))
            dmember = ti.static(dwork._replace(params=dparams, impact=dimpact))
            dunused = ti.static(views(UNUSED_TARGET, dpacked.work, b * packed.size, packed.layout))
            for j in range(steps):
                at, dat, u = (b * rows + j) * n, (b * (steps + 1) + j) * n, (b * packed.T + first + j) * A
                old, dold = ti.static(from_row(segment, at, dim), from_row(dsegment, dat, dim))
                dnew = ti.static(from_row(dsegment, dat + n, dim))
                to_stage(old, member, n, h / 2)
                jvp_to_stage(old, dold, member, dmember, n, h / 2)
                step(member, unused, ti.static(View(packed.control, u)), A, constants)
                jvp_step(member, dmember, dunused, ti.static(View(dpacked.control, u)), A, constants)
                move.jvp(
                    n, h / 2, member.stage, member.change.new, member.change.shift, member.params,
                    dmember.stage, dmember.change.new, dmember.change.shift, dmember.params, dnew,
                )  # fmt: skip

    return tangent
