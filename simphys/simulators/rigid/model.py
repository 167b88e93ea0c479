"""The model of a system of rigid bodies (shapes, joints, contact law), its parameters and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simphys.autograd import Tensor
from simphys.nn import Controller, Network
from simphys.simulator import Array, Arrays, Bodies, Model, Record, Shape, declare
from simphys.simulator.arrays import locked
from simphys.simulator.declare import make_empty

from .checks import IMPULSE, check
from .contacts.candidates import Candidates, find_candidates, list_pairs
from .joints.joint import Ends, Joint, Spring, tabulate_ends
from .joints.joint_tables import Table, tabulate_constraints, tabulate_free_rows
from .markers import RigidMarkers
from .shapes import Plane
from .shapes import Shape as BodyShape


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    mass: Tensor = declare("bodies", "kg")
    """Mass of each body."""
    inertia: Tensor = declare("bodies, inertia_entries", "kg m^2")
    """Principal moments of inertia about the centre of mass, along the axes of the body's frame; with full inertia, the
    tensor's entries xx, yy, zz, yz, xz, xy in that frame."""
    gravity: Tensor = declare("dim", "m/s^2")
    """Gravitational acceleration."""
    friction: Tensor = declare("bodies", "1")
    """Friction coefficient of each body; a pair has the mean of both, a body against the world its own."""
    restitution: Tensor = declare("bodies", "1")
    """Coefficient of restitution of each body, 0 to 1; combined like friction. Impulse law only."""
    contact_stiffness: Tensor = declare("", "N/m")
    """Contact force per depth. Compliant law only."""
    contact_damping: Tensor = declare("", "s/m")
    """Damping of a contact, relative to its force. Compliant law only."""
    spring_stiffness: Tensor = declare("springs", "N/m")
    """Stiffness of each spring-damper."""
    spring_damping: Tensor = declare("springs", "kg/s")
    """Damping of each spring-damper."""
    spring_length: Tensor = declare("springs", "m")
    """Rest length of each spring-damper."""
    joint_damping: Tensor = declare("joints", "N m s or kg/s")
    """Damping of each joint's free motion; without effect for a fixed joint."""
    motor_strength: Tensor = declare("motors", "N m or N")
    """Torque or force of each motor for an action of 1."""
    hidden_weight: Tensor = declare("network.hidden, network.inputs", "1", only_if="network")
    """Weights of the hidden layer of the controller's network."""
    hidden_bias: Tensor = declare("network.hidden", "1", only_if="network")
    """Biases of the hidden layer."""
    output_weight: Tensor = declare("network.outputs, network.hidden", "1", only_if="network")
    """Weights of the output layer."""
    output_bias: Tensor = declare("network.outputs", "1", only_if="network")
    """Biases of the output layer."""
    joint_dry_friction: Tensor = declare("joints", "N m or N", only_if="joint_friction", default_factory=make_empty)
    """Dry friction of each joint's free motion."""
    joint_transition_rate: Tensor = declare(
        "joints", "rad/s or m/s", sign="positive", only_if="joint_friction", default_factory=make_empty
    )
    """Rate within some of which dry friction changes its sign."""
    joint_anchor_a: Tensor = declare("joints, dim", "m", only_if="free_anchors", default_factory=make_empty)
    """Anchor of each joint in the frame of its body a."""
    joint_anchor_b: Tensor = declare("joints, dim", "m", only_if="free_anchors", default_factory=make_empty)
    """Anchor in the frame of body b; in that of the world a position."""
    centre_of_mass: Tensor = declare("bodies, dim", "m", only_if="free_anchors", default_factory=make_empty)
    """Centre of mass of each body in its frame."""
    spring_anchor_a: Tensor = declare("springs, dim", "m", only_if="free_anchors", default_factory=make_empty)
    """Anchor of each spring-damper in the frame of body a."""
    spring_anchor_b: Tensor = declare("springs, dim", "m", only_if="free_anchors", default_factory=make_empty)
    """Anchor in the frame of body b; in that of the world a position."""


@dataclass(frozen=True)
class State(Record):
    """Poses and velocities of the bodies."""

    position: Tensor = declare("bodies, dim", "m")
    """Positions of the centres of mass."""
    orientation: Tensor = declare("bodies, rotations", "rad, 1")
    """Orientations of the body frames: an angle, or a unit quaternion (w, x, y, z)."""
    velocity: Tensor = declare("bodies, dim", "m/s")
    """Velocities of the centres of mass."""
    angular_velocity: Tensor = declare("bodies, spins", "rad/s")
    """Angular velocities in the world frame."""


@dataclass(frozen=True)
class RigidBodies(Model):
    """Rigid bodies with contacts and joints: everything that no gradient flows to.

    n bodies, dim = 2 or 3; an angular velocity has S = 1 or 3 components, an orientation R = 1 or 4. The control of a
    step is one action per motor, [A], nominally between -1 and 1, in the order of the joints. With a neural controller
    it is the central pattern, [waves]; without motors there is no control.

    In a step, bodies move for half of it, forces act, and bodies move for the other half. This is symplectic, and of
    second order for forces that do not depend on velocity, except at impacts of bodies under constraints. In space,
    bodies rotate by a variational integrator on the rotation group (variational.py).
    """

    dim: int
    """Dimensions of space, 2 or 3."""
    dt: float
    """Time step [s]."""
    shapes: tuple[tuple[BodyShape, ...], ...]
    """Shapes of each body; a body without shapes has no contacts."""
    planes: tuple[Plane, ...] = ()
    """Planes that bound the world."""
    joints: tuple[Joint, ...] = ()
    springs: tuple[Spring, ...] = ()
    fixed: tuple[int, ...] = ()
    """Bodies that no force moves: they keep their velocity, usually 0."""
    apart: tuple[tuple[int, int], ...] = ()
    """Pairs of bodies that never touch, in addition to pairs connected by a joint."""
    law: str = IMPULSE
    """Contact law: impulse or compliant."""
    sweeps: int = 20
    """Number of projected Gauss-Seidel sweeps over all rows per step."""
    rest_speed: float = 0.2
    """Impulse law: impacts slower than this [m/s] do not bounce, and overlaps are corrected no faster.

    It must exceed the speed that gravity adds in a step; otherwise bodies do not come to rest.
    """
    slip_speed: float = 0.05
    """Compliant law: slip speed [m/s] at which friction reaches 1/sqrt(2) of its limit; below it, bodies creep."""
    joint_correction: float = 0.2
    """Fraction of a joint's position error that one step corrects (Baumgarte)."""
    joint_friction: bool = False
    """True if joints have dry friction."""
    full_inertia: bool = False
    """True if inertias are full tensors, of bodies in space whose principal axes are not those of their frame."""
    free_anchors: bool = False
    """True if anchors of joints and springs and centres of mass are parameters; otherwise those of `joints` and
    `springs` count."""
    controller: Controller | None = None
    """Controller that drives the motors; without one, the control of the step drives them."""

    Params = Params
    State = State

    def __post_init__(self) -> None:
        check(self)

    @property
    def units(self) -> Mapping[str, str]:
        """Units of the fields of a state."""
        turn = "rad" if self.dim == 2 else ""
        return {"position": "m", "orientation": turn, "velocity": "m/s", "angular_velocity": "rad/s"}

    @property
    def bodies(self) -> int:
        """Number of bodies, n."""
        return len(self.shapes)

    @property
    def spins(self) -> int:
        """Number of components of an angular velocity, S."""
        return 1 if self.dim == 2 else 3

    @property
    def inertia_entries(self) -> int:
        """Number of entries of a body's inertia."""
        return 6 if self.full_inertia else self.spins

    @property
    def freedoms(self) -> int:
        """Number of components of a body's velocity and angular velocity together, D."""
        return self.dim + self.spins

    @property
    def axes(self) -> int:
        """Number of components of the axes that a controller gets of each body, see sense.py."""
        return self.dim * (self.dim - 1)

    @property
    def row_width(self) -> int:
        """Number of components of a row, W."""
        return self.dim + 2 * self.spins

    @property
    def contact_width(self) -> int:
        """Number of components of all rows of a contact."""
        return self.dim * self.row_width

    @property
    def arm_width(self) -> int:
        """Number of components of the arms of a joint."""
        return 2 * self.dim

    @property
    def rotations(self) -> int:
        """Number of components of an orientation, R."""
        return 1 if self.dim == 2 else 4

    @cached_property
    def motors(self) -> tuple[int, ...]:
        """Index of the joint that each motor drives."""
        return tuple([index for index, joint in enumerate(self.joints) if joint.motor])

    @cached_property
    def constraints(self) -> Table:
        """Rows of the joints that constrain velocities."""
        return tabulate_constraints(self.joints, self.dim)

    @cached_property
    def free_rows(self) -> Table:
        """Free rows of the joints, which motors drive."""
        return tabulate_free_rows(self.joints, self.dim)

    @cached_property
    def joint_ends(self) -> Ends:
        """Bodies and anchors of the joints as arrays."""
        return tabulate_ends(self.joints, self.dim)

    @cached_property
    def spring_ends(self) -> Ends:
        """Bodies and anchors of the springs as arrays."""
        return tabulate_ends(self.springs, self.dim)

    @cached_property
    def joint_rows(self) -> int:
        """Number of scalar constraints of all joints."""
        return sum([joint.rows(self.dim) for joint in self.joints])

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs (a, b) of bodies that may touch, a < b."""
        jointed = [(joint.a, joint.b) for joint in self.joints]
        return tuple(list_pairs(self.bodies, self.fixed, (*self.apart, *jointed)))

    @cached_property
    def candidates(self) -> Candidates:
        """The pairs of features that may touch, M of them."""
        return find_candidates(self.dim, self.shapes, self.planes, fixed=self.fixed, pairs=self.pairs)

    @property
    def contacts(self) -> int:
        """Number of candidates with constraint rows: all under the impulse law, none under the compliant one."""
        return self.candidates.count if self.law == IMPULSE else 0

    @property
    def rows(self) -> int:
        """Number of scalar constraints on velocities, N: those of the joints, then those of the candidates."""
        return self.joint_rows + self.dim * self.contacts

    @cached_property
    def row_bodies(self) -> Array:
        """Bodies a and b of each joint row, then of each candidate, flattened, [2 (NJ + M)]."""
        joint_bodies = [(joint.a, joint.b) for joint in self.joints for _ in range(joint.rows(self.dim))]
        found = self.candidates
        contact_bodies = list(zip(found.body_a, found.body_b, strict=True))[: self.contacts]
        return np.array([*joint_bodies, *contact_bodies], np.int32).reshape(-1)

    @cached_property
    def free(self) -> Array:
        """1 if forces move the body, else 0, [n]."""
        free = np.ones(self.bodies, np.int32)
        free[list(self.fixed)] = 0
        return locked(free)

    @property
    def senses(self) -> int:
        """Number of inputs that a controller gets from the state, see sense.py."""
        return self.bodies * (self.dim * (self.dim + 1) + self.spins) + self.dim

    @property
    def network(self) -> Network | None:
        """Network of the controller, or None."""
        if self.controller is None:
            return None
        return self.controller.network(senses=self.senses, outputs=len(self.motors))

    def control_shape(self) -> Shape | None:
        if self.controller:
            return (self.controller.waves,)
        return (len(self.motors),) if self.motors else None

    def describe_bodies(self, params: Arrays) -> Bodies:
        """Bodies without links: pictures draw them in their own shapes, so joints are no lines."""
        return Bodies(pinned=np.isin(np.arange(self.bodies), self.fixed), own=self.bodies)

    def describe_markers(self) -> RigidMarkers:
        moving = tuple([body for body in range(self.bodies) if body not in self.fixed])
        return RigidMarkers(self.bodies, self.dim, moving, self.springs, self.law == IMPULSE)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Name the fastest body, and the likely reason why the step is too long."""
        speed = np.linalg.norm(state["velocity"], axis=-1) + np.linalg.norm(state["angular_velocity"], axis=-1)
        unknown = np.isnan(speed)
        if unknown.any():
            return f"The velocity of body {int(np.argmax(unknown))} is no number: correct it."
        body = int(np.argmax(speed))
        motion = (
            f"Body {body} is the fastest and moves {np.linalg.norm(state['velocity'][body]) * self.dt:.2g} a step. "
        )
        return motion + "Check the motors and the masses, or reduce dt."
