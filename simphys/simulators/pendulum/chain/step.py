"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

import math

from simphys.autograd import Tensor

from ..integrators import make_zeros, rk4
from .acceleration import Acceleration
from .friction import BrakedRate, SlowDown
from .loads import TurnJoints
from .midpoint import MidpointRate
from .model import Chain, Params, State
from .moments import Moments
from .momentum import Momentum, Rate
from .shake import Shake
from .shaken import ShakenMidpointRate


def step(model: Chain, params: Params, state: State, torque: Tensor | None = None) -> State:
    """Advance `state` by one time step of the model's integrator, under motor torques [n] [N m] if there are any.

    If the pivot moves, its acceleration [2] [m/s^2] takes the place of the torques.
    """
    angle, rate, h = state.angle, state.rate, model.dt
    acceleration = torque if model.moving_pivot else None
    if torque is None or model.moving_pivot:
        torque = make_zeros(model.links)
    inertia = params.length, *Moments.apply(model, params.length, params.mass, params.centre, params.inertia)
    friction = params.dry_friction, params.transition_rate, params.drag
    gravity = params.gravity, params.tilt
    if model.integrator == "rk4":

        def slopes(angle: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
            load = TurnJoints.apply(model, rate, torque, params.damping)
            if model.friction:
                load = load + SlowDown.apply(model, rate, *friction)
            if acceleration is not None:
                load = load + Shake.apply(model, angle, inertia[1], acceleration)
            return rate, Acceleration.apply(model, angle, rate, load, *inertia, *gravity)

        return State(*rk4(slopes, angle, rate, h))
    momentum = Momentum.apply(model, angle, rate, *inertia)
    if model.friction:  # half of it before the step of the motion, half of it after
        momentum = momentum + h / 2 * SlowDown.apply(model, rate, *friction)
    move = MidpointRate if acceleration is None else ShakenMidpointRate
    driven = torque if acceleration is None else acceleration
    midpoint_rate = move.apply(
        model, rate, angle, momentum, driven, *inertia, *gravity, params.damping, h / 2, math.nan
    )
    middle = angle + h / 2 * midpoint_rate
    momentum = 2 * Momentum.apply(model, middle, midpoint_rate, *inertia) - momentum
    angle = angle + h * midpoint_rate
    if model.friction:
        return State(angle, BrakedRate.apply(model, angle, momentum, *inertia, *friction, h / 2, math.nan))
    return State(angle, Rate.apply(model, angle, momentum, *inertia))
