"""Model, parameters and state of a mass-spring system."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from simphys.autograd import Tensor, runtime, tensor
from simphys.autograd.errors import InputError
from simphys.nn import Controller, Network
from simphys.numerics.splitting import Stage, require_integrator, split_step
from simphys.simulator import Arrays, Bodies, Model, Record, Shape, declare
from simphys.simulator.declare import make_empty
from simphys.simulator.model_checks import read_indices, read_whole_numbers, require_counts, require_dimensions

from .markers import SpringMarkers


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    stiffness: Tensor = declare("springs", "N/m", section="material")
    """Spring stiffness."""
    damping: Tensor = declare("springs", "N s/m", section="material")
    """Dashpot along each spring."""
    rest_length: Tensor = declare("springs", "m", section="material")
    """Length without force; 0 makes the spring linear."""
    mass: Tensor = declare("nodes", "kg", sign="positive", section="material")
    """Node mass."""
    drag: Tensor = declare("nodes", "1/s", section="material")
    """Rate at which a free node loses velocity, v ~ exp(-drag t)."""
    gravity: Tensor = declare("dim", "m/s^2")
    """Gravitational acceleration."""
    ground_height: Tensor = declare("", "m", default_factory=lambda: tensor(0.0))
    """Height of the ground along the last axis."""
    ground_stiffness: Tensor = declare("", "N/m", default_factory=lambda: tensor(0.0))
    """Normal force per depth of penetration; 0 means no ground."""
    ground_friction: Tensor = declare("", "s/m", default_factory=lambda: tensor(0.0))
    """Friction force per normal force and tangential velocity."""
    air_drag: Tensor = declare("nodes", "kg/m", section="material", only_if="air", default_factory=make_empty)
    """Drag of the air on each node: force per squared speed, against it."""
    amplitude: Tensor = declare("springs", "1", section="material", only_if="actuators", default_factory=make_empty)
    """Relative change of the rest length per unit of control."""
    hidden_weight: Tensor = declare(
        "network.hidden, network.inputs", "1", only_if="network", default_factory=make_empty
    )
    """Hidden weights of the controller's network."""
    hidden_bias: Tensor = declare("network.hidden", "1", only_if="network", default_factory=make_empty)
    """Hidden biases."""
    output_weight: Tensor = declare(
        "network.outputs, network.hidden", "1", only_if="network", default_factory=make_empty
    )
    """Output weights."""
    output_bias: Tensor = declare("network.outputs", "1", only_if="network", default_factory=make_empty)
    """Output biases."""


@dataclass(frozen=True)
class State(Record):
    """Positions and velocities of the nodes."""

    position: Tensor = declare("nodes, dim", "m")
    """Position."""
    velocity: Tensor = declare("nodes, dim", "m/s")
    """Velocity."""


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
