"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from typing import Any

from simphys.autograd import Tensor

from .actuate import Actuate
from .external import GroundForce, Weight
from .integrate import Drift, Kick, KickFactors
from .model import MassSpring, Params, State
from .sense import Centre, Sense, SenseGoal, SenseNodes
from .spring import SpringForce


def step(model: MassSpring, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step of the model's integrator, under the control [A] of its actuators.

    With a controller, `control` is its pattern [waves], and the network computes the control of the actuators.
    """
    position, velocity, rest_length = state.position, state.velocity, params.rest_length
    if control is not None and model.network is not None:
        control = model.network(params, sense(model, state, control))
    if control is not None:
        rest_length = Actuate.apply(model, rest_length, params.amplitude, control)
    ground = params.ground_height, params.ground_stiffness, params.ground_friction
    weight = Weight.apply(model, params.mass, params.gravity)
    for stage in model.stages:
        spring_force = SpringForce.apply(model, position, velocity, params.stiffness, params.damping, rest_length)
        ground_force = GroundForce.apply(model, position, velocity, *ground)
        decay, impulse = KickFactors.apply(model, params.drag, params.mass, stage.kick, stage.damp, model.free)
        velocity = Kick.apply(model, velocity, spring_force + ground_force + weight, decay, impulse)
        if stage.drift:
            position = Drift.apply(model, position, velocity, stage.drift)
    return State(position, velocity)


def sense(model: MassSpring, state: State, pattern: Tensor) -> Any:
    """Collect the inputs of the network."""
    controller = model.controller
    assert controller is not None, "only a controller senses"
    centre = Centre.apply(model, state.position, 1 / model.nodes)
    relative, motion = SenseNodes.apply(model, state.position, state.velocity, centre, controller.scale)
    return Sense.apply(model, pattern, relative, motion, SenseGoal.apply(model, centre, model.goal))
