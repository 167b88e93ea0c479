"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

import math

from simphys.autograd import Tensor

from .actuate import FibreStress
from .collider_motion import MoveColliders
from .constitutive import Coefficients, respond
from .control import controlled_motion
from .deformation import Deform
from .g2p import GridToParticle, Move
from .grid import FreeVelocity, constrain
from .laws import LAW_PARAMETERS
from .model import MPM, Params, State
from .p2g import Momentum, ParticleToGrid


def step(model: MPM, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step; see `MPM` for the control."""
    h, dx = model.dt, model.spacing
    coefficients = Coefficients.apply(model, *[getattr(params, name) for name in LAW_PARAMETERS])
    trial = Deform.apply(model, state.affine, state.deformation, h)
    deformation, plastic, stress = respond(model, trial, state.plastic, coefficients)
    if control is not None and model.actuators:
        stress = stress + FibreStress.apply(model, deformation, model.fibres, control)

    share = Momentum.apply(model, state.velocity, state.affine, stress, params.mass, params.volume, h, dx)
    mass, momentum = ParticleToGrid.apply(model, state.position, params.mass, *share)
    free = FreeVelocity.apply(model, mass, momentum, params.gravity, model.mass_floor, h)
    poses, motion = (state.collider_position, state.collider_rotation), controlled_motion(model, params, control)
    node_velocity = constrain(model, free, params.wall_friction, (*poses, *motion, params.collider_friction))
    velocity, moment = GridToParticle.apply(model, state.position, node_velocity)
    position, affine = Move.apply(model, state.position, velocity, moment, h, dx, *model.ends, math.nan)

    if model.colliders:
        poses = MoveColliders.apply(model, *poses, *motion, h)
    return State(position, velocity, affine, deformation, plastic, *poses)
