"""What a system of rigid bodies is: shapes, joints and laws, its parameters and its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..autograd import Tensor
from ..nn import Controller, Network
from ..nn.network import NONE
from ..simulator import Array, Arrays, Record, Shape
from .checks import COMPLIANT, EULER, IMPULSE, VARIATIONAL, check
from .joint import Joint, Spring
from .shapes import Plane
from .shapes import Shape as BodyShape

if TYPE_CHECKING:
    from ..events import Event
    from .engine import RigidEngine
    from .geometry.candidates import Candidates


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
    integrator: str = EULER
    """semi_implicit_euler: forces act at the start of a step, then bodies move; of first order.

    variational: bodies move for half of a step, forces act, bodies move on. Symplectic, and of second order for forces
    that do not depend on velocities, but for impacts of bodies that something holds; in space bodies turn by a
    variational integrator of rotations, see variational.py.
    """
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
        check(self)

    @property
    def carries(self) -> bool:
        """Whether spins follow the angular momentum within a step, see mobility.py."""
        return self.dim == 3 and self.integrator == VARIATIONAL

    @property
    def units(self) -> Mapping[str, str]:
        """Of the fields of a state."""
        turn = "rad" if self.dim == 2 else ""
        return {"position": "m", "orientation": turn, "velocity": "m/s", "angular_velocity": "rad/s"}

    @property
    def span(self) -> float:
        """From where forces act to the end of a step [s]."""
        return self.dt / 2 if self.integrator == VARIATIONAL else self.dt

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
