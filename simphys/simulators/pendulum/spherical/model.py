"""What a spherical pendulum is: its integrator, its parameters and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import UnphysicalValue
from simphys.simulator import Array, Arrays, Record, Shape

from ..integrators import advice, check_params, require_integrator

if TYPE_CHECKING:
    from .engine import SphericalEngine


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    length: Tensor
    """From the support to the mass [m], []."""
    mass: Tensor
    """A point [kg], []."""
    damping: Tensor
    """Of the joint: torque by angular velocity [N m s/rad], []."""
    gravity: Tensor
    """[m/s^2], [3]."""


@dataclass(frozen=True)
class State(Record):
    """Where the mass is and how the link turns. Of angles there would be two poles; these have none."""

    direction: Tensor
    """From the support to the mass, of length 1, [3]. A start of another length is refused: see `check_direction`."""
    rate: Tensor
    """Angular velocity, perpendicular to the direction [rad/s], [3]."""


@dataclass(frozen=True)
class Spherical:
    """A point mass on a link that turns about a support in space: everything that no gradient flows to.

    The control of a step is a torque about the support [N m], [3], in the world's axes, constant during the step; the
    part of it along the link turns nothing.
    """

    dt: float
    """Time step [s]."""
    integrator: str = "rk4"
    """rk4: the classical Runge-Kutta method, of order 4, each step ended by the return to unit directions. variational:
    of order 2, stays on the sphere to rounding, conserves the momentum about the vertical, and without damping and
    torque its energy stays near its start."""

    Params = Params
    State = State
    units: ClassVar[Mapping[str, str]] = {"direction": "", "rate": "rad/s"}
    """Of the state, for recordings and pictures."""

    def __post_init__(self) -> None:
        require_integrator("Spherical.integrator", self.integrator)

    def param_shapes(self) -> Mapping[str, Shape]:
        return {"length": (), "mass": (), "damping": (), "gravity": (3,)}

    def state_shapes(self) -> Mapping[str, Shape]:
        return {"direction": (3,), "rate": (3,)}

    def control_shape(self) -> Shape | None:
        return (3,)

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
    ) -> SphericalEngine:
        """The fused loops. Members are independent, so that they are deterministic, asked to be or not."""
        from .engine import SphericalEngine

        check_params(params)
        return SphericalEngine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def advice(self, params: Arrays, state: Arrays) -> str:
        """How the time step compares with the fastest that the pendulum does."""
        swing = np.sqrt(np.linalg.norm(params["gravity"]) / params["length"])
        fading = params["damping"] / (params["mass"] * params["length"] ** 2)
        turn = np.linalg.norm(state["rate"])
        return advice(self.dt, turn=float(turn), swing=float(swing), fading=float(fading))


OFF_SPHERE = 0.05
"""So much longer or shorter than 1 a direction may be: finite differences leave the sphere by as much."""


def check_direction(direction: Array) -> None:
    """Raise UnphysicalValue unless all directions [..., 3] are of length 1; what is not a number passes."""
    length = np.linalg.norm(direction, axis=-1)
    wrong = np.abs(length - 1) > OFF_SPHERE
    if wrong.any():
        found, remedy = f"a length of {length[wrong][0]:g}", "Divide it by its length."
        raise UnphysicalValue("spherical pendulum: direction", "of length 1", found, remedy)
