"""What a system of rigid bodies is: shapes, joints and laws, its parameters and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..autograd import Tensor
from ..autograd.errors import InputError
from ..nn import Controller, Network
from ..nn.network import NONE
from ..simulator import Array, Arrays, Record, Shape
from .joint import PRISMATIC, REVOLUTE, WORLD, Joint, Spring
from .shapes import Box, Plane, Vector
from .shapes import Shape as BodyShape

if TYPE_CHECKING:
    from ..events import Event
    from .engine import RigidEngine
    from .geometry.candidates import Candidates

IMPULSE, COMPLIANT = LAWS = ("impulse", "compliant")
INTEGRATORS = ("semi_implicit_euler", "variational")


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    mass: Tensor
    """Of each body [kg], [n]."""
    inertia: Tensor
    """Principal moments about the centre of mass, along the axes of the body's frame [kg m^2], [n, S]."""
    gravity: Tensor
    """[m/s^2], [dim]."""
    friction: Tensor
    """Coefficient of each body, [n]: of a pair the mean of both; against the world the body's own."""
    restitution: Tensor
    """Of each body, between 0 and 1, [n]: mixed as friction is. Impulse law only."""
    contact_stiffness: Tensor
    """Force a depth [N/m], []. Compliant law only."""
    contact_damping: Tensor
    """Damping of a contact, relative to its force [s/m], []. Compliant law only."""
    spring_stiffness: Tensor
    """Of each spring-damper [N/m], [K]."""
    spring_damping: Tensor
    """Of each spring-damper [kg/s], [K]."""
    spring_length: Tensor
    """At which each spring has no force [m], [K]."""
    joint_damping: Tensor
    """Of what a joint leaves free [N m s] or [kg/s], [J]; that of a fixed joint has no effect."""
    motor_strength: Tensor
    """Of each motor: torque [N m] or force [N] for an action of 1, [A]."""
    hidden_weight: Tensor
    """Of the controller's network [1], [hidden, inputs]; [0] without a controller, like the next three."""
    hidden_bias: Tensor
    """[1], [hidden]."""
    output_weight: Tensor
    """[1], [A, hidden]."""
    output_bias: Tensor
    """[1], [A]."""


@dataclass(frozen=True)
class State(Record):
    """Where the bodies are and how they move."""

    position: Tensor
    """Of the centre of mass [m], [n, dim]."""
    orientation: Tensor
    """Of the body's frame in the world's: an angle [rad], [n, 1], or a unit quaternion (w, x, y, z), [n, 4]."""
    velocity: Tensor
    """[m/s], [n, dim]."""
    angular_velocity: Tensor
    """In the world's frame [rad/s], [n, S]."""


@dataclass(frozen=True)
class RigidBodies:
    """Rigid bodies with contacts and joints: everything that no gradient flows to.

    n bodies, dim = 2 or 3, S = 1 or 3 components of a spin, R = 1 or 4 of an orientation. The control of a step is an
    action for each motor, [A], between -1 and 1 or not, in the order of the joints; with a neural controller it is the
    central pattern, [waves]; without motors there is none.
    """

    dim: int
    """Dimensions of space, 2 or 3."""
    dt: float
    """Time step [s]."""
    shapes: tuple[tuple[BodyShape, ...], ...]
    """Of each body; a body without shapes touches nothing."""
    planes: tuple[Plane, ...] = ()
    """That bound the world."""
    joints: tuple[Joint, ...] = ()
    springs: tuple[Spring, ...] = ()
    fixed: tuple[int, ...] = ()
    """Bodies that nothing moves: they keep their velocity, which is 0 as a rule."""
    apart: tuple[tuple[int, int], ...] = ()
    """Pairs of bodies that never touch, besides those that a joint joins."""
    law: str = IMPULSE
    """Of contacts: impulse, or compliant."""
    integrator: str = "semi_implicit_euler"
    """semi_implicit_euler, or variational."""
    sweeps: int = 20
    """Of projected Gauss-Seidel over all rows, in a step."""
    rest_speed: float = 0.2
    """Impulse law: an impact that is slower [m/s] does not bounce, and overlaps are taken back no faster.

    It has to be more than gravity adds to a speed in a step, or bodies do not come to rest.
    """
    slip_speed: float = 0.05
    """Compliant law: the slip [m/s] at which friction has most of its limit; below, bodies creep."""
    joint_correction: float = 0.2
    """Part of a joint's error that a step takes away (Baumgarte)."""
    controller: Controller | None = None
    """What drives the motors; without one the control of a step does."""

    Params = Params
    State = State

    def __post_init__(self) -> None:
        _check(self)

    @property
    def bodies(self) -> int:
        """How many, n."""
        return len(self.shapes)

    @property
    def spins(self) -> int:
        """Components of an angular velocity, S."""
        return 1 if self.dim == 2 else 3

    @property
    def rotations(self) -> int:
        """Components of an orientation, R."""
        return 1 if self.dim == 2 else 4

    @cached_property
    def motors(self) -> tuple[int, ...]:
        """The joint of each motor."""
        return tuple([index for index, joint in enumerate(self.joints) if joint.motor])

    @cached_property
    def joint_rows(self) -> int:
        """How many scalar constraints all joints are."""
        return sum([joint.rows(self.dim) for joint in self.joints])

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Pairs (a, b) of bodies that may touch, a < b."""
        never = {tuple(sorted(pair)) for pair in (*self.apart, *((joint.a, joint.b) for joint in self.joints))}
        fixed = set(self.fixed)
        return tuple(
            [
                (a, b)
                for a in range(self.bodies)
                for b in range(a + 1, self.bodies)
                if (a, b) not in never and not {a, b} <= fixed
            ]
        )

    @cached_property
    def candidates(self) -> Candidates:
        """The pairs of features that may touch, M of them."""
        from .geometry.candidates import candidates

        return candidates(self)

    @property
    def contacts(self) -> int:
        """How many candidates have rows: all under the impulse law."""
        return self.candidates.count if self.law == IMPULSE else 0

    @property
    def rows(self) -> int:
        """Scalar constraints on velocities, N: those of the joints, then those of the candidates."""
        return self.joint_rows + self.dim * self.contacts

    @cached_property
    def row_bodies(self) -> Array:
        """Bodies a and b of each row of the joints, then of each candidate, one after the other, [2 (NJ + M)]."""
        of_joints = [(joint.a, joint.b) for joint in self.joints for _ in range(joint.rows(self.dim))]
        found = self.candidates
        of_contacts = list(zip(found.body_a, found.body_b, strict=True))[: self.contacts]
        return np.array([*of_joints, *of_contacts], np.int32).reshape(-1)

    @cached_property
    def free(self) -> Array:
        """Whether forces move a body, 1 or 0, [n]."""
        free = np.ones(self.bodies, np.int32)
        free[list(self.fixed)] = 0
        return free

    @property
    def senses(self) -> int:
        """Numbers of the state that a controller sees, see sense.py."""
        return self.bodies * (self.dim * (self.dim + 1) + self.spins) + self.dim

    @property
    def network(self) -> Network | None:
        """The controller's."""
        if self.controller is None:
            return None
        return self.controller.network(senses=self.senses, outputs=len(self.motors))

    def param_shapes(self) -> Mapping[str, Shape]:
        n, springs = self.bodies, len(self.springs)
        return {
            "mass": (n,),
            "inertia": (n, self.spins),
            "gravity": (self.dim,),
            "friction": (n,),
            "restitution": (n,),
            "contact_stiffness": (),
            "contact_damping": (),
            "spring_stiffness": (springs,),
            "spring_damping": (springs,),
            "spring_length": (springs,),
            "joint_damping": (len(self.joints),),
            "motor_strength": (len(self.motors),),
            **(self.network.shapes() if self.network else NONE),
        }

    def state_shapes(self) -> Mapping[str, Shape]:
        n = self.bodies
        return {
            "position": (n, self.dim),
            "orientation": (n, self.rotations),
            "velocity": (n, self.dim),
            "angular_velocity": (n, self.spins),
        }

    def control_shape(self) -> Shape | None:
        if self.controller:
            return (self.controller.waves,)
        return (len(self.motors),) if self.motors else None

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
    ) -> RigidEngine:
        """The fused loops. Every sum has one order, so that they are deterministic, asked to be or not."""
        from .engine import RigidEngine

        return RigidEngine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def events(self, params: Arrays, states: Arrays, control: Array | None) -> tuple[Event, ...]:
        """Impacts, releases, switches between sticking and slipping, and rest; see simphys.events."""
        from .events import events

        return events(self, params, states, control)

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Which body is the fastest, and what makes a step too long."""
        speed = np.linalg.norm(state["velocity"], axis=-1) + np.linalg.norm(state["angular_velocity"], axis=-1)
        body = int(np.nanargmax(speed))
        far = f"Body {body} is the fastest and moves {np.linalg.norm(state['velocity'][body]) * self.dt:.2g} m a step. "
        if self.law == COMPLIANT or self.springs:
            stiffness = [np.max(params[name], initial=0.0) for name in ("contact_stiffness", "spring_stiffness")]
            longest = 2 * np.sqrt(np.min(params["mass"]) / max(*stiffness, 1e-300))
            return far + f"Contacts and springs of this stiffness need steps below {longest:.2g} s: take a smaller dt."
        return far + "Look at the motors and the masses, or take a smaller dt."


def check_params(params: Arrays) -> None:
    """Raise InputError unless every mass and every moment of inertia is positive."""
    for name, unit in (("mass", "kg"), ("inertia", "kg m^2")):
        least = float(np.min(params[name], initial=np.inf))
        if not least > 0:
            raise InputError(f"rigid: {name}", "positive", f"{least:g} {unit}", "Name a body in `fixed` to hold it.")


def _check(model: RigidBodies) -> None:
    """Raise InputError at the first thing that is wrong."""
    for name, value, allowed in (
        ("dim", model.dim, (2, 3)),
        ("law", model.law, LAWS),
        ("integrator", model.integrator, INTEGRATORS),
    ):
        if value not in allowed:
            raise InputError(f"RigidBodies.{name}", f"one of {allowed}", value, "Choose one of these.")
    if not model.shapes:
        raise InputError("RigidBodies.shapes", "one body or more", "none", "Give the shapes of each body.")
    for name, number in (("dt", model.dt), ("sweeps", model.sweeps), ("slip_speed", model.slip_speed)):
        if not number > 0:
            raise InputError(f"RigidBodies.{name}", "positive", number, "Give a positive one.")
    for body, own in enumerate(model.shapes):
        for shape in own:
            _check_length(f"the offset of a shape of body {body}", shape.offset, model.dim)
            if isinstance(shape, Box):
                _check_length(f"the half extents of a box of body {body}", shape.half, model.dim)
    for plane in model.planes:
        _check_length("the normal of a plane", plane.normal, model.dim)
    for body in (*model.fixed, *(body for pair in model.apart for body in pair)):
        _check_body("RigidBodies.fixed, apart", body, model)
    for index, joint in enumerate(model.joints):
        _check_link(f"joint {index}", joint, model)
        _check_joint(f"joint {index}", joint, model)
    for index, spring in enumerate(model.springs):
        _check_link(f"spring {index}", spring, model)
    if model.controller is not None:
        if not model.motors:
            raise InputError("RigidBodies.controller", "drives motors", "no motor", "Give a joint a motor.")
        _check_length("the controller's goal", model.controller.goal, model.dim)


def _check_link(who: str, link: Joint | Spring, model: RigidBodies) -> None:
    _check_body(who, link.a, model)
    if link.b != WORLD:
        _check_body(who, link.b, model)
    _check_length(f"anchor_a of {who}", link.anchor_a, model.dim)
    _check_length(f"anchor_b of {who}", link.anchor_b, model.dim)


def _check_joint(who: str, joint: Joint, model: RigidBodies) -> None:
    _check_length(f"relative of {who}", joint.relative, model.rotations)
    _check_length(f"axis of {who}", joint.axis, model.dim)
    wants = joint.kind == PRISMATIC or (joint.kind == REVOLUTE and model.dim == 3)
    if wants != (joint.axis is not None):
        constraint = "an axis" if wants else "no axis"
        raise InputError(
            f"rigid: {who}", constraint, str(joint.axis), f"It is {joint.kind}, in {model.dim} dimensions."
        )
    if joint.axis is not None and not abs(sum([each * each for each in joint.axis]) - 1) < 1e-9:
        raise InputError(f"rigid: the axis of {who}", "a unit vector", joint.axis, "Divide it by its length.")


def _check_body(who: str, body: int, model: RigidBodies) -> None:
    if not 0 <= body < model.bodies:
        raise InputError(f"rigid: {who}", f"a body from 0 to {model.bodies - 1}", body, "Name one that there is.")


def _check_length(who: str, vector: Vector | None, count: int) -> None:
    if vector is not None and len(vector) != count:
        raise InputError(f"rigid: {who}", f"{count} numbers", vector, f"It has {len(vector)}.")
