"""The nested step, with one graph node for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from .actuate import Actuate
from .collider_motion import MoveColliders
from .constitutive import Coefficients, Respond
from .deformation import Deform
from .environment import build_environment, controlled_motion
from .g2p import GridToParticle
from .grid import GridVelocity
from .laws import LAW_PARAMETERS
from .model import MPM, Params, State
from .p2g import ParticleToGrid


def step(model: MPM, params: Params, state: State, control: Tensor | None = None) -> State:
    """Advance `state` by one time step; see `MPM` for the control."""
    coefficients = Coefficients.apply(model, *[getattr(params, name) for name in LAW_PARAMETERS])
    trial = Deform.apply(model, state.affine, state.deformation)
    deformation, plastic, stress = Respond.apply(model, trial, state.plastic, coefficients)
    if control is not None and model.actuators:
        stress = Actuate.apply(model, stress, deformation, control[: model.actuators])

    mass, momentum = ParticleToGrid.apply(
        model, state.position, state.velocity, state.affine, stress, params.mass, params.volume
    )
    node_velocity = GridVelocity.apply(model, mass, momentum, build_environment(model, params, state, control))
    position, velocity, affine = GridToParticle.apply(model, state.position, node_velocity)

    collider_position, collider_rotation = state.collider_position, state.collider_rotation
    if model.colliders:
        collider_position, collider_rotation = MoveColliders.apply(
            model, collider_position, collider_rotation, *controlled_motion(model, params, control)
        )
    return State(position, velocity, affine, deformation, plastic, collider_position, collider_rotation)
