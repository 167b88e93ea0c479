"""What chains and the spherical pendulum share: names of integrators, the Runge-Kutta method, checks, advice."""

from __future__ import annotations

from collections.abc import Callable

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Arrays
from simphys.simulator.physical import require_positive

INTEGRATORS = ("rk4", "variational")

NODES = (0.0, 0.5, 0.5, 1.0)
"""Where the stages of the classical Runge-Kutta method lie, in time steps; each goes there from the step's start along
the slope of the one before."""
WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""How their slopes count in the step."""

Slopes = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def rk4(slopes: Slopes, x: Tensor, v: Tensor, h: float) -> tuple[Tensor, Tensor]:
    """A step of length h of d(x, v)/dt = slopes(x, v): Kutta 1901, order 4."""
    y = (x, v)
    new, k = y, None
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        at = y if k is None else (x + node * h * k[0], v + node * h * k[1])
        k = slopes(*at)
        new = (new[0] + weight * h * k[0], new[1] + weight * h * k[1])
    return new


def require_integrator(who: str, found: str) -> None:
    """Raise InputError unless it is one of them."""
    if found not in INTEGRATORS:
        raise InputError(who, f"one of {INTEGRATORS}", found, "Choose one of these.")


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless every length and every mass is positive and finite."""
    require_positive("pendulum", params, {"length": "m", "mass": "kg"})


def advice(dt: float, *, turn: float, swing: float, fading: float) -> str:
    """What a time step has to follow: the fastest turn [rad/s], swing [rad/s] and fading [1/s]."""
    fastest = max(turn, swing, fading)
    what = {turn: "turn", swing: "swing", fading: "fading by damping"}[fastest]
    return (
        f"The fastest {what} goes at {fastest:.2g} /s: steps have to be short against {1 / fastest:.2g} s, and dt is "
        f"{dt:.2g} s. Take a smaller dt."
    )
