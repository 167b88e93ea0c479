"""The nested step, one node of the graph for each sub-step. Read this first, with rows.py."""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.substep import concatenate

from .checks import COMPLIANT
from .contacts.compliant import CompliantContact, ContactWrench
from .contacts.contact_rows import ContactRows
from .contacts.distances import Contacts
from .contacts.time_of_impact import TimeOfImpact
from .joints.joint_constraints import Arms, JointRows
from .joints.motor import JointForce, JointWrench
from .joints.spring_damper import SpringDamper, SpringWrench
from .model import Params, RigidBodies, State
from .motion.drift import Drift, FreeDrift
from .motion.kick import Kick
from .motion.sense import Centre, ControllerInputs, SenseBodies, SenseGoal
from .solver.mobility import Mobility
from .solver.solve import Solve
from .solver.split_step import SplitStep

AllRows = concatenate("joint_row", "contact_row", result="row")
AllTargets = concatenate("joint_target", "contact_target", result="target")


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
    target: Tensor | None = None
    limit: Tensor | None = None
    time: Tensor | None = None
    active: Tensor | None = None
    impulse: Tensor | None = None
    """Impulses of all phases (phases.py), [PHASES, N]."""


class Contact(NamedTuple):
    """Contacts of a step under the impulse law, with what an impact makes of it."""

    gap: Tensor
    frame: Tensor
    attitude: Tensor
    time: Tensor
    active: Tensor
    first: Tensor
    x_impact: Tensor
    q_impact: Tensor
    fraction: Tensor


def step(model: RigidBodies, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: forces, then impulses of joints and contacts, then motion."""
    solution = solve_step(model, params, state, control)
    x, q, _, _ = solution.stage.tensors()
    return State(*Drift.apply(model, model.dt / 2, x, q, solution.twist, solution.shift, params.inertia))


def solve_step(model: RigidBodies, params: Params, state: State, control: Tensor | None) -> StepSolution:
    """Compute forces and impulses of a step, without the motion."""
    state = compute_stage(model, params, state)
    x, q, v, w = state.tensors()
    contacts = None
    if model.law == COMPLIANT and model.candidates.count:
        contacts = Contacts.apply(model, x, q, params.centre_of_mass)
    wrench = sum_forces(model, params, state, contacts, control)
    twist = Kick.apply(model, model.dt, v, w, q, wrench, params.mass, params.inertia, params.gravity)
    if not model.rows:
        return StepSolution(state, twist, zeros(model.bodies, model.freedoms), twist, contacts)
    contact = find_contacts(model, params, x, q, twist)
    row, target, limit, bounce = list_rows(model, params, x, q, contact)
    poses = contact.active, row, q, contact.q_impact, contact.attitude
    jacobian, response = Mobility.apply(model, *poses, params.mass, params.inertia)
    rows = contact.active, contact.first, jacobian, response, target, limit, bounce
    new, shift, impulse = Solve.apply(model, *rows, contact.time, contact.fraction, twist, v, w)
    distances = contacts or (contact.gap, contact.frame)
    return StepSolution(state, new, shift, twist, distances, target, limit, contact.time, contact.active, impulse)


def compute_stage(model: RigidBodies, params: Params, state: State) -> State:
    """Return the state in which forces act: in the middle of a step."""
    x, q, w = FreeDrift.apply(model, model.dt / 2, *state.tensors(), params.inertia)
    return State(x, q, state.velocity, w)


def find_contacts(model: RigidBodies, params: Params, x: Tensor, q: Tensor, twist: Tensor) -> Contact:
    """Find the contacts of a step under the impulse law, at the poses x and q in which forces act."""
    if not model.contacts:
        nothing, no_impact, whole = zeros(0), zeros(model.bodies) - 1.0, zeros(model.bodies) + 1.0
        empty = nothing, zeros(0, 3 * model.dim), zeros(0, 2 * model.rotations), nothing, nothing
        return Contact(*empty, no_impact, x, q, whole)
    gap, frame, attitude, time, active, first = TimeOfImpact.apply(model, x, q, twist, params.centre_of_mass)
    return Contact(gap, frame, attitude, time, active, first, *SplitStep.apply(model, first, x, q, twist, time))


def list_rows(
    model: RigidBodies, params: Params, x: Tensor, q: Tensor, contact: Contact
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return rows and targets of joints and contacts, and limits and bounces of contacts."""
    gain = model.joint_correction / model.dt
    arms = find_arms(model, params) if model.joints else None
    if not model.contacts:
        return *JointRows.apply(model, gain, x, q, arms), zeros(0), zeros(0)
    given = contact.gap, contact.frame, params.friction, params.restitution
    row, target, limit, bounce = ContactRows.apply(model, contact.active, model.dt, model.rest_speed, *given)
    if model.joints:
        joint_row, _ = JointRows.apply(model, gain, contact.x_impact, contact.q_impact, arms)
        _, joint_target = JointRows.apply(model, gain, x, q, arms)
        row, target = AllRows.apply(model, joint_row, row), AllTargets.apply(model, joint_target, target)
    return row, target, limit, bounce


def sum_forces(
    model: RigidBodies,
    params: Params,
    state: State,
    contacts: tuple[Tensor, Tensor] | None,
    control: Tensor | None,
) -> Tensor:
    """Return the wrench [n, D] of all forces but gravity; `contacts` is the gap and frame of compliant contacts."""
    wrenches: list[Tensor] = []
    if contacts is not None:
        contact_params = (params.contact_stiffness, params.contact_damping, params.friction)
        inputs = (*contacts, state.velocity, state.angular_velocity, *contact_params)
        wrenches += [ContactWrench.apply(model, *CompliantContact.apply(model, model.slip_speed, *inputs))]
    if model.springs:
        spring_params = (
            params.spring_stiffness,
            params.spring_damping,
            params.spring_length,
            *hold_springs(model, params),
        )
        wrenches += [SpringWrench.apply(model, *SpringDamper.apply(model, *state.tensors(), *spring_params))]
    if len(model.free_rows.a):
        action = compute_actions(model, params, state, control)
        friction = params.joint_dry_friction, params.joint_transition_rate
        if not model.joint_friction:
            friction = zeros(len(model.joints)), zeros(len(model.joints)) + 1.0
        joint_params = (action, params.motor_strength, params.joint_damping, *friction, find_arms(model, params))
        wrenches += [JointWrench.apply(model, *JointForce.apply(model, *state.tensors(), *joint_params))]
    return functools.reduce(operator.add, wrenches) if wrenches else zeros(model.bodies, model.freedoms)


def find_arms(model: RigidBodies, params: Params) -> Tensor:
    """Return where each joint lies from the centres of mass of its bodies, [J, 2 dim]."""
    if not model.free_anchors:
        return tensor(model.joint_ends.arms.astype(runtime.real_dtype()))
    arms: Tensor = Arms.apply(model, params.joint_anchor_a, params.joint_anchor_b, params.centre_of_mass)
    return arms


def hold_springs(model: RigidBodies, params: Params) -> tuple[Tensor, Tensor, Tensor]:
    """Return both anchors of each spring-damper [K, dim] and the centre of mass of each body [n, dim], in the frames of
    the bodies."""
    if model.free_anchors:
        return params.spring_anchor_a, params.spring_anchor_b, params.centre_of_mass
    ends = [tensor(each.astype(runtime.real_dtype())) for each in model.spring_ends[2:4]]
    return ends[0], ends[1], zeros(model.bodies, model.dim)


def compute_actions(model: RigidBodies, params: Params, state: State, control: Tensor | None) -> Tensor:
    """Return the actions of the motors, [A]: the control, or the controller's output; 0 without a control."""
    if control is None:
        return zeros(len(model.motors))
    if model.network is None:
        return control
    assert model.controller is not None, "a network belongs to one"
    centre = Centre.apply(model, state.position, 1 / model.bodies)
    sensed = SenseBodies.apply(model, *state.tensors(), centre, model.controller.scale)
    offset = SenseGoal.apply(model, centre, np.array(model.controller.goal, runtime.real_dtype()))
    actions: Tensor = model.network(params, ControllerInputs.apply(model, control, *sensed, offset))
    return actions


def zeros(*shape: int) -> Tensor:
    """Make an array of zeros that no gradient flows to."""
    return tensor(np.zeros(shape, runtime.real_dtype()))
