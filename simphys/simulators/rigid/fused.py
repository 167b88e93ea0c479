"""The fused loop over time: the loops of all sub-steps in sequence, on the workspace of a batch member (workspace.py).

A step follows step.py, in the same order. Each member is computed serially, and members share nothing. The adjoint, in
fused_adjoint.py, computes each step again from its stored state.
"""

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, no_type_check

from simphys.autograd import kernel, runtime
from simphys.autograd.kernels.runtime import ti
from simphys.nn import Controller, Network
from simphys.nn import fused as network_loops

from . import (
    compliant,
    contact_rows,
    drift,
    joint_constraints,
    kick,
    mobility,
    motor,
    phases,
    rows,
    sense,
    split_step,
    spring_damper,
    time_of_impact,
)
from .geometry import contacts
from .sweeps import COUNTS
from .workspace import AT


@contextlib.contextmanager
def reduced_optimization() -> Iterator[None]:
    """Compile kernels in this context without passes whose time grows with the square of a kernel's length.

    A step is one long kernel: its adjoint takes a fifth of the time to compile, and runs a tenth slower.
    """
    runtime.settings()  # starts the compiler if it is not running
    config = ti.lang.impl.current_cfg()
    saved = config.advanced_optimization, config.cfg_optimization
    config.advanced_optimization = config.cfg_optimization = False
    try:
        yield
    finally:
        config.advanced_optimization, config.cfg_optimization = saved


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
    is_variational: bool
    parallel: bool
    """True to distribute members over threads."""

    @property
    def tracks_momentum(self) -> bool:
        """True as in `RigidBodies.tracks_momentum`."""
        return self.dim == 3 and self.is_variational

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
        kick=kick.loops(real, dim, not variant.is_variational),
        mobility=mobility.loops(real, dim, variant.tracks_momentum),
        joint_constraints=joint_constraints.loops(real, dim),
        time_of_impact=time_of_impact.loops(real, dim, variant.kinds),
        split_step=split_step.loops(real, dim),
        contact_rows=contact_rows.loops(real, dim),
        phases=phases.loops(real, dim, not variant.is_variational),
        drift=drift.loops(real, dim, variant.is_variational),
    )


@functools.cache
@no_type_check
def velocity_step(variant: Variant) -> Any:
    """Return the function for forces and impulses of a step; it leaves everything the adjoint needs in the workspace.

    The workspace m of a member begins at m0, its parameters p at p0, the control u at u0; the state in which forces act
    is in stage_x ... of the workspace. threshold is the restitution threshold, or the slip speed. counts are n, NJ, M,
    sweeps, K, the number of free joint rows, and the size of a control.
    """
    f, dim = loops(variant), variant.dim
    D, W = (3, 4) if dim == 2 else (6, 9)

    @ti.func
    def step(
        p: ti.template(), p0, u: ti.template(), u0, m: ti.template(), m0, order: ti.template(), order0,
        layout: ti.template(), counts: ti.template(), free: ti.template(), bodies: ti.template(),
        kind: ti.template(), body_a: ti.template(), body_b: ti.template(), constants: ti.template(),
        joint_links: ti.template(), joint_parts: ti.template(), free_links: ti.template(), free_parts: ti.template(),
        ends: ti.template(), anchors: ti.template(), h, span, threshold, gain,
    ):  # fmt: skip
        n, NJ, M, count = counts[0], counts[1], counts[2], counts[3]
        x, q, v, w = (
            m0 + layout[AT.stage_x],
            m0 + layout[AT.stage_q],
            m0 + layout[AT.stage_v],
            m0 + layout[AT.stage_w],
        )
        gap, frame, wrench = m0 + layout[AT.gap], m0 + layout[AT.frame], m0 + layout[AT.wrench]
        twist, new, shift = m0 + layout[AT.twist], m0 + layout[AT.new_twist], m0 + layout[AT.shift]
        for e in range(n * D):
            m[wrench + e] = 0.0
            m[shift + e] = 0.0

        if ti.static(variant.compliant):
            f.contacts.contacts(kind, body_a, body_b, constants, M, m, x, m, q, m, gap, m, frame)
            f.compliant.compliant(
                body_a, body_b, M, threshold, m, gap, m, frame, m, v, m, w, p, p0 + layout[AT.contact_stiffness],
                p, p0 + layout[AT.contact_damping], p, p0 + layout[AT.friction], m, wrench,
            )  # fmt: skip
        if ti.static(variant.springs):
            f.springs.spring_damper(
                ends, anchors, counts[4], m, x, m, q, m, v, m, w, p, p0 + layout[AT.spring_stiffness],
                p, p0 + layout[AT.spring_damping], p, p0 + layout[AT.spring_length], m, wrench,
            )  # fmt: skip
        if ti.static(variant.driven):
            action = m0 + layout[AT.action]
            if ti.static(variant.controlled):
                inputs, waves = m0 + layout[AT.inputs], counts[6]
                action = m0 + layout[AT.outputs]
                for e in range(waves):
                    m[inputs + e] = u[u0 + e]
                f.sense.sense(n, m, x, m, q, m, v, m, w, m, inputs + waves)
                f.network.forward(m, m0 + layout[AT.weights], m, inputs, m, m0 + layout[AT.hidden], m, action)
            else:
                for e in range(counts[6]):
                    m[action + e] = u[u0 + e]
            f.motor.joint_force(
                free_links, free_parts, counts[5], m, x, m, q, m, v, m, w, m, action,
                p, p0 + layout[AT.motor_strength], p, p0 + layout[AT.joint_damping], m, wrench,
            )  # fmt: skip
        f.kick.kick(
            free, n, h, m, v, m, w, m, q, m, wrench, p, p0 + layout[AT.mass], p, p0 + layout[AT.inertia],
            p, p0 + layout[AT.gravity], m, twist,
        )  # fmt: skip

        if ti.static(variant.rows):
            row, target, attitude = m0 + layout[AT.row], m0 + layout[AT.target], m0 + layout[AT.attitude]
            limit, time, active = m0 + layout[AT.limit], m0 + layout[AT.time], m0 + layout[AT.active]
            first, fraction, bounce = m0 + layout[AT.first], m0 + layout[AT.fraction], m0 + layout[AT.bounce]
            inverse_mass, spin_change, moment = (
                m0 + layout[AT.inverse_mass], m0 + layout[AT.spin_change], m0 + layout[AT.moment]
            )  # fmt: skip
            contacts_count, x_impact, q_impact = 0, x, q
            if ti.static(variant.impulses):
                contacts_count, x_impact, q_impact = M, m0 + layout[AT.impact_x], m0 + layout[AT.impact_q]
                f.time_of_impact.time_of_impact(
                    kind, body_a, body_b, constants, M, h, span, threshold, free, n, bodies, NJ,
                    m, x, m, q, m, twist, m, gap, m, frame, m, attitude, m, time, m, active, m, first,
                    m, m0 + layout[AT.gap_normal],
                )  # fmt: skip
                f.contact_rows.contact_rows(
                    bodies, NJ, M, h, threshold, m, active, m, gap, m, frame, p, p0 + layout[AT.friction],
                    p, p0 + layout[AT.restitution], m, row + NJ * W, m, target + NJ, m, limit, m, bounce,
                )  # fmt: skip
                f.split_step.split_step(
                    n, h, span, m, x, m, q, m, twist, m, time, m, first, m, x_impact, m, q_impact, m, fraction
                )  # fmt: skip
            else:
                for b in range(n):
                    m[first + b] = -1.0
                    m[fraction + b] = 1.0
            if ti.static(variant.joints):
                unused_target = m0 + layout[AT.unused_target]
                f.joint_constraints.joint_rows(joint_links, joint_parts, NJ, gain, m, x, m, q, m, row, m, target)
                if ti.static(variant.impulses):
                    f.joint_constraints.joint_rows(
                        joint_links, joint_parts, NJ, gain, m, x_impact, m, q_impact, m, row, m, unused_target
                    )
            f.mobility.mobility(
                free, n, bodies, NJ, contacts_count, m, row, m, active, m, q, m, q_impact, m, attitude,
                p, p0 + layout[AT.mass], p, p0 + layout[AT.inertia], m, inverse_mass, m, spin_change, m, moment,
            )  # fmt: skip
            f.phases.solve_phases(
                h, h - span, m, row, m, target, m, limit, m, bounce, m, inverse_mass, m, spin_change, m, moment,
                m, time, m, fraction, m, twist, m, v, m, w, m, q, p, p0 + layout[AT.inertia], m, active, m, first,
                bodies, NJ, contacts_count, n, count,
                order, order0, m, m0 + layout[AT.held], m, m0 + layout[AT.record], m, m0 + layout[AT.speed],
                m, m0 + layout[AT.trace],
                m, m0 + layout[AT.phase_target], m, m0 + layout[AT.delta_v], m, m0 + layout[AT.result],
                m, m0 + layout[AT.impulse], m, new, m, shift,
            )  # fmt: skip
        else:
            for e in range(n * D):
                m[new + e] = m[twist + e]

    return step


@functools.cache
@no_type_check
def drift_to_stage(variant: Variant) -> Any:
    """Return the first part of a step, of length h: to the state in which forces act, stage_x ... .

    The velocities with which bodies get there are stored in `twist`.
    """
    at, move, dim = rows.functions(variant.real, variant.dim), loops(variant).drift, variant.dim
    D = dim + at.spins

    @ti.func
    def drift(
        x: ti.template(), x0, q: ti.template(), q0, v: ti.template(), v0, w: ti.template(), w0,
        p: ti.template(), p0, m: ti.template(), m0, layout: ti.template(), n, h,
    ):  # fmt: skip
        twist, shift = m0 + layout[AT.twist], m0 + layout[AT.shift]
        x_new, q_new = m0 + layout[AT.stage_x], m0 + layout[AT.stage_q]
        v_new, w_new = m0 + layout[AT.stage_v], m0 + layout[AT.stage_w]
        for i in range(n):
            at.put_vec(m, twist + i * D, at.vec_of(v, v0, i))
            at.put_spin(m, twist + i * D + dim, at.spin_of(w, w0, i))
        for e in range(n * D):
            m[shift + e] = 0.0
        if ti.static(variant.is_variational):
            move.drift(
                n, h, x, x0, q, q0, m, twist, m, shift, p, p0 + layout[AT.inertia], m, x_new, m, q_new,
                m, v_new, m, w_new,
            )  # fmt: skip
        else:
            for i in range(n):
                at.put_vec(m, x_new + i * dim, at.vec_of(x, x0, i))
                at.put_rotation(m, q_new + i * at.rotations, at.rotation_of(q, q0, i))
                at.put_vec(m, v_new + i * dim, at.vec_of(v, v0, i))
                at.put_spin(m, w_new + i * at.spins, at.spin_of(w, w0, i))

    return drift


@functools.cache
@no_type_check
def forward_kernel(variant: Variant) -> Any:
    """Return the kernel that computes states from row `start` to row `last` of a segment; `first` is the step of row 0.

    x, q, v, w [B, rows, ...], p [B, P], u [B, T, A], m [B, size], order [B, M + 1].
    """
    real, dim = variant.real, variant.dim
    spins, rotations = (1, 1) if dim == 2 else (3, 4)
    to_stage, step, move = drift_to_stage(variant), velocity_step(variant), loops(variant).drift
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @kernel
    def forward(
        x: reals, q: reals, v: reals, w: reals, p: reals, u: reals, m: reals, order: ints, layout: ints, counts: ints,
        free: ints, bodies: ints, kind: ints, body_a: ints, body_b: ints, constants: reals, joint_links: ints,
        joint_parts: reals, free_links: ints, free_parts: reals, ends: ints, anchors: reals, h: real, span: real,
        threshold: real, gain: real, B: ti.i32, rows: ti.i32, T: ti.i32, P: ti.i32, size: ti.i32, first: ti.i32,
        start: ti.i32, last: ti.i32,
    ):  # fmt: skip
        ti.loop_config(serialize=not variant.parallel)
        for b in range(B):
            n, M, A = counts[0], counts[2], counts[6]
            for j in range(start, last):
                at, m0 = (b * rows + j) * n, b * size
                to_stage(
                    x, at * dim, q, at * rotations, v, at * dim, w, at * spins, p, b * P, m, m0, layout, n, h - span
                )
                step(
                    p, b * P, u, (b * T + first + j) * A, m, m0, order, b * (M + COUNTS),
                    layout, counts, free, bodies, kind, body_a, body_b, constants,
                    joint_links, joint_parts, free_links, free_parts, ends, anchors, h, span, threshold, gain,
                )  # fmt: skip
                new = at + n
                move.drift(
                    n, span, m, m0 + layout[AT.stage_x], m, m0 + layout[AT.stage_q], m, m0 + layout[AT.new_twist],
                    m, m0 + layout[AT.shift], p, b * P + layout[AT.inertia],
                    x, new * dim, q, new * rotations, v, new * dim, w, new * spins,
                )  # fmt: skip

    return forward
