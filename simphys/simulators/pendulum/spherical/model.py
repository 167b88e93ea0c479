"""Model, parameters and state of a spherical pendulum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import UnphysicalValue
from simphys.simulator import Arrays, Model, Record, Shape, declare

from ..integrators import advice, require_integrator
from .markers import SphericalMarkers


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    length: Tensor = declare("", "m", sign="positive")
    """Distance from the support to the mass."""
    mass: Tensor = declare("", "kg", sign="positive")
    """Point mass."""
    damping: Tensor = declare("", "N m s/rad")
    """Damping of the joint: torque per angular velocity."""
    gravity: Tensor = declare("3", "m/s^2")
    """Gravitational acceleration."""


@dataclass(frozen=True)
class State(Record):
    """Direction and angular velocity of the link. Unlike angles, these have no singularities at the poles."""

    direction: Tensor = declare("3", "1")
    """Unit vector from the support to the mass; other lengths are rejected, see `check_state`."""
    rate: Tensor = declare("3", "rad/s")
    """Angular velocity, perpendicular to the direction."""


@dataclass(frozen=True)
class Spherical(Model):
    """A point mass on a link that turns about a support in space: all parts of the model that carry no gradient.

    The control of a step is a torque about the support [N m], [3], in world axes, constant during the step. Its
    component along the link has no effect.
    """

    dt: float
    """Time step [s]."""
    integrator: str = "rk4"
    """Integrator. rk4: the classical Runge-Kutta method, of order 4, with a projection to the sphere after each step.
    variational: of order 2. It stays on the sphere to rounding and conserves the momentum about the vertical; without
    damping and torque its energy error stays bounded."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_integrator("Spherical.integrator", self.integrator)

    def control_shape(self) -> Shape | None:
        return (3,)

    def describe_markers(self) -> SphericalMarkers:
        return SphericalMarkers()

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Compare the time step with the fastest motion of the pendulum."""
        swing = np.sqrt(np.linalg.norm(params["gravity"]) / params["length"])
        fading = params["damping"] / (params["mass"] * params["length"] ** 2)
        turn = np.linalg.norm(state["rate"])
        return advice(self.dt, turn=float(turn), swing=float(swing), fading=float(fading))


OFF_SPHERE = 0.05
"""Largest deviation of a direction's length from 1; finite differences leave the sphere by as much."""


def check_state(state: Arrays) -> None:
    """Raise UnphysicalValue unless all directions [..., 3] are of length 1; NaN passes."""
    length = np.linalg.norm(state["direction"], axis=-1)
    wrong = np.abs(length - 1) > OFF_SPHERE
    if wrong.any():
        found, remedy = f"a length of {length[wrong][0]:g}", "Divide it by its length."
        raise UnphysicalValue("spherical pendulum: direction", "of length 1", found, remedy)
