"""The nested step: one node of the graph for each sub-step. Read this first."""

from __future__ import annotations

import numpy as np

from simphys.autograd import Tensor, tensor

from ..integrators import check_params, rk4
from .acceleration import Acceleration
from .damp import Damp
from .drift import Drift
from .model import Params, Spherical, State, check_direction
from .sphere import ProjectToSphere

LEVI_CIVITA = np.zeros((3, 3, 3))
for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    LEVI_CIVITA[i, j, k], LEVI_CIVITA[i, k, j] = 1.0, -1.0


def step(model: Spherical, params: Params, state: State, torque: Tensor | None = None) -> State:
    """Advance `state` by one time step of the model's integrator, under a torque [3] [N m] if there is one."""
    check_params({"length": params.length.data, "mass": params.mass.data})
    check_direction(state.direction.data)
    direction, rate, h = state.direction, state.rate, model.dt
    if model.integrator == "rk4":

        def slopes(direction: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
            return cross(rate, direction), Acceleration.apply(direction, rate, torque, *params.tensors())

        return State(*ProjectToSphere.apply(*rk4(slopes, direction, rate, h)))
    midpoint_rate = rate + h / 2 * Acceleration.apply(direction, rate, torque, *params.tensors())
    direction = Drift.apply(direction, midpoint_rate, h)
    still = tensor(np.zeros_like(rate.data))
    rate = midpoint_rate + h / 2 * Acceleration.apply(direction, still, torque, *params.tensors())
    return State(direction, Damp.apply(h / 2, rate, params.length, params.mass, params.damping))


def cross(a: Tensor, b: Tensor) -> Tensor:
    """Cross product of vectors [3]."""
    return (tensor(LEVI_CIVITA, dtype=b.dtype) @ b) @ a
