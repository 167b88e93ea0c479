"""The sections of a scene file that describe nodes and springs."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import (
    Body,
    Count,
    Distinct,
    Index,
    IndexOf,
    Indices,
    Length,
    NonNegative,
    Positive,
    Section,
    Simulator,
)
from simphys.scenefile.shared import Side, place_lattice
from simphys.simulator import Array

from .lattice import lattice_springs

Vector = Annotated[list[float], Field(min_length=1, max_length=3), Length("dim")]
Node = Annotated[Body, IndexOf("nodes")]
ForNodes, ForSprings = Length("nodes"), Length("springs")


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

    node: Node
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
    names: dict[str, Annotated[Index, IndexOf("nodes")]] = {}
    springs: list[Annotated[list[Node], Field(min_length=2, max_length=2), Distinct()]] | None = None
    pinned: list[Node] = []
    pinned_faces: list[Side] = []
    anchors: list[AnchorSection] = []
    actuators: list[ActuatorSection] = []

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of nodes, springs and axes; none unless positions are given in one way."""
        if (self.lattice is None) == (self.position is None):
            return {}
        nodes, dim = self.place_nodes().shape if self.position is None else (len(self.position), len(self.position[0]))
        return {"nodes": nodes, "springs": len(self.list_springs()), "dim": dim}

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

    stiffness: NonNegative | Annotated[list[NonNegative], ForSprings] | None = None
    damping: NonNegative | Annotated[list[NonNegative], ForSprings] = 0.0
    rest_length: NonNegative | Annotated[list[NonNegative], ForSprings] | None = None
    amplitude: NonNegative | Annotated[list[NonNegative], ForSprings] | None = None
    mass: Positive | Annotated[list[Positive], ForNodes] = 1.0
    drag: NonNegative | Annotated[list[NonNegative], ForNodes] = 0.0
    air_drag: NonNegative | Annotated[list[NonNegative], ForNodes] | None = None


class GroundSection(Section):
    """A penalty ground at a height [m] along the last axis, with stiffness [N/m] and friction [s/m]."""

    height: float = 0.0
    stiffness: NonNegative = 1e4
    friction: NonNegative = 0.0


class EnvironmentSection(Section):
    """Gravity [m/s^2] and ground; neither by default."""

    gravity: Vector | None = None
    ground: GroundSection | None = None


class StateSection(Section):
    """Start velocity [m/s] of each node; at rest by default."""

    velocity: Annotated[list[Vector], ForNodes] | None = None
