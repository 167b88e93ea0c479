"""Adjoint of the fused loop over time: recomputes each step, then reverses its sub-steps."""

import functools
from typing import Any, no_type_check

from simphys.autograd import kernel
from simphys.autograd.kernels.runtime import ti
from simphys.nn import Network

from . import rows
from .fused import Variant, drift_to_stage, loops, velocity_step
from .nested import orientation_adjoint
from .sweeps import COUNTS
from .workspace import AT

CLEAR = len(AT.__dict__)
"""Index in the layout of the begin, then the end, of the regions that are cleared before each step."""


@functools.cache
@no_type_check
def adj_velocity_step(variant: Variant) -> Any:
    """Return the adjoint of `velocity_step`: from the new state, adj_x_new ... of the workspace, to the old, adj_x ....

    Adjoints of parameters are added to s, from p0 on, those of the control to adj_u, from u0 on.
    """
    f, real, dim = loops(variant), variant.real, variant.dim
    add_turns = orientation_adjoint(real, dim)
    D, W = (3, 4) if dim == 2 else (6, 9)

    sizes = variant.network or Network(inputs=1, hidden=1, outputs=1)

    @ti.func
    def add_weights(m: ti.template(), x, h, g_h, g_y, s: ti.template(), W1, b1, W2, b2):
        """Add the contribution of a step to the adjoints of a network's weights."""
        for i in range(sizes.hidden):
            for j in range(sizes.inputs):
                s[W1 + i * sizes.inputs + j] = s[W1 + i * sizes.inputs + j] + m[g_h + i] * m[x + j]
            s[b1 + i] = s[b1 + i] + m[g_h + i]
        for i in range(sizes.outputs):
            for j in range(sizes.hidden):
                s[W2 + i * sizes.hidden + j] = s[W2 + i * sizes.hidden + j] + m[g_y + i] * m[h + j]
            s[b2 + i] = s[b2 + i] + m[g_y + i]

    @ti.func
    def back(
        p: ti.template(), p0, m: ti.template(), m0, order: ti.template(), order0,
        layout: ti.template(), counts: ti.template(), free: ti.template(), bodies: ti.template(),
        kind: ti.template(), body_a: ti.template(), body_b: ti.template(), constants: ti.template(),
        joint_links: ti.template(), joint_parts: ti.template(), free_links: ti.template(), free_parts: ti.template(),
        ends: ti.template(), anchors: ti.template(), h, span, threshold, gain,
        s: ti.template(), adj_u: ti.template(), u0,
    ):  # fmt: skip
        n, NJ, M, count = counts[0], counts[1], counts[2], counts[3]
        x, q, v, w = (
            m0 + layout[AT.stage_x],
            m0 + layout[AT.stage_q],
            m0 + layout[AT.stage_v],
            m0 + layout[AT.stage_w],
        )
        gap, frame = m0 + layout[AT.gap], m0 + layout[AT.frame]
        twist, new, shift = m0 + layout[AT.twist], m0 + layout[AT.new_twist], m0 + layout[AT.shift]
        mass, inertia, friction = p0 + layout[AT.mass], p0 + layout[AT.inertia], p0 + layout[AT.friction]
        adj_x, adj_q, adj_theta = m0 + layout[AT.adj_x], m0 + layout[AT.adj_q], m0 + layout[AT.adj_theta]
        adj_v, adj_w = m0 + layout[AT.adj_v], m0 + layout[AT.adj_w]
        adj_gap, adj_frame = m0 + layout[AT.adj_gap], m0 + layout[AT.adj_frame]
        adj_twist, adj_new, adj_shift = (
            m0 + layout[AT.adj_twist], m0 + layout[AT.adj_new_twist], m0 + layout[AT.adj_shift]
        )  # fmt: skip
        adj_wrench = m0 + layout[AT.adj_wrench]

        f.drift.adj(
            n, span, m, q, m, new, m, shift, p, inertia, m, m0 + layout[AT.adj_x_new], m, m0 + layout[AT.adj_q_new],
            m, m0 + layout[AT.adj_v_new], m, m0 + layout[AT.adj_w_new], m, adj_x, m, adj_q, m, adj_new, m, adj_shift,
            s, inertia,
        )  # fmt: skip

        if ti.static(variant.rows):
            row, attitude, limit = m0 + layout[AT.row], m0 + layout[AT.attitude], m0 + layout[AT.limit]
            time, active, bounce = m0 + layout[AT.time], m0 + layout[AT.active], m0 + layout[AT.bounce]
            first, fraction, inverse_mass = (
                m0 + layout[AT.first],
                m0 + layout[AT.fraction],
                m0 + layout[AT.inverse_mass],
            )
            adj_row, adj_target = m0 + layout[AT.adj_row], m0 + layout[AT.adj_target]
            adj_rotations, adj_limit = m0 + layout[AT.adj_rotations], m0 + layout[AT.adj_limit]
            adj_bounce, adj_time = m0 + layout[AT.adj_bounce], m0 + layout[AT.adj_time]
            adj_fraction, adj_inverse_mass = m0 + layout[AT.adj_fraction], m0 + layout[AT.adj_inverse_mass]
            adj_spin_change, adj_moment = m0 + layout[AT.adj_spin_change], m0 + layout[AT.adj_moment]
            contacts_count, x_impact, q_impact, adj_x_impact, adj_impact_theta = 0, x, q, adj_x, adj_theta
            if ti.static(variant.impulses):
                contacts_count, x_impact, q_impact = M, m0 + layout[AT.impact_x], m0 + layout[AT.impact_q]
                adj_x_impact, adj_impact_theta = m0 + layout[AT.adj_impact_x], m0 + layout[AT.adj_impact_theta]
            f.phases.adj(
                h, h - span, m, row, m, limit, m, bounce, m, inverse_mass, m, time, m, fraction,
                m, w, m, q, p, inertia, m, active, m, first,
                bodies, NJ, contacts_count, n, count, order, order0, m, m0 + layout[AT.held], m, m0 + layout[AT.record],
                m, m0 + layout[AT.speed], m, m0 + layout[AT.trace], m, m0 + layout[AT.phase_target],
                m, m0 + layout[AT.delta_v], m, m0 + layout[AT.result], m, m0 + layout[AT.impulse],
                m, m0 + layout[AT.adj_record], m, m0 + layout[AT.adj_speed], m, m0 + layout[AT.adj_phase_target],
                m, m0 + layout[AT.adj_delta_v], m, m0 + layout[AT.adj_impulse], m, adj_new, m, adj_shift,
                m, adj_row, m, adj_target, m, adj_limit, m, adj_bounce, m, adj_inverse_mass, m, adj_spin_change,
                m, adj_moment, m, adj_time, m, adj_fraction, m, adj_twist, m, adj_v, m, adj_w, m, adj_theta, s, inertia,
            )  # fmt: skip
            f.mobility.adj(
                free, n, bodies, NJ, contacts_count, m, row, m, active, m, q, m, q_impact, m, attitude,
                p, mass, p, inertia, m, adj_inverse_mass, m, adj_spin_change, m, adj_moment, m, adj_row, m, adj_theta,
                m, adj_impact_theta, m, adj_rotations, s, mass, s, inertia,
            )  # fmt: skip
            if ti.static(variant.joints):
                adj_impact_target = m0 + layout[AT.adj_target]
                if ti.static(variant.impulses):
                    adj_impact_target = m0 + layout[AT.adj_unused_target]
                    f.joint_constraints.adj(
                        joint_links, joint_parts, NJ, gain, m, x, m, q, m, m0 + layout[AT.adj_unused_row], m,
                        adj_target,
                        m, adj_x, m, adj_theta,
                    )  # fmt: skip
                f.joint_constraints.adj(
                    joint_links, joint_parts, NJ, gain, m, x_impact, m, q_impact, m, adj_row, m, adj_impact_target,
                    m, adj_x_impact, m, adj_impact_theta,
                )  # fmt: skip
            if ti.static(variant.impulses):
                f.split_step.adj(
                    n, h, m, q, m, twist, m, time, m, first, m, q_impact, m, adj_x_impact, m, adj_impact_theta, m,
                    adj_fraction,
                    m, adj_x, m, adj_theta, m, adj_twist, m, adj_time,
                )  # fmt: skip
                f.contact_rows.adj_contact_rows(
                    bodies, NJ, M, h, threshold, m, active, m, gap, m, frame, m, row + NJ * W,
                    m, adj_row + NJ * W, m, adj_target + NJ, m, adj_limit, m, adj_bounce, m, adj_gap, m, adj_frame,
                    s, friction, s, p0 + layout[AT.restitution],
                )  # fmt: skip
                f.time_of_impact.adj(
                    kind, body_a, body_b, constants, M, bodies, NJ, m, x, m, q, m, twist, m, gap, m, frame, m, attitude,
                    m, time, m, active, m, first, m, m0 + layout[AT.gap_normal],
                    m, adj_gap, m, adj_frame, m, adj_rotations, m, adj_time,
                    m, adj_x, m, adj_theta, m, adj_twist,
                )  # fmt: skip
        else:
            for e in range(n * D):
                m[adj_twist + e] = m[adj_new + e]

        f.kick.adj(
            free, n, h, m, w, m, q, m, m0 + layout[AT.wrench], p, mass, p, inertia, m, adj_twist,
            m, adj_v, m, adj_w, m, adj_theta, m, adj_wrench, s, mass, s, inertia, s, p0 + layout[AT.gravity],
        )  # fmt: skip

        if ti.static(variant.driven):
            strength, damping = p0 + layout[AT.motor_strength], p0 + layout[AT.joint_damping]
            action, adj_action = m0 + layout[AT.action], m0 + layout[AT.adj_action]
            if ti.static(variant.controlled):
                action, adj_action = m0 + layout[AT.outputs], m0 + layout[AT.adj_outputs]
            f.motor.adj(
                free_links, free_parts, counts[5], m, x, m, q, m, v, m, w, m, action, p, strength,
                p, damping, m, adj_wrench, m, adj_x, m, adj_theta, m, adj_v, m, adj_w, m, adj_action,
                s, strength, s, damping,
            )  # fmt: skip
            adj_control = adj_action
            if ti.static(variant.controlled):
                inputs, hidden = m0 + layout[AT.inputs], m0 + layout[AT.hidden]
                adj_control, adj_hidden = m0 + layout[AT.adj_inputs], m0 + layout[AT.adj_hidden]
                f.network.adjoint(
                    m, m0 + layout[AT.weights], m, hidden, m, action, m, adj_action, m, adj_hidden, m, adj_control
                )
                add_weights(
                    m, inputs, hidden, adj_hidden, adj_action, s, p0 + layout[AT.hidden_weight],
                    p0 + layout[AT.hidden_bias], p0 + layout[AT.output_weight], p0 + layout[AT.output_bias],
                )  # fmt: skip
                f.sense.adj_sense(
                    n, m, inputs + counts[6], m, adj_control + counts[6], m, adj_x, m, adj_theta, m, adj_v, m, adj_w
                )
            for e in range(counts[6]):
                adj_u[u0 + e] = adj_u[u0 + e] + m[adj_control + e]
        if ti.static(variant.springs):
            stiffness, damping = p0 + layout[AT.spring_stiffness], p0 + layout[AT.spring_damping]
            length = p0 + layout[AT.spring_length]
            f.springs.adj(
                ends, anchors, counts[4], m, x, m, q, m, v, m, w, p, stiffness, p, damping, p, length,
                m, adj_wrench, m, adj_x, m, adj_theta, m, adj_v, m, adj_w, s, stiffness, s, damping, s, length,
            )  # fmt: skip
        if ti.static(variant.compliant):
            stiffness, damping = p0 + layout[AT.contact_stiffness], p0 + layout[AT.contact_damping]
            f.compliant.adj(
                body_a, body_b, M, threshold, m, gap, m, frame, m, v, m, w, p, stiffness, p, damping, p, friction,
                m, adj_wrench, m, adj_gap, m, adj_frame, m, adj_v, m, adj_w, s, stiffness, s, damping, s, friction,
            )  # fmt: skip
            f.contacts.adj(
                kind, body_a, body_b, constants, M, m, x, m, q, m, gap, m, frame, m, adj_gap, m, adj_frame,
                m, adj_x, m, adj_theta,
            )  # fmt: skip
        add_turns(m, q, n, m, adj_theta, m, adj_q)

    return back


@functools.cache
@no_type_check
def adj_drift_to_stage(variant: Variant) -> Any:
    """Return the adjoint of `drift_to_stage`: from adj_x ..., where forces act, to the start of the step.

    The two are connected by a drift of length h from q, v, w.
    """
    at, move, dim = rows.functions(variant.real, variant.dim), loops(variant).drift, variant.dim
    D, S, R = dim + at.spins, at.spins, at.rotations

    @ti.func
    def move_region(m: ti.template(), source, to, size):
        """Move a region of the workspace, and clear it."""
        for e in range(size):
            m[to + e] = m[source + e]
            m[source + e] = 0.0

    @ti.func
    def adj_drift(
        q: ti.template(), q0, v: ti.template(), v0, w: ti.template(), w0, p: ti.template(), p0, m: ti.template(), m0,
        layout: ti.template(), n, h, s: ti.template(),
    ):  # fmt: skip
        twist, shift = m0 + layout[AT.twist], m0 + layout[AT.shift]
        adj_twist, adj_shift = m0 + layout[AT.adj_twist], m0 + layout[AT.adj_shift]
        adj_x, adj_q = m0 + layout[AT.adj_x], m0 + layout[AT.adj_q]
        adj_v, adj_w = m0 + layout[AT.adj_v], m0 + layout[AT.adj_w]
        adj_stage_x, adj_stage_q = m0 + layout[AT.adj_stage_x], m0 + layout[AT.adj_stage_q]
        adj_stage_v, adj_stage_w = m0 + layout[AT.adj_stage_v], m0 + layout[AT.adj_stage_w]
        move_region(m, adj_x, adj_stage_x, n * dim)
        move_region(m, adj_q, adj_stage_q, n * R)
        move_region(m, adj_v, adj_stage_v, n * dim)
        move_region(m, adj_w, adj_stage_w, n * S)
        for i in range(n):
            at.put_vec(m, twist + i * D, at.vec_of(v, v0, i))
            at.put_spin(m, twist + i * D + dim, at.spin_of(w, w0, i))
        for e in range(n * D):
            m[shift + e] = 0.0
            m[adj_twist + e] = 0.0
            m[adj_shift + e] = 0.0
        move.adj(
            n, h, q, q0, m, twist, m, shift, p, p0 + layout[AT.inertia], m, adj_stage_x, m, adj_stage_q, m,
            adj_stage_v, m, adj_stage_w,
            m, adj_x, m, adj_q, m, adj_twist, m, adj_shift, s, p0 + layout[AT.inertia],
        )  # fmt: skip
        for i in range(n):
            at.add_vec_of(m, adj_v, i, at.linear(m, adj_twist, i))
            at.add_spin_of(m, adj_w, i, at.angular(m, adj_twist, i))

    return adj_drift


@functools.cache
@no_type_check
def adjoint_kernel(variant: Variant) -> Any:
    """Return the kernel that reverses `steps` steps of a segment.

    adj_x ... are [B, given, ...], for the last state or (given > 1) for each state. s [B, P] and adj_u [B, T, A] are
    accumulated; for the others see fused.forward_kernel.
    """
    real, dim = variant.real, variant.dim
    spins, rotations = (1, 1) if dim == 2 else (3, 4)
    to_stage, step = drift_to_stage(variant), velocity_step(variant)
    back, back_to_start = adj_velocity_step(variant), adj_drift_to_stage(variant)
    reals, ints = ti.types.ndarray(dtype=real, ndim=1), ti.types.ndarray(dtype=ti.i32, ndim=1)

    @ti.func
    def move(size, given: ti.template(), given0, m: ti.template(), source, to, is_stored):
        """Pass the adjoint of a state to the step before; if every state has its own, add it and store the sum."""
        for e in range(size):
            value = m[source + e]
            if is_stored:
                value += given[given0 + e]
                given[given0 + e] = value
            m[to + e] = value

    @kernel
    def adjoint(
        x: reals, q: reals, v: reals, w: reals, p: reals, u: reals, m: reals, order: ints, layout: ints, counts: ints,
        free: ints, bodies: ints, kind: ints, body_a: ints, body_b: ints, constants: reals, joint_links: ints,
        joint_parts: reals, free_links: ints, free_parts: reals, ends: ints, anchors: reals, h: real, span: real,
        threshold: real, gain: real, B: ti.i32, rows: ti.i32, T: ti.i32, P: ti.i32, size: ti.i32, first: ti.i32,
        steps: ti.i32, given: ti.i32, adj_x: reals, adj_q: reals, adj_v: reals, adj_w: reals, s: reals, adj_u: reals,
    ):  # fmt: skip
        ti.loop_config(serialize=not variant.parallel)
        for b in range(B):
            n, M, A, m0 = counts[0], counts[2], counts[6], b * size
            x1, q1 = m0 + layout[AT.adj_x_new], m0 + layout[AT.adj_q_new]
            v1, w1 = m0 + layout[AT.adj_v_new], m0 + layout[AT.adj_w_new]
            last = (b * given + given - 1) * n
            for e in range(n * dim):
                m[x1 + e] = adj_x[last * dim + e]
                m[v1 + e] = adj_v[last * dim + e]
            for e in range(n * rotations):
                m[q1 + e] = adj_q[last * rotations + e]
            for e in range(n * spins):
                m[w1 + e] = adj_w[last * spins + e]
            for k_back in range(steps):
                j = steps - 1 - k_back
                at, u0, dense = (b * rows + j) * n, (b * T + first + j) * A, given > 1
                for e in range(layout[CLEAR], layout[CLEAR + 1]):
                    m[m0 + e] = 0.0
                to_stage(
                    x, at * dim, q, at * rotations, v, at * dim, w, at * spins, p, b * P, m, m0, layout, n, h - span
                )
                step(
                    p, b * P, u, u0, m, m0, order, b * (M + COUNTS),
                    layout, counts, free, bodies, kind, body_a, body_b, constants,
                    joint_links, joint_parts, free_links, free_parts, ends, anchors, h, span, threshold, gain,
                )  # fmt: skip
                back(
                    p, b * P, m, m0, order, b * (M + COUNTS),
                    layout, counts, free, bodies, kind, body_a, body_b, constants,
                    joint_links, joint_parts, free_links, free_parts, ends, anchors, h, span, threshold, gain, s,
                    adj_u, u0,
                )  # fmt: skip
                if ti.static(variant.is_variational):
                    back_to_start(
                        q, at * rotations, v, at * dim, w, at * spins, p, b * P, m, m0, layout, n, h - span, s
                    )
                to = (b * given + ti.select(dense, j, 0)) * n
                move(n * dim, adj_x, to * dim, m, m0 + layout[AT.adj_x], x1, dense)
                move(n * rotations, adj_q, to * rotations, m, m0 + layout[AT.adj_q], q1, dense)
                move(n * dim, adj_v, to * dim, m, m0 + layout[AT.adj_v], v1, dense)
                move(n * spins, adj_w, to * spins, m, m0 + layout[AT.adj_w], w1, dense)
            if given == 1:
                for e in range(n * dim):
                    adj_x[b * n * dim + e] = m[x1 + e]
                    adj_v[b * n * dim + e] = m[v1 + e]
                for e in range(n * rotations):
                    adj_q[b * n * rotations + e] = m[q1 + e]
                for e in range(n * spins):
                    adj_w[b * n * spins + e] = m[w1 + e]

    return adjoint
