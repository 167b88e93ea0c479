"""Splitting of a time step into stages of kick and drift, for symplectic integrators.

In each stage the force f at the current state kicks the velocity, and the position then drifts at the new velocity:

    v' = exp(-c h) v + (h/m) exp(-c r) f          x' = x + e v'

m mass [kg], c drag [1/s], if there is any; h, r and e [s] are the durations `kick`, `damp` and `drift`. Semi-implicit
Euler has one stage; velocity Verlet is kick-drift-kick. There, drag acts before the first impulse and after the second.
The step is thus symmetric in time, and of second order even with drag.

Source: Hairer, Lubich and Wanner 2003, Geometric numerical integration illustrated by the Störmer-Verlet method; the
drag is added by Strang splitting.
"""

from __future__ import annotations

from typing import NamedTuple

from simphys.autograd.errors import InputError

INTEGRATORS = ("semi_implicit_euler", "velocity_verlet")


class Stage(NamedTuple):
    """Durations [s] within one stage of a time step."""

    kick: float
    """Time for which the force and drag act."""
    damp: float
    """Time for which drag acts on the impulse of the force; 0 if drag comes first."""
    drift: float
    """Time for which the position follows the new velocity."""


def split_step(integrator: str, dt: float) -> tuple[Stage, ...]:
    """Split a step of length dt [s] into the stages of an integrator."""
    if integrator == "semi_implicit_euler":
        return (Stage(kick=dt, damp=0.0, drift=dt),)
    return Stage(kick=dt / 2, damp=0.0, drift=dt), Stage(kick=dt / 2, damp=dt / 2, drift=0.0)


def require_integrator(source: str, integrator: str) -> None:
    """Raise InputError, naming `source`, unless `integrator` is one of INTEGRATORS."""
    if integrator not in INTEGRATORS:
        raise InputError(source, f"one of {INTEGRATORS}", integrator, "Choose one of these.")
