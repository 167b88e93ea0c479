"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .model import Charges, Params, State
from .motion import ChargeForce, Drift, FieldForce, Kick


def step(model: Charges, params: Params, state: State, field: Tensor | None = None) -> State:
    """Advance `state` by one time step of the model's integrator, in an external field [dim] [N/C] if there is one."""
    position, velocity = state.position, state.velocity
    for stage in model.stages:
        force = ChargeForce.apply(model, position, params.charge, params.coupling, params.softening)
        if field is not None:
            force = force + FieldForce.apply(model, params.charge, field)
        velocity = Kick.apply(model, velocity, force, params.mass, stage.kick)
        if stage.drift:
            position = Drift.apply(model, position, velocity, stage.drift)
    return State(position, velocity)
