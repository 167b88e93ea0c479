"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor

from .advect import AdvectSmoke, AdvectVelocity
from .buoyancy import Buoyancy
from .diffuse import Diffuse
from .model import Params, Smoke, State
from .obstacle import Obstruct
from .project import Project
from .sides import ApplySides


def step(model: Smoke, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: advect velocity, apply forces, project, advect smoke."""
    velocity = AdvectVelocity.apply(model, state.velocity, params.boundary_velocity)
    velocity = Diffuse.apply(model, velocity, params.viscosity, params.boundary_velocity)
    velocity = Buoyancy.apply(model, velocity, state.smoke, params.buoyancy)
    force = tensor(np.zeros(model.dim))
    if model.has_obstacle:
        velocity, force = Obstruct.apply(model, velocity, params.obstacle)
    if not model.is_periodic:
        velocity = ApplySides.apply(model, velocity, params.boundary_velocity)
    velocity = Project.apply(model, velocity)
    smoke = AdvectSmoke.apply(model, state.smoke, velocity, params.boundary_smoke) + model.dt * params.smoke_rate
    return State(velocity, smoke, force)
