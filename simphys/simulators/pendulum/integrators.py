"""Code shared by chains and the spherical pendulum: names of integrators, the Runge-Kutta method, checks, advice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.numerics.drift import drift
from simphys.substep import per_element

INTEGRATORS = ("rk4", "variational")

NODES = (0.0, 0.5, 0.5, 1.0)
"""Nodes of the classical Runge-Kutta method, in time steps: each stage starts from the state at the beginning of the
step and follows the slope of the stage before."""
WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""Weights of the stages' slopes in the step."""

Follow = per_element(drift, own={"x": "value", "v": "slope"}, constant={"e": "time"}, results={"value": "x"})
"""Value [n] after it has followed a slope [n] for a time."""

Slopes = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def rk4(slopes: Slopes, x: Tensor, v: Tensor, h: float) -> tuple[Tensor, Tensor]:
    """Advance d(x, v)/dt = slopes(x, v) by a step of length h, with order 4 (Kutta 1901)."""
    new, k = (x, v), None
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        k = slopes(x, v) if k is None else slopes(*advance((x, v), k, node * h))
        new = advance(new, k, weight * h)
    return new


def advance(y: tuple[Tensor, Tensor], slopes: tuple[Tensor, Tensor], time: float) -> tuple[Tensor, Tensor]:
    """Follow the slopes of two quantities for a time."""
    return Follow.apply(None, y[0], slopes[0], time), Follow.apply(None, y[1], slopes[1], time)


def make_zeros(count: int) -> Tensor:
    """Make zeros for torques that there are none of, and for rates of bodies at rest."""
    return tensor(np.zeros(count, runtime.real_dtype()))


def require_integrator(source: str, found: str) -> None:
    """Raise InputError unless `found` is one of the integrators."""
    if found not in INTEGRATORS:
        raise InputError(source, f"one of {INTEGRATORS}", found, "Choose one of these.")


def advice(dt: float, *, turn: float, swing: float, fading: float) -> str:
    """Compare a time step with the fastest rotation [rad/s], swing [rad/s] and decay [1/s] that it has to resolve."""
    fastest = max(turn, swing, fading)
    what = {turn: "rotation", swing: "swing", fading: "decay by damping"}[fastest]
    return (
        f"The fastest {what} has a rate of {fastest:.2g}: time steps must be short compared with {1 / fastest:.2g}, "
        f"but dt is {dt:.2g}. Lower dt."
    )
