"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .advect import AdvectSmoke, AdvectVelocity
from .buoyancy import Buoyancy
from .diffuse import Diffuse
from .model import Params, Smoke, State
from .obstacle import NoDrag, obstruct
from .project import Project
from .sides import ApplySides
from .source import AddSmoke


def step(model: Smoke, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step: advect velocity, apply forces, project, advect smoke."""
    velocity = AdvectVelocity.apply(model, state.velocity, params.boundary_velocity)
    velocity = Diffuse.apply(model, velocity, params.viscosity, params.boundary_velocity)
    velocity = Buoyancy.apply(model, velocity, state.smoke, params.buoyancy)
    if model.has_obstacle:
        velocity, force = obstruct(model, velocity, params.obstacle)
    else:
        force = NoDrag.apply(model, state.force)
    if not model.is_periodic:
        velocity = ApplySides.apply(model, velocity, params.boundary_velocity)
    velocity = Project.apply(model, velocity)
    smoke = AdvectSmoke.apply(model, state.smoke, velocity, params.boundary_smoke)
    smoke = AddSmoke.apply(model, smoke, params.smoke_rate, model.dt)
    return State(velocity, smoke, force)
