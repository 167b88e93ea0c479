"""The nested step, one node of the graph for each sub-step. Read this first, with rows.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simphys.autograd import Tensor, ops, tensor

from . import joint_table
from .checks import COMPLIANT, VARIATIONAL, check_params
from .compliant import CompliantContact
from .contact_rows import ContactRows
from .drift import Drift
from .geometry.contacts import Contacts
from .joint_rows import JointRows
from .kick import Kick
from .meeting import Meeting
from .mobility import Mobility
from .model import Params, RigidBodies, State
from .motor import JointForce
from .parting import Parting
from .sense import Sense
from .solve import Solve
from .spring_damper import SpringDamper


class Solved(NamedTuple):
    """Results of a step before bodies move on; None if the step has no rows to solve for."""

    acting: State
    """State in which forces act."""
    twist: Tensor
    """New velocities, [n, D]."""
    shift: Tensor
    """Correction of positions for impulses that acted within the step, [n, D]."""
    before: Tensor
    """Velocities after forces and before impulses, [n, D]."""
    near: tuple[Tensor, Tensor] | None = None
    """Gap and frame of contacts (meeting.py); under the compliant law those at the start of the step."""
    row: Tensor | None = None
    """Rows of the joints, then of the contacts, [N, W]."""
    target: Tensor | None = None
    limit: Tensor | None = None
    time: Tensor | None = None
    active: Tensor | None = None
    impulse: Tensor | None = None
    """Impulses of all phases (acts.py), [ACTS, N]."""


def step(model: RigidBodies, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: forces, then impulses of joints and contacts, then motion."""
    made = solved(model, params, state, control)
    x, q, _, _ = made.acting.tensors()
    return State(*Drift.apply(model, model.span, x, q, made.twist, made.shift, params.inertia))


def solved(model: RigidBodies, params: Params, state: State, control: Tensor | None) -> Solved:
    """Compute forces and impulses of a step, without the motion."""
    check_params(params.arrays())
    state = acting(model, params, state)
    x, q, v, w = state.tensors()
    near = Contacts.apply(model, x, q) if model.law == COMPLIANT else None
    wrench = forces(model, params, state, near, control)
    twist = Kick.apply(model, model.dt, v, w, q, wrench, params.mass, params.inertia, params.gravity)
    if not model.rows:
        return Solved(state, twist, tensor(np.zeros(twist.shape, x.dtype)), twist, near)
    gap, frame, facing, time, active, first = Meeting.apply(model, x, q, twist)
    row, target, limit, bounce = ContactRows.apply(model, active, gap, frame, params.friction, params.restitution)
    x_then, q_then, part = Parting.apply(model, first, x, q, twist, time)
    if model.joints:
        joint_row, _ = JointRows.apply(model, x_then, q_then)
        _, joint_target = JointRows.apply(model, x, q)
        row, target = ops.concatenate([joint_row, row]), ops.concatenate([joint_target, target])
    moved = Mobility.apply(model, active, row, q, q_then, facing, params.mass, params.inertia)
    new, shift, impulse = Solve.apply(
        model, active, first, row, target, limit, bounce, *moved, time, part, twist, v, w, q, params.inertia
    )  # fmt: skip
    return Solved(state, new, shift, twist, near or (gap, frame), row, target, limit, time, active, impulse)


def acting(model: RigidBodies, params: Params, state: State) -> State:
    """Return the state in which forces act: at the start or in the middle of a step."""
    if model.integrator != VARIATIONAL:
        return state
    x, q, v, w = state.tensors()
    twist = ops.concatenate([v, w], axis=1)
    still = tensor(np.zeros(twist.shape, twist.dtype))
    return State(*Drift.apply(model, model.dt - model.span, x, q, twist, still, params.inertia))


def forces(
    model: RigidBodies, params: Params, state: State, near: tuple[Tensor, Tensor] | None, control: Tensor | None
) -> Tensor:
    """Return the wrench [n, D] of all forces but gravity; `near` is the gap and frame of compliant contacts."""
    wrench = tensor(np.zeros((model.bodies, model.dim + model.spins), state.position.dtype))
    if near is not None:
        of_contacts = (params.contact_stiffness, params.contact_damping, params.friction)
        wrench = wrench + CompliantContact.apply(model, *near, state.velocity, state.angular_velocity, *of_contacts)
    if model.springs:
        of_springs = (params.spring_stiffness, params.spring_damping, params.spring_length)
        wrench = wrench + SpringDamper.apply(model, *state.tensors(), *of_springs)
    if joint_table.free(model).rows:
        action = actions(model, params, state, control)
        wrench = wrench + JointForce.apply(model, *state.tensors(), action, params.motor_strength, params.joint_damping)
    return wrench


def actions(model: RigidBodies, params: Params, state: State, control: Tensor | None) -> Tensor:
    """Return the actions of the motors, [A]: the control, or the controller's output; 0 without a control."""
    if control is None:
        return tensor(np.zeros(len(model.motors), state.position.dtype))
    if model.network is None:
        return control
    return model.network(params, ops.concatenate([control, Sense.apply(model, *state.tensors())]))
