"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from ..integrators import check_params, rk4
from .acceleration import Acceleration
from .midpoint import MiddleRate
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
    middle_rate = MiddleRate.apply(model, rate.detach(), angle, momentum, torque, *params.tensors())
    middle = angle + h / 2 * middle_rate
    momentum = 2 * Momentum.apply(model, middle, middle_rate, params.length, params.mass) - momentum
    angle = angle + h * middle_rate
    return State(angle, Rate.apply(model, angle, momentum, params.length, params.mass))
