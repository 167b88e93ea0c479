"""Code shared by chains and the spherical pendulum: names of integrators, the Runge-Kutta method, checks, advice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Arrays
from simphys.simulator.physical import require_positive

INTEGRATORS = ("rk4", "variational")

NODES = (0.0, 0.5, 0.5, 1.0)
"""Nodes of the classical Runge-Kutta method, in time steps: each stage starts from the state at the beginning of the
step and follows the slope of the stage before."""
WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""Weights of the stages' slopes in the step."""

Slopes = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def rk4(slopes: Slopes, x: Tensor, v: Tensor, h: float) -> tuple[Tensor, Tensor]:
    """Advance d(x, v)/dt = slopes(x, v) by a step of length h, with order 4 (Kutta 1901)."""
    y = (x, v)
    new, k = y, None
    for stage_node, weight in zip(NODES, WEIGHTS, strict=True):
        at = y if k is None else (x + stage_node * h * k[0], v + stage_node * h * k[1])
        k = slopes(*at)
        new = (new[0] + weight * h * k[0], new[1] + weight * h * k[1])
    return new


def make_zeros(count: int) -> Tensor:
    """Make zeros for torques that there are none of, and for rates of bodies at rest."""
    return tensor(np.zeros(count, runtime.real_dtype()))


def require_integrator(source: str, found: str) -> None:
    """Raise InputError unless `found` is one of the integrators."""
    if found not in INTEGRATORS:
        raise InputError(source, f"one of {INTEGRATORS}", found, "Choose one of these.")


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless every length and every mass is positive and finite."""
    require_positive("pendulum", params, {"length": "m", "mass": "kg"})


def advice(dt: float, *, turn: float, swing: float, fading: float) -> str:
    """Compare a time step with the fastest rotation [rad/s], swing [rad/s] and decay [1/s] that it has to resolve."""
    fastest = max(turn, swing, fading)
    what = {turn: "rotation", swing: "swing", fading: "decay by damping"}[fastest]
    return (
        f"The fastest {what} has a rate of {fastest:.2g} /s: time steps must be short compared with {1 / fastest:.2g} "
        f"s, but dt is {dt:.2g} s. Lower dt."
    )
