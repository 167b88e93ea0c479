"""Model, parameters and state of a chain of pendulums in the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd import Tensor, tensor
from simphys.autograd.errors import UnphysicalValue
from simphys.simulator import Array, Arrays, Model, Record, Shape, declare
from simphys.simulator.declare import make_empty
from simphys.simulator.model_checks import require_counts

from ..integrators import advice, require_integrator
from .markers import ChainMarkers

DEFAULTS = {"centre": 1.0, "inertia": 0.0}
"""Values of parameters that need not be given, for each link."""

LIKE_LENGTH: Any = None
"""Stands for the default of a parameter, which has a number for each link."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    length: Tensor = declare("links", "m", sign="positive")
    """Length of each link, from joint to joint."""
    mass: Tensor = declare("links", "kg", sign="positive")
    """Mass of each link; by default a point mass at its end."""
    damping: Tensor = declare("links", "N m s/rad")
    """Damping of each joint: torque per rate of rotation."""
    gravity: Tensor = declare("", "m/s^2")
    """Gravitational acceleration."""
    tilt: Tensor = declare("", "rad")
    """Angle at which a link hangs at rest, which is the direction of gravity."""
    centre: Tensor = declare("links", "1", default_factory=lambda: LIKE_LENGTH)
    """Centre of mass of each link, in parts of its length from its upper joint; 1, its end, by default."""
    inertia: Tensor = declare("links", "kg m^2", sign="not_negative", default_factory=lambda: LIKE_LENGTH)
    """Moment of inertia of each link about its centre of mass; 0 by default."""
    dry_friction: Tensor = declare("links", "N m", only_if="friction", default_factory=make_empty)
    """Dry (Coulomb) friction of each joint: torque against its rotation."""
    transition_rate: Tensor = declare("links", "rad/s", sign="positive", only_if="friction", default_factory=make_empty)
    """Rate w within some which dry friction changes its sign, as (2/pi) atan(rate / w)."""
    drag: Tensor = declare("links", "N m s^2/rad^2", only_if="friction", default_factory=make_empty)
    """Drag of the air on each link: torque per squared rate of the link, against it."""

    def __post_init__(self) -> None:
        for name, value in DEFAULTS.items():
            if getattr(self, name) is LIKE_LENGTH:
                object.__setattr__(self, name, tensor(np.full(self.length.shape[-1:], value)))


@dataclass(frozen=True)
class State(Record):
    """Angles and angular velocities of the links."""

    angle: Tensor = declare("links", "rad")
    """Angle of each link: absolute, from a common direction (down if tilt is 0), including full turns."""
    rate: Tensor = declare("links", "rad/s")
    """Angular velocity of each link, d angle / dt."""


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
    friction: bool = False
    """True for dry friction in joints and drag of the air, which take time in each step."""
    moving_pivot: bool = False
    """True if the control of a step is the acceleration of the first joint [m/s^2], [2], in place of torques.

    It is that across and against the direction of the angle 0. Places are then relative to that joint.
    """

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_counts(self, links=1)
        require_integrator("Chain.integrator", self.integrator)

    def control_shape(self) -> Shape | None:
        return (2,) if self.moving_pivot else (self.links,)

    def describe_markers(self) -> ChainMarkers:
        return ChainMarkers(self.links, self.moving_pivot)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Compare the time step with the fastest motion of the chain."""
        length, mass = params["length"], params["mass"]
        inertia = own_inertia(params)
        turns = np.abs(np.diff(state["rate"], prepend=0.0))
        swing = np.sqrt(np.abs(params["gravity"]) * length * mass.sum() / inertia)
        resistance = params["damping"]
        if self.friction:
            sticking = 2 / np.pi * np.abs(params["dry_friction"]) / params["transition_rate"]
            resistance = resistance + sticking + 2 * params["drag"] * np.abs(state["rate"])
        fading = float((resistance / inertia).max())
        return advice(self.dt, turn=float(turns.max()), swing=float(swing.max()), fading=fading)


def own_inertia(params: Arrays) -> Array:
    """Compute the inertia of each link about its upper joint, without the links beyond it [kg m^2]."""
    inertia: Array = params["inertia"] + params["mass"] * (params["centre"] * params["length"]) ** 2
    return inertia


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless links have an inertia about their joints."""
    if not (own_inertia(params) > 0).all():
        remedy = "Move the centre of mass away from the joint, or give the link an inertia."
        found = "a centre of mass in the joint and an inertia of 0"
        raise UnphysicalValue("pendulum: centre", "a link has an inertia about its joint", found, remedy)
