"""What a chain of pendulums in the plane is: its links and its integrator, its parameters and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays, Record, Shape

from ..integrators import advice, check_params, require_integrator

if TYPE_CHECKING:
    from .engine import ChainEngine


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    length: Tensor
    """Of each link, from joint to joint [m], [n]."""
    mass: Tensor
    """At the end of each link, a point [kg], [n]."""
    damping: Tensor
    """Of each joint: torque by the rate at which it turns [N m s/rad], [n]."""
    gravity: Tensor
    """[m/s^2], []."""
    tilt: Tensor
    """The angle at which a link hangs at rest: the direction of gravity as angles are counted [rad], []."""


@dataclass(frozen=True)
class State(Record):
    """How the links are turned and how fast they turn."""

    angle: Tensor
    """Of each link [rad], [n]. Absolute: counted from one direction for all, down where tilt is 0; full turns count."""
    rate: Tensor
    """d angle / dt [rad/s], [n]."""


@dataclass(frozen=True)
class Chain:
    """n links in the plane, each hung on the one before, the first on a support: everything that no gradient flows to.

    The control of a step is the torque of a motor in each joint [N m], [n], constant during the step: it turns link i,
    and turns link i - 1 the other way.
    """

    links: int
    """How many, n."""
    dt: float
    """Time step [s]."""
    integrator: str = "rk4"
    """rk4: the classical Runge-Kutta method, of order 4. variational: of order 2, and without damping and motors its
    energy stays near its start for as long as one likes."""

    Params = Params
    State = State
    units: ClassVar[Mapping[str, str]] = {"angle": "rad", "rate": "rad/s"}
    """Of the state, for recordings and pictures."""

    def __post_init__(self) -> None:
        if self.links < 1:
            raise InputError("Chain.links", "a chain has links", self.links, "Give at least 1.")
        require_integrator("Chain.integrator", self.integrator)

    def param_shapes(self) -> Mapping[str, Shape]:
        n = self.links
        return {"length": (n,), "mass": (n,), "damping": (n,), "gravity": (), "tilt": ()}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"angle": (self.links,), "rate": (self.links,)}

    def control_shape(self) -> Shape | None:
        return (self.links,)

    def step(self, params: Params, state: State, control: Tensor | None = None) -> State:
        """The nested step: one node of the graph for each sub-step."""
        from .step import step

        return step(self, params, state, control)

    def engine(
        self,
        params: Arrays,
        control: Array | None,
        *,
        batch: int,
        needs: frozenset[str],
        deterministic: bool,
        tangents: Arrays | None = None,
    ) -> ChainEngine:
        """The fused loops. Members are independent, so that they are deterministic, asked to be or not."""
        from .engine import ChainEngine

        check_params(params)
        return ChainEngine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def advice(self, params: Arrays, state: Arrays) -> str:
        """How the time step compares with the fastest that the chain does."""
        length, mass = params["length"], params["mass"]
        turns = np.abs(np.diff(state["rate"], prepend=0.0))
        swing = np.sqrt(np.abs(params["gravity"]) / length * (mass.sum() / mass))
        fading = params["damping"] / (mass * length**2)
        return advice(self.dt, turn=float(turns.max()), swing=float(swing.max()), fading=float(fading.max()))
