"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

import math

from simphys.autograd import Tensor

from ..integrators import make_zeros, rk4
from .acceleration import Acceleration
from .midpoint import MidpointRate
from .model import Chain, Params, State
from .momentum import Momentum, Rate


def step(model: Chain, params: Params, state: State, torque: Tensor | None = None) -> State:
    """Advance `state` by one time step of the model's integrator, under motor torques [n] [N m] if there are any."""
    angle, rate, h = state.angle, state.rate, model.dt
    if torque is None:
        torque = make_zeros(model.links)
    if model.integrator == "rk4":

        def slopes(angle: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
            return rate, Acceleration.apply(model, angle, rate, torque, *params.tensors())

        return State(*rk4(slopes, angle, rate, h))
    inertia = params.length, params.mass
    momentum = Momentum.apply(model, angle, rate, *inertia)
    midpoint_rate = MidpointRate.apply(model, rate, angle, momentum, torque, *params.tensors(), h / 2, math.nan)
    middle = angle + h / 2 * midpoint_rate
    momentum = 2 * Momentum.apply(model, middle, midpoint_rate, *inertia) - momentum
    angle = angle + h * midpoint_rate
    return State(angle, Rate.apply(model, angle, momentum, *inertia))
