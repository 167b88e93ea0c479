"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor, ops

from .actuate import Actuate
from .external import ExternalForce
from .integrate import Integrate
from .model import MassSpring, Params, State, check_params
from .sense import Sense
from .spring import SpringForce


def step(model: MassSpring, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step of the model's integrator, under the control [A] of its actuators.

    With a controller, `control` is its pattern [waves], and the network computes the control of the actuators.
    """
    check_params({"mass": params.mass.data})
    position, velocity, rest_length = state.position, state.velocity, params.rest_length
    if model.network is not None and control is not None:
        sensed = Sense.apply(model, position, velocity)
        control = model.network(params, ops.concatenate([control, sensed]))
    if control is not None:
        rest_length = Actuate.apply(model, rest_length, params.amplitude, control)
    for stage in model.stages:
        spring_force = SpringForce.apply(model, position, velocity, params.stiffness, params.damping, rest_length)
        external_force = ExternalForce.apply(
            model, position, velocity, params.mass, params.gravity,
            params.ground_height, params.ground_stiffness, params.ground_friction,
        )  # fmt: skip
        position, velocity = Integrate.apply(
            model, stage, position, velocity, spring_force + external_force, params.mass, params.drag
        )
    return State(position, velocity)
