"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .density import Advance, Continuity, Diffusion, Pressure
from .gauges import Depth
from .model import SPH, Params, State
from .motion import Drift, Kick, PairAcceleration


def step(model: SPH, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: half a drift, half of the continuity, a kick, and the same again backward.

    Symmetric, so of second order in time, but for viscosity and diffusion, whose numbers are small: of first order.
    """
    x, v, rho, h = state.position, state.velocity, state.density, model.dt
    rho0, c, gravity = params.rest_density, params.sound_speed, params.gravity
    kernel = model.strength, model.smoothing
    wall = params.viscosity, params.slip_length, gravity, model.walls, model.volume, model.wall_distance

    x = Drift.apply(model, x, v, h / 2)
    rho = Advance.apply(model, rho, Continuity.apply(model, x, v, rho0, model.volume, *kernel), model.fluid, h / 2)
    if model.diffusion:
        mixing = Diffusion.apply(model, x, rho, rho0, c, gravity, model.walls, model.mixing, *kernel)
        rho = Advance.apply(model, rho, mixing, model.fluid, h)
    y = Pressure.apply(model, rho, rho0, c, model.exponent, model.background)
    v = Kick.apply(model, v, PairAcceleration.apply(model, x, v, y, rho0, *wall, *kernel), gravity, model.fluid, h)
    rho = Advance.apply(model, rho, Continuity.apply(model, x, v, rho0, model.volume, *kernel), model.fluid, h / 2)
    x = Drift.apply(model, x, v, h / 2)
    depth = Depth.apply(model, x, *model.gauge_numbers) if model.gauges else state.depth
    return State(x, v, rho, depth)
