"""What a mass-spring system is: its topology, its parameters and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..autograd import Tensor, runtime, tensor
from ..autograd.errors import InputError
from ..nn import Controller, Network
from ..nn.network import NONE
from ..physical import require_positive
from ..simulator import Array, Arrays, Record, Shape

if TYPE_CHECKING:
    from ..events import Event
    from .engine import MassSpringEngine

INTEGRATORS = ("semi_implicit_euler", "velocity_verlet")


class Stage(NamedTuple):
    """The lengths of a stage of a time step, [s]."""

    kick: float
    """How long the force acts, and drag."""
    fade: float
    """How long drag acts on the force's impulse: 0 if drag comes first."""
    drift: float
    """How long the position follows the new velocity."""


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
    """Normal force per depth of penetration [N/m], []; 0: there is no ground."""
    ground_friction: Tensor = field(default_factory=lambda: tensor(0.0))
    """Friction force per normal force and tangential velocity [s/m], []."""
    amplitude: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """How much a control of 1 lengthens a spring, as a part of its rest length, [S]; [0] without actuators."""
    hidden_weight: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """Of the controller's network [1], [hidden, inputs]; [0] without a controller, like the next three."""
    hidden_bias: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """[1], [hidden]."""
    output_weight: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """[1], [actuators, hidden]."""
    output_bias: Tensor = field(default_factory=lambda: tensor(np.zeros(0)))
    """[1], [actuators]."""


@dataclass(frozen=True)
class State(Record):
    """Where the nodes are and how they move."""

    position: Tensor
    """[m], [n, dim]."""
    velocity: Tensor
    """[m/s], [n, dim]."""


@dataclass(frozen=True)
class Topology:
    """Which nodes the springs join, and how time advances: everything that no gradient flows to.

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
    integrator: str = "semi_implicit_euler"
    """semi_implicit_euler or velocity_verlet."""
    anchors: int = 0
    """How many of the last nodes are fixed points that springs are anchored to, and not nodes of the user's."""
    actuator: npt.NDArray[np.int32] | None = None
    """The actuator that drives each spring, counted from 0; -1: none. [S]"""
    controller: Controller | None = None
    """What turns a pattern and the state into the control of the actuators; None: that is given from outside."""

    Params = Params
    State = State

    def __post_init__(self) -> None:
        if self.integrator not in INTEGRATORS:
            raise InputError("Topology.integrator", f"one of {INTEGRATORS}", self.integrator, "Choose one of these.")
        if len(self.ends) and (self.ends.min() < 0 or self.ends.max() >= len(self.pinned)):
            raise InputError(
                "Topology.ends",
                f"node indices lie in 0..{len(self.pinned) - 1}",
                f"{self.ends.min()}..{self.ends.max()}",
                "Correct the list of springs.",
            )
        if self.actuator is not None and (np.shape(self.actuator) != (self.springs,) or np.min(self.actuator) < -1):
            raise InputError(
                "Topology.actuator",
                f"the number of an actuator, or -1, for each of the {self.springs} springs",
                f"shape {np.shape(self.actuator)}, from {np.min(self.actuator)} on",
                "Give one number for each spring.",
            )
        if self.controller is not None:
            if not self.actuators:
                remedy = "Say which springs it drives."
                raise InputError("Topology.controller", "there are actuators that it drives", "none", remedy)
            if len(self.controller.goal) != self.dim:
                found, remedy = self.controller.goal, f"Give {self.dim} numbers."
                raise InputError("Topology.controller", f"a goal in {self.dim} dimensions", found, remedy)

    @property
    def nodes(self) -> int:
        return len(self.pinned)

    @property
    def springs(self) -> int:
        return len(self.ends)

    @cached_property
    def free(self) -> npt.NDArray[Any]:
        """1 for nodes that move, 0 for pinned ones, in the chosen precision, [n]."""
        return (~self.pinned).astype(runtime.real_dtype())

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """A step as stages: force at the present state, kick the velocity, then drift the position.

        Semi-implicit Euler is one stage; velocity Verlet is kick-drift-kick. There drag decays the velocity before the
        first impulse and after the second: the step is symmetric in time, and so of second order with drag, too.
        (Dashpots see the velocity at the start of a kick, which is of first order.)
        """
        h = self.dt
        if self.integrator == "semi_implicit_euler":
            return (Stage(kick=h, fade=0.0, drift=h),)
        return (Stage(kick=h / 2, fade=0.0, drift=h), Stage(kick=h / 2, fade=h / 2, drift=0.0))

    @cached_property
    def incidence(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Springs of each node as rows `start[i]:start[i+1]` of a list of 2 s (node is end a) or 2 s + 1 (end b).

        Rows ascend in s, so that a gather sums in the order in which a serial scatter does.
        """
        nodes = self.ends.reshape(-1)  # entry 2 s + e is end e of spring s
        order = np.argsort(nodes, kind="stable").astype(np.int32)
        start = np.zeros(self.nodes + 1, np.int32)
        np.cumsum(np.bincount(nodes, minlength=self.nodes), out=start[1:])
        return start, order

    @property
    def actuators(self) -> int:
        """How many actuators there are: the length of a control."""
        return 0 if self.actuator is None else int(self.actuator.max()) + 1

    @cached_property
    def network(self) -> Network | None:
        """The controller's."""
        senses = (2 * self.nodes + 1) * self.dim
        return None if self.controller is None else self.controller.network(senses=senses, outputs=self.actuators)

    @cached_property
    def columns(self) -> npt.NDArray[np.int32]:
        """The entry of an extended control, which ends with a 0, that drives each spring, [S]."""
        actuator = np.full(self.springs, -1) if self.actuator is None else self.actuator
        return np.where(actuator < 0, self.actuators, actuator).astype(np.int32)

    @cached_property
    def actuated_springs(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Springs of each entry of an extended control as rows `start[i]:start[i+1]` of a list; none of the last."""
        order = np.argsort(self.columns, kind="stable").astype(np.int32)
        counts = np.bincount(self.columns, minlength=self.actuators + 1)
        counts[-1] = 0
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), order

    @cached_property
    def lists(self) -> tuple[Any, ...]:
        """The index arguments of kernels: ends, start, incidence, n, S."""
        ends = np.ascontiguousarray(self.ends, np.int32).reshape(-1, 2)
        return ends, *self.incidence, self.nodes, self.springs

    # --- what all simulators have: see simulator.Model

    def param_shapes(self) -> Mapping[str, Shape]:
        """Shapes of the fields of Params."""
        n, S = self.nodes, self.springs
        return {
            **dict.fromkeys(("stiffness", "damping", "rest_length"), (S,)),
            **dict.fromkeys(("mass", "drag"), (n,)),
            "gravity": (self.dim,),
            **dict.fromkeys(("ground_height", "ground_stiffness", "ground_friction"), ()),
            "amplitude": (S if self.actuators else 0,),
            **(NONE if self.network is None else self.network.shapes()),
        }

    def state_shapes(self) -> Mapping[str, Shape]:
        """Shapes of the fields of State."""
        return dict.fromkeys(("position", "velocity"), (self.nodes, self.dim))

    def control_shape(self) -> Shape | None:
        """One number an actuator, where there are any; with a controller, one a wave of its pattern."""
        if self.controller is not None:
            return (self.controller.waves,)
        return (self.actuators,) if self.actuators else None

    def step(self, params: Params, state: State, control: Tensor | None = None) -> State:
        """The nested step: one node of the graph for each sub-step. See `step.step`."""
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
    ) -> MassSpringEngine:
        """The fused loops. See `engine.MassSpringEngine`."""
        from .controlled_engine import ControlledEngine
        from .engine import MassSpringEngine

        check_params(params)
        kind = MassSpringEngine if self.controller is None else ControlledEngine
        return kind(self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents)

    def events(self, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
        """When nodes touch the ground and leave it. See `ground_events.ground_events`."""
        from .ground_events import ground_events

        return ground_events(self, params, states["position"])

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Which time step would have been stable where a motion that blew up had got to."""
        from .stability import largest_stable_dt

        # Large motion may be stiffer than that at the start, for which a scene's dt was found stable.
        stable = largest_stable_dt(
            ends=self.ends,
            pinned=self.pinned,
            position=np.asarray(state["position"], np.float64),
            params={name: np.asarray(value, np.float64) for name, value in params.items()},
            integrator=self.integrator,
        )
        limit = f"below {stable:.3g} s, which is stable where it had got to" if stable < self.dt else "to less"
        return f"Lower time.dt {limit}, or begin with less motion."


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless every mass is positive and finite, that of a pinned node, too."""
    require_positive("mass_spring", params, {"mass": "kg"})
