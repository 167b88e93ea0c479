"""The nested step, one node of the graph for each sub-step. Read this first, with rows.py."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simphys.autograd import Tensor, ops, tensor

from . import joint_tables
from .arrays import Rows
from .checks import COMPLIANT, check_params
from .compliant import CompliantContact
from .contact_rows import ContactRows
from .drift import Drift
from .geometry.contacts import Contacts
from .joint_constraints import JointRows
from .kick import Kick
from .mobility import Mobility
from .model import Params, RigidBodies, State
from .motor import JointForce
from .sense import Sense
from .solve import Solve
from .split_step import SplitStep
from .spring_damper import SpringDamper
from .time_of_impact import TimeOfImpact


class StepSolution(NamedTuple):
    """Results of a step before bodies move on; None if the step has no rows to solve for."""

    stage: State
    """State in which forces act."""
    twist: Tensor
    """New velocities, [n, D]."""
    shift: Tensor
    """Correction of positions for impulses that acted within the step, [n, D]."""
    before: Tensor
    """Velocities after forces and before impulses, [n, D]."""
    contacts: tuple[Tensor, Tensor] | None = None
    """Gap and frame of contacts (time_of_impact.py); under the compliant law those at the start of the step."""
    row: Tensor | None = None
    """Rows of the joints, then of the contacts, [N, W]."""
    target: Tensor | None = None
    limit: Tensor | None = None
    time: Tensor | None = None
    active: Tensor | None = None
    impulse: Tensor | None = None
    """Impulses of all phases (phases.py), [PHASES, N]."""


def step(model: RigidBodies, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: forces, then impulses of joints and contacts, then motion."""
    solution = solve_step(model, params, state, control)
    x, q, _, _ = solution.stage.tensors()
    return State(*Drift.apply(model, model.dt / 2, x, q, solution.twist, solution.shift, params.inertia))


def solve_step(model: RigidBodies, params: Params, state: State, control: Tensor | None) -> StepSolution:
    """Compute forces and impulses of a step, without the motion."""
    check_params(params.arrays())
    state = compute_stage(model, params, state)
    x, q, v, w = state.tensors()
    contacts = Contacts.apply(model, x, q) if model.law == COMPLIANT else None
    wrench = sum_forces(model, params, state, contacts, control)
    twist = Kick.apply(model, model.dt, v, w, q, wrench, params.mass, params.inertia, params.gravity)
    if not model.rows:
        return StepSolution(state, twist, tensor(np.zeros(twist.shape, x.dtype)), twist, contacts)
    gap, frame, attitude, time, active, first = TimeOfImpact.apply(model, x, q, twist)
    row, target, limit, bounce = ContactRows.apply(model, active, gap, frame, params.friction, params.restitution)
    x_impact, q_impact, fraction = SplitStep.apply(model, first, x, q, twist, time)
    if model.joints:
        joint_row, _ = JointRows.apply(model, x_impact, q_impact)
        _, joint_target = JointRows.apply(model, x, q)
        row, target = ops.concatenate([joint_row, row]), ops.concatenate([joint_target, target])
    mobilities = Mobility.apply(model, active, row, q, q_impact, attitude, params.mass, params.inertia)
    rows = Rows(row, target, limit, bounce, *mobilities)
    new, shift, impulse = Solve.apply(model, active, first, *rows, time, fraction, twist, v, w)
    return StepSolution(state, new, shift, twist, contacts or (gap, frame), row, target, limit, time, active, impulse)


def compute_stage(model: RigidBodies, params: Params, state: State) -> State:
    """Return the state in which forces act: in the middle of a step."""
    x, q, v, w = state.tensors()
    twist = ops.concatenate([v, w], axis=1)
    no_shift = tensor(np.zeros(twist.shape, twist.dtype))
    return State(*Drift.apply(model, model.dt / 2, x, q, twist, no_shift, params.inertia))


def sum_forces(
    model: RigidBodies,
    params: Params,
    state: State,
    contacts: tuple[Tensor, Tensor] | None,
    control: Tensor | None,
) -> Tensor:
    """Return the wrench [n, D] of all forces but gravity; `contacts` is the gap and frame of compliant contacts."""
    wrench = tensor(np.zeros((model.bodies, model.dim + model.spins), state.position.dtype))
    if contacts is not None:
        contact_params = (params.contact_stiffness, params.contact_damping, params.friction)
        wrench = wrench + CompliantContact.apply(
            model, *contacts, state.velocity, state.angular_velocity, *contact_params
        )
    if model.springs:
        spring_params = (params.spring_stiffness, params.spring_damping, params.spring_length)
        wrench = wrench + SpringDamper.apply(model, *state.tensors(), *spring_params)
    if joint_tables.tabulate_free_rows(model).rows:
        action = compute_actions(model, params, state, control)
        wrench = wrench + JointForce.apply(model, *state.tensors(), action, params.motor_strength, params.joint_damping)
    return wrench


def compute_actions(model: RigidBodies, params: Params, state: State, control: Tensor | None) -> Tensor:
    """Return the actions of the motors, [A]: the control, or the controller's output; 0 without a control."""
    if control is None:
        return tensor(np.zeros(len(model.motors), state.position.dtype))
    if model.network is None:
        return control
    return model.network(params, ops.concatenate([control, Sense.apply(model, *state.tensors())]))
