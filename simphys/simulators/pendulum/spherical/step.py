"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

from simphys.autograd import Tensor

from ..integrators import make_zeros, rk4
from .acceleration import Acceleration
from .damp import Damp
from .drift import Drift
from .model import Params, Spherical, State
from .sphere import ProjectToSphere
from .turn import Turn


def step(model: Spherical, params: Params, state: State, torque: Tensor | None = None) -> State:
    """Advance `state` by one time step of the model's integrator, under a torque [3] [N m] if there is one."""
    direction, rate, h = state.direction, state.rate, model.dt
    still = make_zeros(3)
    if torque is None:
        torque = still
    if model.integrator == "rk4":

        def slopes(direction: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
            acceleration = Acceleration.apply(model, direction, rate, torque, *params.tensors())
            return Turn.apply(model, rate, direction), acceleration

        return State(*ProjectToSphere.apply(model, *rk4(slopes, direction, rate, h)))
    midpoint_rate = rate + h / 2 * Acceleration.apply(model, direction, rate, torque, *params.tensors())
    direction = Drift.apply(model, direction, midpoint_rate, h)
    rate = midpoint_rate + h / 2 * Acceleration.apply(model, direction, still, torque, *params.tensors())
    return State(direction, Damp.apply(model, rate, params.length, params.mass, params.damping, h / 2))
