"""The fused loop over time: the loops of all sub-steps in sequence, on the workspace of a batch member (workspace.py).

A step follows step.py, in the same order. Each member is computed serially, and members share nothing. The adjoint, in
fused_adjoint.py, computes each step again from its stored state. A step is one long kernel: with reduced optimization
its adjoint takes a fifth of the time to compile, and runs a tenth slower.
"""

import functools
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import View, kernel
from simphys.autograd.kernels.runtime import ti
from simphys.nn import Controller, Network
from simphys.nn import fused as network_loops

from . import (
    arrays,
    compliant,
    contact_rows,
    drift,
    joint_constraints,
    kick,
    mobility,
    motor,
    phases,
    phases_tangent,
    rows,
    sense,
    split_step,
    spring_damper,
    time_of_impact,
)
from .arrays import from_row, rows_of_contacts, select_rows
from .geometry import contacts
from .workspace import MEMBER, PARAM_NAMES, UNUSED_TARGET, select_impact, views


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Compile-time options of a rollout."""

    real: Any
    dim: int
    kinds: frozenset[int]
    """Kinds of contact candidates, see geometry/pair.py; none: nothing touches."""
    is_compliant: bool
    """True for the compliant contact law, False for impulses."""
    joints: bool
    springs: bool
    driven: bool
    """True if joints leave motions free: these have damping, and may have motors."""
    controller: Controller | None
    network: Network | None
    """Network of the controller."""
    parallel: bool
    """True to distribute members over threads."""

    @property
    def impulses(self) -> bool:
        """True if contacts give impulses."""
        return bool(self.kinds) and not self.is_compliant

    @property
    def compliant(self) -> bool:
        """True if contacts give forces."""
        return bool(self.kinds) and self.is_compliant

    @property
    def controlled(self) -> bool:
        """True if a network drives the motors."""
        return self.controller is not None

    @property
    def rows(self) -> bool:
        """True if there are rows to solve for."""
        return self.impulses or self.joints


def loops(variant: Variant) -> SimpleNamespace:
    """Return the loops of all sub-steps."""
    real, dim = variant.real, variant.dim
    return SimpleNamespace(
        contacts=contacts.loops(real, dim, variant.kinds),
        compliant=compliant.loops(real, dim),
        springs=spring_damper.loops(real, dim),
        motor=motor.loops(real, dim),
        sense=sense.loops(real, dim, variant.controller) if variant.controller else None,
        network=network_loops.loops(real, network_loops.Layout(variant.network)) if variant.network else None,
        kick=kick.loops(real, dim),
        mobility=mobility.loops(real, dim),
        joint_constraints=joint_constraints.loops(real, dim),
        time_of_impact=time_of_impact.loops(real, dim, variant.kinds),
        split_step=split_step.loops(real, dim),
        contact_rows=contact_rows.loops(real, dim),
        phases=phases.loops(real, dim),
        phases_tangent=phases_tangent.loops(real, dim),
        drift=drift.loops(real, dim),
    )


@functools.cache
@no_type_check
def velocity_step(variant: Variant) -> Any:
    """Return the function for forces and impulses of a step; it leaves everything the adjoint needs in the workspace.

    `control` is that of the step. Forces act in the state in `member.stage`.
    """
    f, dim = loops(variant), variant.dim
    D, W = (3, 4) if dim == 2 else (6, 9)

    @ti.func
    def step(member: ti.template(), unused: ti.template(), control: ti.template(), A, constants: ti.template()):
        stage, change, contacts = ti.static(member.stage, member.change, member.contacts)
        rows, impact, params = ti.static(member.rows, member.impact, member.params)
        candidates, joints, times = ti.static(constants.candidates, constants.joints, constants.times)
        system = ti.static(select_rows(constants.system, variant.impulses))
        n, h, threshold = system.n, times.h, times.threshold
        for e in range(n * D):
            change.wrench[e] = 0.0
            change.shift[e] = 0.0

        if ti.static(variant.compliant):
            f.contacts.contacts(candidates, stage, contacts)
            f.compliant.compliant(candidates, threshold, contacts, stage, params, change)
        if ti.static(variant.springs):
            f.springs.spring_damper(constants.springs, stage, params, change)
        if ti.static(variant.driven):
            drive(member, control, A, constants)
        f.kick.kick(system, h, stage, change, params)

        if ti.static(variant.rows):
            if ti.static(variant.impulses):
                contact_part = ti.static(rows_of_contacts(rows, system.NJ, W))
                f.time_of_impact.time_of_impact(candidates, system, h, threshold, stage, change, contacts)
                f.contact_rows.contact_rows(system, h, threshold, contacts, params, contact_part)
                f.split_step.split_step(n, h, stage, change, contacts, impact)
            else:
                for b in range(n):
                    contacts.first[b] = -1.0
                    impact.fraction[b] = 1.0
            if ti.static(variant.joints):
                f.joint_constraints.joint_rows(joints, times.gain, stage, rows)
                if ti.static(variant.impulses):
                    f.joint_constraints.joint_rows(joints, times.gain, impact, unused)
            f.mobility.mobility(system, rows, contacts, stage, impact, params)
            f.phases.solve_phases(h, system, member)
        else:
            for e in range(n * D):
                change.new[e] = change.twist[e]

    @ti.func
    def drive(member: ti.template(), control: ti.template(), A, constants: ti.template()):
        """Add the forces of motors and the damping of joints to the wrench."""
        stage, signals = ti.static(member.stage, member.signals)
        if ti.static(variant.controlled):
            for e in range(A):
                signals.inputs[e] = control[e]
            f.sense.sense(constants.system.n, stage, ti.static(View(signals.inputs, A)))
            weights, inputs, hidden, outputs = ti.static(
                signals.weights, signals.inputs, signals.hidden, signals.outputs
            )
            f.network.forward(
                weights.array, weights.start, inputs.array, inputs.start,
                hidden.array, hidden.start, outputs.array, outputs.start,
            )  # fmt: skip
            f.motor.joint_force(constants.free_rows, stage, signals.outputs, member.params, member.change)
        else:
            for e in range(A):
                signals.action[e] = control[e]
            f.motor.joint_force(constants.free_rows, stage, signals.action, member.params, member.change)

    return step


@functools.cache
@no_type_check
def drift_to_stage(variant: Variant) -> Any:
    """Return the first part of a step, of length h: from the motion `old` to that in which forces act, `member.stage`.

    The velocities with which bodies get there are stored in `twist`.
    """
    at, move = rows.functions(variant.real, variant.dim), loops(variant).drift

    @ti.func
    def drift(old: ti.template(), member: ti.template(), n, h):
        stage, change = ti.static(member.stage, member.change)
        at.start_change(old, change, n)
        move.drift(n, h, old, change.twist, change.shift, member.params, stage)

    return drift


@functools.cache
@no_type_check
def forward_kernel(variant: Variant) -> Any:
    """Return the kernel that computes rows `start` to `last` of a segment; `first` is the step of row 0.

    x, q, v, w of the segment are [B, rows, ...].
    """
    real, dim = variant.real, variant.dim
    to_stage, step, move = drift_to_stage(variant), velocity_step(variant), loops(variant).drift
    types = arrays.types(real)
    motion_type, packed_type, constants_type = types.motion, types.packed, types.constants

    @kernel(reduced=True)
    def forward(
        segment: motion_type, packed: packed_type, constants: constants_type, B: ti.i32, rows: ti.i32,
        first: ti.i32, start: ti.i32, last: ti.i32,
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
            for j in range(start, last):
                at = (b * rows + j) * n
                old, new = ti.static(from_row(segment, at, dim), from_row(segment, at + n, dim))
                control = ti.static(View(packed.control, (b * packed.T + first + j) * A))
                to_stage(old, member, n, h / 2)
                step(member, unused, control, A, constants)
                move.drift(n, h / 2, member.stage, member.change.new, member.change.shift, member.params, new)

    return forward
