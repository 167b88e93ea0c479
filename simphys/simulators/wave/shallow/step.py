"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .advance import advance
from .fluxes import add_up_height, compute_fluxes
from .friction import damp_velocity
from .model import STAGES, Params, ShallowWater, State


def step(model: ShallowWater, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: half a step of friction, waves in three stages, another half (Strang 1968)."""
    elevation = state.elevation
    height = add_up_height(model, elevation, params.depth)
    velocity = damp_velocity(model, state.velocity, height, params.friction)
    start = elevation, velocity
    for part in STAGES:
        fluxes = compute_fluxes(model, elevation, velocity, height, params.gravity)
        elevation, velocity = advance(model, part, *start, fluxes)
        height = add_up_height(model, elevation, params.depth)
    return State(elevation, damp_velocity(model, velocity, height, params.friction))
