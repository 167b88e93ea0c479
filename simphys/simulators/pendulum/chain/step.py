"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from ..integrators import check_params, rk4
from .acceleration import Acceleration
from .midpoint import MidpointRate
from .model import Chain, Params, State
from .momentum import Momentum, Rate


def step(model: Chain, params: Params, state: State, torque: Tensor | None = None) -> State:
    """Advance `state` by one time step of the model's integrator, under motor torques [n] [N m] if there are any."""
    check_params({"length": params.length.data, "mass": params.mass.data})
    angle, rate, h = state.angle, state.rate, model.dt
    if model.integrator == "rk4":

        def slopes(angle: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
            return rate, Acceleration.apply(model, angle, rate, torque, *params.tensors())

        return State(*rk4(slopes, angle, rate, h))
    momentum = Momentum.apply(model, angle, rate, params.length, params.mass)
    midpoint_rate = MidpointRate.apply(model, rate.detach(), angle, momentum, torque, *params.tensors())
    middle = angle + h / 2 * midpoint_rate
    momentum = 2 * Momentum.apply(model, middle, midpoint_rate, params.length, params.mass) - momentum
    angle = angle + h * midpoint_rate
    return State(angle, Rate.apply(model, angle, momentum, params.length, params.mass))
