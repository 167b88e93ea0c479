"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .conduction import Conduction, Couple, Relax, SideConduction, Warm
from .model import Heat, Params, State


def step(model: Heat, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step; `control` [2 dim] has the temperatures of the sides during it."""
    heating = Conduction.apply(model, state.temperature, params.conductivity, model.spacing)
    if model.open_sides:
        outside = params.side_temperature if control is None else control
        heating = heating + SideConduction.apply(model, state.temperature, params.conductivity, outside, model.spacing)
    if model.theta == 0:
        return State(Warm.apply(model, state.temperature, heating, params.source, params.heat_capacity, model.dt))
    matrix = Couple.apply(model, params.conductivity, params.heat_capacity)
    return State(state.temperature + Relax.apply(model, heating + params.source, *matrix))
