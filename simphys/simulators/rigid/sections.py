"""The sections of a scene file that describe rigid bodies, their joints and their world."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from simphys.scenefile.section import Count, Index, NonNegative, Positive, Section, Simulator

Vector = Annotated[list[float], Field(min_length=2, max_length=3)]
Part = Annotated[float, Field(ge=0, le=1)]


class RigidSimulator(Simulator):
    """law: of contacts; "impulse", whose contacts are hard, or "compliant", whose contacts are stiff springs.

    integrator: "semi_implicit_euler", of first order, or "variational", of second order, which keeps the energy of free
    bodies that tumble in space. sweeps: of the solver over all joints and contacts in a step. rest_speed [m/s]: impulse
    law; an impact that is slower does not bounce. slip_speed [m/s]: compliant law; the slip at which friction has most
    of its limit. joint_correction: part of a joint's error that a step takes away.
    """

    name: Literal["rigid"]
    law: Literal["impulse", "compliant"] = "impulse"
    integrator: Literal["semi_implicit_euler", "variational"] = "semi_implicit_euler"
    sweeps: Count = 20
    rest_speed: NonNegative = 0.2
    slip_speed: Positive = 0.05
    joint_correction: Part = 0.2


class Ball(Section):
    """A sphere, in the plane a disc [m]. offset: of its centre in the body's frame."""

    kind: Literal["sphere"]
    radius: Positive
    offset: Vector | None = None


class Cuboid(Section):
    """A box along the axes of the body's frame, in the plane a rectangle. half: of each of its extents [m]."""

    kind: Literal["box"]
    half: Annotated[list[Positive], Field(min_length=2, max_length=3)]
    offset: Vector | None = None


class Rod(Section):
    """All points within a radius of a segment along the first axis of the body's frame, from -half_length on [m]."""

    kind: Literal["capsule"]
    radius: Positive
    half_length: Positive
    offset: Vector | None = None


class Body(Section):
    """A rigid body. The origin of its frame is its centre of mass, where `position` is at the start [m].

    shapes: those that it touches others with, none by default. density [kg/m^2 or kg/m^3] or mass [kg]; inertia: its
    principal moments along the axes of its frame [kg m^2], one in the plane and three in space, by default those of its
    shapes filled evenly. orientation: an angle [rad] in the plane; in space a quaternion (w, x, y, z) or a rotation
    vector [rad]. velocity [m/s] and angular_velocity [rad/s], in the world's frame, 0 by default. friction: Coulomb's
    coefficient, restitution: speed after over speed before an impact; of two bodies their means count. fixed: nothing
    moves it; a fixed body needs no mass.
    """

    position: Vector
    shapes: list[Annotated[Ball | Cuboid | Rod, Field(discriminator="kind")]] = []
    density: Positive | None = None
    mass: Positive | None = None
    inertia: Positive | Annotated[list[Positive], Field(min_length=3, max_length=3)] | None = None
    orientation: float | Annotated[list[float], Field(min_length=3, max_length=4)] | None = None
    velocity: Vector | None = None
    angular_velocity: float | Annotated[list[float], Field(min_length=3, max_length=3)] | None = None
    friction: NonNegative = 0.5
    restitution: Part = 0.0
    fixed: bool = False


class PlaneSection(Section):
    """A plane that bounds the world: bodies are where normal . x > offset [m]; the normal may have any length."""

    normal: Vector
    offset: float = 0.0


class JointSection(Section):
    """Joins body `a` to body `b`, or to the world; bodies are indices, anchor and axis those of the start in the world.

    revolute: both turn about the anchor [m], in space about the axis through it. prismatic: a slides along the axis;
    its anchor is the centre of a by default. fixed: nothing is left free. damping [N m s] or [kg/s] of what is left
    free. motor: the torque [N m] or the force [N] on a that a control of 1 is; a joint without it has no motor.
    """

    kind: Literal["revolute", "prismatic", "fixed"]
    a: Index
    b: Index | None = None
    anchor: Vector | None = None
    axis: Vector | None = None
    damping: NonNegative = 0.0
    motor: float | None = None


class SpringSection(Section):
    """A spring with a damper between points of body `a` and body `b`, or the world: places of the start [m].

    stiffness [N/m], damping [kg/s]; length [m] without force, by default that at the start.
    """

    a: Index
    b: Index | None = None
    anchor_a: Vector
    anchor_b: Vector
    stiffness: NonNegative
    damping: NonNegative = 0.0
    length: NonNegative | None = None


class Environment(Section):
    """Gravity [m/s^2], none by default."""

    gravity: Vector | None = None


class Contact(Section):
    """stiffness [N/m], the force a depth, and damping [s/m], relative to that force: of the compliant law.

    apart: pairs of bodies, by their indices, that never touch, besides those that a joint joins.
    """

    stiffness: Positive | None = None
    damping: NonNegative = 0.0
    apart: list[Annotated[list[Index], Field(min_length=2, max_length=2)]] = []


class ControllerSection(Section):
    """A network from the control, which then is a pattern, and what it senses of all bodies to the motors.

    hidden: units of its hidden layer. goal: a point that it is told of [m], as the distance from the middle. scale: by
    which positions and velocities are multiplied before they go in. seed: of the weights to begin with; unknowns call
    these hidden_weight, hidden_bias, output_weight and output_bias.
    """

    hidden: Count = 32
    goal: Vector
    scale: Positive = 0.05
    seed: Index = 0
