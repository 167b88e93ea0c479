"""The sections of a scene file that describe nodes and springs."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Body, Count, Index, Indices, NonNegative, Positive, Section, Simulator
from simphys.scenefile.shared import place_lattice
from simphys.simulator import Array

from .lattice import lattice_springs

Vector = Annotated[list[float], Field(min_length=1, max_length=3)]


class MassSpringSimulator(Simulator):
    """Options of the simulator.

    integrator: the error of a motion falls with dt^2 by "velocity_verlet", also with damping, drag and friction, and
    with dt by the cheaper "semi_implicit_euler".
    """

    name: Literal["mass_spring"]
    integrator: Literal["semi_implicit_euler", "velocity_verlet"] = "velocity_verlet"


class LatticeSection(Section):
    """Nodes on a regular grid (a chain, a sheet or a block), with springs along its axes and face diagonals.

    shape: number of nodes along each axis; spacing [m] of neighbours; origin [m]: the first node, 0 by default.
    """

    shape: Annotated[list[Count], Field(min_length=1, max_length=3)]
    spacing: Positive
    origin: Vector | None = None


class AnchorSection(Section):
    """A spring of rest length 0 from a node to a fixed point [m]: stiffness [N/m], damping [N s/m]."""

    node: Body
    point: Vector
    stiffness: NonNegative
    damping: NonNegative = 0.0


class ActuatorSection(Section):
    """Indices of the springs that one channel of the control lengthens and shortens."""

    springs: Indices


class GeometrySection(Section):
    """Start positions [m] of the nodes, and the springs between them: listed, or as a lattice.

    Pinned nodes never move. Faces of a lattice are pinned by name, such as 'y+' for the largest second index. Springs
    of a lattice are numbered axis by axis, then diagonal by diagonal; within each, the last index runs fastest.

    names: of nodes, with their indices, such as { cart = 0, bob = 1 }, for pictures, tables and scripts
    (`scene.bodies["cart"]`), and wherever the file has to tell a node.
    """

    position: Annotated[list[Vector], Field(min_length=1)] | None = None
    lattice: LatticeSection | None = None
    names: dict[str, Index] = {}
    springs: list[Annotated[list[Body], Field(min_length=2, max_length=2)]] | None = None
    pinned: list[Body] = []
    pinned_faces: list[Literal["x-", "x+", "y-", "y+", "z-", "z+"]] = []
    anchors: list[AnchorSection] = []
    actuators: list[ActuatorSection] = []

    def place_nodes(self) -> Array:
        """Compute the start positions [n, dim] of the scene's own nodes."""
        if (lattice := self.lattice) is not None:
            return place_lattice(lattice.origin or [0.0] * len(lattice.shape), lattice.shape, lattice.spacing)
        return np.array(self.position, dtype=float)

    def list_springs(self) -> Array:
        """List the node indices [S, 2] int32 of the scene's own springs."""
        if self.lattice is not None:
            return lattice_springs(self.lattice.shape)
        return np.array(self.springs or [], dtype=np.int32).reshape(-1, 2)


class MaterialSection(Section):
    """Properties of springs and nodes: one number for all, or a list with one for each.

    stiffness [N/m]; damping of springs along their axis [N s/m]; rest_length [m], by default the distance between the
    start positions; amplitude [1 / unit of the control]: relative change of an actuated spring's rest length per unit
    of control; mass [kg]; drag of nodes [1/s]; air_drag of nodes [kg/m], force per squared speed.
    """

    stiffness: NonNegative | list[NonNegative] | None = None
    damping: NonNegative | list[NonNegative] = 0.0
    rest_length: NonNegative | list[NonNegative] | None = None
    amplitude: NonNegative | list[NonNegative] | None = None
    mass: Positive | list[Positive] = 1.0
    drag: NonNegative | list[NonNegative] = 0.0
    air_drag: NonNegative | list[NonNegative] | None = None


class GroundSection(Section):
    """A penalty ground at a height [m] along the last axis, with stiffness [N/m] and friction [s/m]."""

    height: float = 0.0
    stiffness: NonNegative = 1e4
    friction: NonNegative = 0.0


class EnvironmentSection(Section):
    """Gravity [m/s^2] and ground; neither by default."""

    gravity: Vector | None = None
    ground: GroundSection | None = None


class ControllerSection(Section):
    """A network that drives the actuators. Its inputs are the control, which is then a pattern, and the sensed state.

    hidden: number of hidden units. goal [m]: a point, which enters relative to the centre of the nodes. scale
    [1/m or s/m]: factor on positions and velocities before they enter. seed: random seed of the initial
    weights; unknowns call the weights hidden_weight, hidden_bias, output_weight and output_bias.
    """

    hidden: Count = 32
    goal: Vector
    scale: Positive = 0.05
    seed: Index = 0


class StateSection(Section):
    """Start velocity [m/s] of each node; at rest by default."""

    velocity: list[Vector] | None = None
