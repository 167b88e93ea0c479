"""Model, parameters and state of a chain of pendulums in the plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Arrays, Model, Record, Shape

from ..integrators import advice, require_integrator
from .markers import ChainMarkers


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    length: Tensor
    """Length of each link, from joint to joint [m], [n]."""
    mass: Tensor
    """Point mass at the end of each link [kg], [n]."""
    damping: Tensor
    """Damping of each joint: torque per rate of rotation [N m s/rad], [n]."""
    gravity: Tensor
    """Gravitational acceleration [m/s^2], []."""
    tilt: Tensor
    """Angle at which a link hangs at rest, which is the direction of gravity [rad], []."""


@dataclass(frozen=True)
class State(Record):
    """Angles and angular velocities of the links."""

    angle: Tensor
    """Angle of each link [rad], [n]: absolute, from a common direction (down if tilt is 0), including full turns."""
    rate: Tensor
    """Angular velocity of each link, d angle / dt [rad/s], [n]."""


@dataclass(frozen=True)
class Chain(Model):
    """n links in the plane, each hung on the one before, the first on a support: all parts that carry no gradient.

    The control of a step is the torque of a motor in each joint [N m], [n], constant during the step. It turns link i,
    and turns link i - 1 the other way.
    """

    links: int
    """Number of links, n."""
    dt: float
    """Time step [s]."""
    integrator: str = "rk4"
    """Integrator. rk4: the classical Runge-Kutta method, of order 4. variational: of order 2; its energy error stays
    bounded for all times without damping and motors."""

    Params = Params
    State = State
    units: ClassVar[Mapping[str, str]] = {"angle": "rad", "rate": "rad/s"}
    """Units of the state's components, for recordings and pictures."""

    def __post_init__(self) -> None:
        if self.links < 1:
            raise InputError("Chain.links", "a chain has at least one link", self.links, "Give at least 1.")
        require_integrator("Chain.integrator", self.integrator)

    def param_shapes(self) -> Mapping[str, Shape]:
        n = self.links
        return {"length": (n,), "mass": (n,), "damping": (n,), "gravity": (), "tilt": ()}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"angle": (self.links,), "rate": (self.links,)}

    def control_shape(self) -> Shape | None:
        return (self.links,)

    def describe_markers(self) -> ChainMarkers:
        return ChainMarkers(self.links)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Compare the time step with the fastest motion of the chain."""
        length, mass = params["length"], params["mass"]
        turns = np.abs(np.diff(state["rate"], prepend=0.0))
        swing = np.sqrt(np.abs(params["gravity"]) / length * (mass.sum() / mass))
        fading = params["damping"] / (mass * length**2)
        return advice(self.dt, turn=float(turns.max()), swing=float(swing.max()), fading=float(fading.max()))
