"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .advance import Advance
from .fluxes import Fluxes
from .friction import Friction
from .model import STAGES, Params, ShallowWater, State


def step(model: ShallowWater, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: half a step of friction, waves in three stages, another half (Strang 1968)."""
    depth, gravity = params.depth, params.gravity
    elevation, velocity = (
        state.elevation,
        Friction.apply(model, state.velocity, state.elevation, depth, params.friction),
    )
    start = elevation, velocity
    for part in STAGES:
        fluxes = Fluxes.apply(model, elevation, velocity, depth, gravity)
        elevation, velocity = Advance.apply(model, part, *start, *fluxes)
    return State(elevation, Friction.apply(model, velocity, elevation, depth, params.friction))
