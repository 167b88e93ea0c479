"""Model, parameters and state of a mass-spring system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.nn import Controller, Network
from simphys.nn.network import NO_SHAPES
from simphys.numerics.splitting import Stage, require_integrator, split_step
from simphys.simulator import Arrays, Bodies, Model, Record, Shape
from simphys.simulator.model_checks import read_indices, read_whole_numbers, require_counts, require_dimensions
from simphys.simulator.physical import require_positive

from .markers import SpringMarkers


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    stiffness: Tensor
    """Spring stiffness [N/m], [S]."""
    damping: Tensor
    """Dashpot along each spring [N s/m], [S]."""
    rest_length: Tensor
    """Length without force [m], [S]; 0 makes the spring linear."""
    mass: Tensor
    """Node mass [kg], [n]."""
    drag: Tensor
    """Rate at which a free node loses velocity, v ~ exp(-drag t) [1/s], [n]."""
    gravity: Tensor
    """Gravitational acceleration [m/s^2], [dim]."""
    ground_height: Tensor = field(default_factory=lambda: tensor(0.0))
    """Height of the ground along the last axis [m], []."""
    ground_stiffness: Tensor = field(default_factory=lambda: tensor(0.0))
    """Normal force per depth of penetration [N/m], []; 0 means no ground."""
    ground_friction: Tensor = field(default_factory=lambda: tensor(0.0))
    """Friction force per normal force and tangential velocity [s/m], []."""
    air_drag: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """Drag of the air on each node: force per squared speed, against it [kg/m], [n]; [0] without air."""
    amplitude: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """Relative change of the rest length per unit of control [1], [S]; [0] without actuators."""
    hidden_weight: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """Hidden weights of the controller's network [1], [hidden, inputs]; [0] without one, like the next three."""
    hidden_bias: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """Hidden biases [1], [hidden]."""
    output_weight: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """Output weights [1], [actuators, hidden]."""
    output_bias: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """Output biases [1], [actuators]."""


@dataclass(frozen=True)
class State(Record):
    """Positions and velocities of the nodes."""

    position: Tensor
    """Position [m], [n, dim]."""
    velocity: Tensor
    """Velocity [m/s], [n, dim]."""


@dataclass(frozen=True)
class MassSpring(Model):
    """Connectivity, time step and integrator: all parts of the model that carry no gradient.

    A fixed point to which a spring is anchored is a pinned node.
    """

    ends: npt.NDArray[np.int32]
    """Node indices (a, b) of each spring, [S, 2]."""
    pinned: npt.NDArray[np.bool_]
    """Nodes that never move, [n]."""
    dim: int
    """Dimensions of space: 1, 2 or 3. The last axis points up."""
    dt: float
    """Time step [s]."""
    integrator: str = "velocity_verlet"
    """Integrator: semi_implicit_euler or velocity_verlet."""
    anchors: int = 0
    """Number of nodes, the last ones, that are fixed points of anchored springs rather than the user's own nodes."""
    actuator: npt.NDArray[np.int32] | None = None
    """Index of the actuator that drives each spring, -1 for none, [S]."""
    air: bool = False
    """True if the air has a drag that grows with the square of the speed."""
    controller: Controller | None = None
    """Controller that computes the actuators' control from a pattern and the state; None if the control is an input."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_integrator("MassSpring.integrator", self.integrator)
        require_counts(self, dim=1, anchors=0)
        require_dimensions(self, "dim", self.dim, 1, 2, 3)
        if np.ndim(self.pinned) != 1 or np.asarray(self.pinned).dtype != bool:
            remedy = "Give True for each node that is held, and False for the others."
            raise InputError("MassSpring.pinned", "True or False for each node", self.pinned, remedy)
        object.__setattr__(self, "pinned", np.asarray(self.pinned))
        ends = read_indices("MassSpring.ends", self.ends, width=2, count=self.nodes, noun="node")
        object.__setattr__(self, "ends", ends)
        if self.actuator is not None:
            object.__setattr__(self, "actuator", read_whole_numbers("MassSpring.actuator", self.actuator))
        if self.actuator is not None and (self.actuator.shape != (self.springs,) or self.actuator.min() < -1):
            raise InputError(
                "MassSpring.actuator",
                f"an actuator's index, or -1, for each of the {self.springs} springs",
                f"shape {np.shape(self.actuator)}, minimum {np.min(self.actuator)}",
                "Give one index per spring, -1 for no actuator.",
            )
        if self.controller is not None:
            if not self.actuators:
                remedy = "Set the actuator of the springs that it drives."
                raise InputError("MassSpring.controller", "a controller needs actuators to drive", "none", remedy)
            if len(self.controller.goal) != self.dim:
                found, remedy = self.controller.goal, f"Give {self.dim} numbers."
                raise InputError("MassSpring.controller", f"a goal in {self.dim} dimensions", found, remedy)

    @property
    def nodes(self) -> int:
        return len(self.pinned)

    @property
    def springs(self) -> int:
        return len(self.ends)

    @runtime.cached_property
    def free(self) -> npt.NDArray[Any]:
        """Mask [n] in the precision in force: 1 for nodes that move, 0 for pinned ones."""
        return (~self.pinned).astype(runtime.real_dtype())

    @runtime.cached_property
    def goal(self) -> npt.NDArray[Any]:
        """Target point of the controller [m] in the precision in force, [dim]."""
        assert self.controller is not None, "only a controller has a goal"
        return np.array(self.controller.goal, runtime.real_dtype())

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Stages of a step, see `simphys.numerics.splitting`."""
        return split_step(self.integrator, self.dt)

    @property
    def actuators(self) -> int:
        """Number of actuators, which is the length of a control."""
        return 0 if self.actuator is None else int(self.actuator.max()) + 1

    @cached_property
    def network(self) -> Network | None:
        """Network of the controller, None without one."""
        senses = (2 * self.nodes + 1) * self.dim
        return None if self.controller is None else self.controller.network(senses=senses, outputs=self.actuators)

    # --- the contract that all simulators keep, see simulator.Model

    def param_shapes(self) -> Mapping[str, Shape]:
        n, S = self.nodes, self.springs
        return {
            **dict.fromkeys(("stiffness", "damping", "rest_length"), (S,)),
            **dict.fromkeys(("mass", "drag"), (n,)),
            "gravity": (self.dim,),
            **dict.fromkeys(("ground_height", "ground_stiffness", "ground_friction"), ()),
            "air_drag": (n if self.air else 0,),
            "amplitude": (S if self.actuators else 0,),
            **(NO_SHAPES if self.network is None else self.network.shapes()),
        }

    def state_shapes(self) -> Mapping[str, Shape]:
        return dict.fromkeys(("position", "velocity"), (self.nodes, self.dim))

    def control_shape(self) -> Shape | None:
        """One number per actuator, if there are any; with a controller, one per wave of its pattern."""
        if self.controller is not None:
            return (self.controller.waves,)
        return (self.actuators,) if self.actuators else None

    def describe_markers(self) -> SpringMarkers:
        return SpringMarkers(self.nodes, self.dim, self.ends, self.pinned, not self.actuators)

    def describe_bodies(self, params: Arrays) -> Bodies:
        """Nodes, with the springs as links; the fixed points of anchors do not count as the scene's own."""
        return Bodies(pinned=self.pinned, links=self.ends, own=self.nodes - self.anchors)


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless every mass is positive and finite, including those of pinned nodes."""
    require_positive("mass_spring", params, "mass")
