"""What a mass-spring system is: its topology, its parameters and its state."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..autograd import Tensor, runtime, tensor
from ..autograd.errors import InputError

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

    @cached_property
    def lists(self) -> tuple[Any, ...]:
        """The index arguments of kernels: ends, start, incidence, n, S."""
        ends = np.ascontiguousarray(self.ends, np.int32).reshape(-1, 2)
        return ends, *self.incidence, self.nodes, self.springs


@dataclass(frozen=True)
class Params:
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

    def replace(self, **changes: Tensor) -> Params:
        """The same parameters with some exchanged."""
        return replace(self, **changes)

    def tensors(self) -> tuple[Tensor, ...]:
        """All fields, in order."""
        return tuple(getattr(self, f.name) for f in fields(self))


@dataclass(frozen=True)
class State:
    """Where the nodes are and how they move."""

    position: Tensor
    """[m], [n, dim]."""
    velocity: Tensor
    """[m/s], [n, dim]."""

    def replace(self, **changes: Tensor) -> State:
        """The same state with some fields exchanged."""
        return replace(self, **changes)


class StateAdjoint:
    """Receives, at backward, the gradient of the loss with respect to the state at every step."""

    position: npt.NDArray[Any]
    """[steps + 1, n, dim]."""
    velocity: npt.NDArray[Any]
    """[steps + 1, n, dim]."""


@dataclass(frozen=True)
class Trajectory:
    """The states of a rollout, part of the graph."""

    position: Tensor
    """[steps + 1, n, dim]."""
    velocity: Tensor
    """[steps + 1, n, dim]."""
    final: State
    """The last state; a loss of it alone costs less memory than one of position[-1]."""
    adjoint: StateAdjoint | None = None
    """Filled by backward if the rollout was asked to keep it."""
