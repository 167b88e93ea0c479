"""Sections of a scene file for mass-spring systems, and the arrays that they define."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.nn import Controller
from simphys.scenefile.section import Count, Fields, Index, Indices, NonNegative, Positive, Section, Simulator, rows_of
from simphys.simulators.mass_spring.lattice import lattice_face, lattice_positions, lattice_springs
from simphys.simulators.mass_spring.markers import SpringMarkers
from simphys.simulators.mass_spring.model import MassSpring

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

    node: Index
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
    """

    position: Annotated[list[Vector], Field(min_length=1)] | None = None
    lattice: LatticeSection | None = None
    springs: list[Annotated[list[Index], Field(min_length=2, max_length=2)]] | None = None
    pinned: list[Index] = []
    pinned_faces: list[Literal["x-", "x+", "y-", "y+", "z-", "z+"]] = []
    anchors: list[AnchorSection] = []
    actuators: list[ActuatorSection] = []


class MaterialSection(Section):
    """Properties of springs and nodes: one number for all, or a list with one for each.

    stiffness [N/m]; damping of springs along their axis [N s/m]; rest_length [m], by default the distance between the
    start positions; amplitude [1 / unit of the control]: relative change of an actuated spring's rest length per unit
    of control; mass [kg]; drag of nodes [1/s].
    """

    stiffness: NonNegative | list[NonNegative] | None = None
    damping: NonNegative | list[NonNegative] = 0.0
    rest_length: NonNegative | list[NonNegative] | None = None
    amplitude: NonNegative | list[NonNegative] | None = None
    mass: Positive | list[Positive] = 1.0
    drag: NonNegative | list[NonNegative] = 0.0


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


def build_model(config: Any) -> MassSpring:
    """Build the model of a validated scene; anchors are pinned nodes and springs, after the scene's own."""
    geometry = config.geometry
    nodes, dim = geometry_positions(geometry).shape
    ends = geometry_springs(geometry)
    anchored = [[anchor.node, nodes + position] for position, anchor in enumerate(geometry.anchors)]
    pinned = np.zeros(nodes + len(anchored), dtype=bool)
    pinned[nodes:] = True
    pinned[geometry.pinned] = True
    for face in geometry.pinned_faces:
        assert geometry.lattice is not None, "checked on loading the scene"
        pinned[lattice_face(geometry.lattice.shape, face)] = True
    return MassSpring(
        np.concatenate([ends, np.array(anchored, dtype=np.int32).reshape(-1, 2)]),
        pinned,
        dim,
        config.time.dt,
        config.simulator.integrator,
        anchors=len(anchored),
        actuator=_actuator_of_springs(geometry, len(ends) + len(anchored)),
        controller=_controller(config.controller, getattr(config.control, "waves", 0)),
    )


def _controller(section: ControllerSection | None, waves: int) -> Controller | None:
    if section is None:
        return None
    return Controller(waves=waves, hidden=section.hidden, goal=tuple(section.goal), scale=section.scale)


def build_fields(config: Any) -> Fields:
    """Expand every parameter field and state component to full length, anchors included."""
    geometry, material, controller = config.geometry, config.material, config.controller
    environment, state, waves = config.environment, config.state, getattr(config.control, "waves", 0)
    own = geometry_positions(geometry)
    nodes, dim = own.shape
    ends = geometry_springs(geometry)
    anchors = geometry.anchors
    points = np.array([anchor.point for anchor in anchors], dtype=float).reshape(-1, dim)
    velocity = np.zeros((nodes + len(anchors), dim))
    if state.velocity is not None:
        velocity[:nodes] = state.velocity
    rest_length = material.rest_length
    if rest_length is None:
        rest_length = spring_lengths(own, ends).tolist()
    ground = environment.ground or GroundSection(stiffness=0.0)
    params = {
        "stiffness": _append_anchors(material.stiffness or 0.0, len(ends), [anchor.stiffness for anchor in anchors]),
        "damping": _append_anchors(material.damping, len(ends), [anchor.damping for anchor in anchors]),
        "rest_length": _append_anchors(rest_length, len(ends), [0.0] * len(anchors)),
        "mass": _append_anchors(material.mass, nodes, [1.0] * len(anchors)),
        "drag": _append_anchors(material.drag, nodes, [0.0] * len(anchors)),
        "gravity": np.array(environment.gravity or [0.0] * dim, dtype=float),
        "ground_height": np.array(ground.height),
        "ground_stiffness": np.array(ground.stiffness),
        "ground_friction": np.array(ground.friction),
    }
    if geometry.actuators:
        params["amplitude"] = _append_anchors(material.amplitude or 0.0, len(ends), [0.0] * len(anchors))
    channels = len(geometry.actuators) or None
    network = _controller(controller, waves) if channels else None
    if network is not None and controller is not None and channels is not None:
        senses = (2 * len(velocity) + 1) * dim
        params |= network.network(senses=senses, outputs=channels).initial_arrays(controller.seed)
        channels = waves
    return Fields(
        params=params,
        state={"position": np.concatenate([own, points]), "velocity": velocity},
        nodes=nodes,
        channels=channels,
        markers=SpringMarkers(len(velocity), dim, ends, np.zeros(len(velocity), bool), not geometry.actuators),
    )


def geometry_positions(geometry: GeometrySection) -> np.ndarray:
    """Start positions [n, dim] of the scene's own nodes."""
    if (lattice := geometry.lattice) is not None:
        return lattice_positions(lattice.shape, lattice.spacing, lattice.origin or [0.0] * len(lattice.shape))
    return np.array(geometry.position, dtype=float)


def geometry_springs(geometry: GeometrySection) -> np.ndarray:
    """Node indices [S, 2] int32 of the scene's own springs."""
    if geometry.lattice is not None:
        return lattice_springs(geometry.lattice.shape)
    return np.array(geometry.springs or [], dtype=np.int32).reshape(-1, 2)


def spring_lengths(position: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Distances [S] between the ends of springs."""
    return np.linalg.norm(position[ends[:, 1]] - position[ends[:, 0]], axis=1)


def _actuator_of_springs(geometry: GeometrySection, springs: int) -> np.ndarray | None:
    """Index of the actuator of each spring, -1 for none."""
    if not geometry.actuators:
        return None
    actuator = np.full(springs, -1, np.int32)
    for number, each in enumerate(geometry.actuators):
        actuator[rows_of(each.springs)] = number
    return actuator


def _append_anchors(value: float | list[float], count: int, behind: list[float]) -> np.ndarray:
    """Broadcast a value to `count` elements, and append those of the anchors."""
    own = np.broadcast_to(np.asarray(value, dtype=float), (count,))
    return np.concatenate([own, np.array(behind, dtype=float)])
