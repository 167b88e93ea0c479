"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from typing import Any

from simphys.autograd import Tensor

from .actuate import Actuate
from .air import Resist
from .external import GroundForce, NormalForce, Rub, Weight
from .integrate import Damp, Drift, Kick, KickFactors, Predict
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

    def pull(x: Any, v: Any) -> Any:
        return SpringForce.apply(model, x, v, params.stiffness, params.damping, rest_length)

    def resist(v: Any, time: float) -> Any:
        return Resist.apply(model, v, params.mass, params.air_drag, time) if model.air else v

    first, *second = [
        (stage, *KickFactors.apply(model, params.drag, params.mass, stage.kick, stage.damp, model.free))
        for stage in model.stages
    ]
    velocity = resist(velocity, first[0].kick)
    if not second:
        stage, decay, impulse = first
        force = pull(position, velocity) + GroundForce.apply(model, position, velocity, *ground) + weight
        velocity = Kick.apply(model, velocity, force, decay, impulse)
        return State(Drift.apply(model, position, velocity, stage.drift), velocity)

    stage, decay, impulse = first
    velocity = Rub.apply(model, position, velocity, params.mass, *ground, stage.kick)
    damped = Damp.apply(model, velocity, decay)
    force = pull(position, damped) + NormalForce.apply(model, position, *ground[:2]) + weight
    velocity = Kick.apply(model, velocity, force, decay, impulse)
    position = Drift.apply(model, position, velocity, stage.drift)
    stage, decay, impulse = second[0]
    predicted = Predict.apply(model, damped, velocity)
    force = pull(position, predicted) + NormalForce.apply(model, position, *ground[:2]) + weight
    velocity = Kick.apply(model, velocity, force, decay, impulse)
    velocity = Rub.apply(model, position, velocity, params.mass, *ground, stage.kick)
    return State(position, resist(velocity, stage.kick))


def sense(model: MassSpring, state: State, pattern: Tensor) -> Any:
    """Collect the inputs of the network."""
    controller = model.controller
    assert controller is not None, "only a controller senses"
    centre = Centre.apply(model, state.position, 1 / model.nodes)
    relative, motion = SenseNodes.apply(model, state.position, state.velocity, centre, controller.scale)
    return Sense.apply(model, pattern, relative, motion, SenseGoal.apply(model, centre, model.goal))
