"""Sections of a scene file that describe rigid bodies, their joints and their world."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from simphys.scenefile.section import (
    Body,
    Count,
    Distinct,
    IndexOf,
    Length,
    NonNegative,
    NotZero,
    Positive,
    Section,
    Simulator,
)

Vector = Annotated[list[float], Field(min_length=2, max_length=3), Length("dim")]
OfBody = Annotated[Body, IndexOf("bodies")]
Part = Annotated[float, Field(ge=0, le=1)]


class RigidSimulator(Simulator):
    """law: "impulse", with hard contacts, or "compliant", with contacts that are stiff springs.

    sweeps: number of solver sweeps over all joints and contacts in a step. rest_speed [m/s]: impulse law; impacts
    slower than this do not bounce. slip_speed [m/s]: compliant law; the slip at which friction has 1/sqrt(2) of its
    limit. joint_correction [1]: fraction of a joint's error that one step corrects.
    """

    name: Literal["rigid"]
    law: Literal["impulse", "compliant"] = "impulse"
    sweeps: Count = 20
    rest_speed: NonNegative = 0.2
    slip_speed: Positive = 0.05
    joint_correction: Part = 0.2


class BallSection(Section):
    """A sphere, in the plane a disc. radius [m]; offset: of its centre in the body's frame [m]."""

    kind: Literal["sphere"]
    radius: Positive
    offset: Vector | None = None


class CuboidSection(Section):
    """A box along the axes of the body's frame, in the plane a rectangle.

    half: half extents [m]. offset: of its centre in the body's frame [m].
    """

    kind: Literal["box"]
    half: Annotated[list[Positive], Field(min_length=2, max_length=3), Length("dim")]
    offset: Vector | None = None


class RodSection(Section):
    """All points within a radius [m] of a segment along the body's first axis.

    half_length: of the segment [m]. offset: of its centre in the body's frame [m].
    """

    kind: Literal["capsule"]
    radius: Positive
    half_length: Positive
    offset: Vector | None = None


class BodySection(Section):
    """A rigid body. `position` is the initial position of its centre of mass [m].

    centre: its centre of mass in its frame [m], by default the origin; places of markers are given in this frame.
    Unknowns name it centre_of_mass.

    name: its name in pictures, tables and scripts (`scene.bodies["trunk"]`), and wherever the file has to tell a body;
    by default its number.

    shapes: its contact shapes, none by default. Give density [kg/m^2 or kg/m^3] or mass [kg]. inertia: principal
    moments along the axes of its frame [kg m^2], one in the plane and three in space, or the entries xx, yy, zz, yz, xz
    and xy of its tensor in space; by default those of its shapes, filled uniformly. Unknowns name its root gyration.
    orientation: an angle [rad] in the plane; in space a quaternion (w, x, y, z) or a rotation vector
    [rad]. velocity [m/s] and angular_velocity [rad/s] are in the world frame, 0 by default. friction [1]:
    Coulomb's coefficient. restitution [1]: speed after an impact over the speed before. Two bodies have the mean of
    their coefficients. fixed: no force moves the body, and it needs no mass.
    """

    position: Vector
    shapes: list[Annotated[BallSection | CuboidSection | RodSection, Field(discriminator="kind")]] = []
    density: Positive | None = None
    mass: Positive | None = None
    inertia: Positive | Annotated[list[float], Field(min_length=3, max_length=6)] | None = None
    orientation: float | Annotated[list[float], Field(min_length=3, max_length=4)] | None = None
    velocity: Vector | None = None
    angular_velocity: float | Annotated[list[float], Field(min_length=3, max_length=3)] | None = None
    friction: NonNegative = 0.5
    restitution: Part = 0.0
    fixed: bool = False
    centre: Vector | None = None
    name: Annotated[str, Field(min_length=1)] | None = None


class PlaneSection(Section):
    """A plane that bounds the world: bodies stay where normal . x > offset [m]; the normal [1] may have any length."""

    normal: Annotated[Vector, NotZero()]
    offset: float = 0.0


class JointSection(Section):
    """A joint of body `a` and body `b`, or the world: indices or names. Anchor and axis are initial ones in the world.

    Unknowns name the anchor in the frame of a joint_anchor_a, that in the frame of b joint_anchor_b: they start where
    the poses that [[bodies]] give put the anchor.

    revolute: rotation about the anchor [m], in space about the axis [1] through it. prismatic: a slides along the axis;
    the default anchor is the centre of a. fixed: no relative motion. damping [N m s] or [kg/s]: of the free motion.
    motor [N m or N]: torque or force on a for a control of 1; without it, the joint has no motor.
    start [rad] or [m]: rotation or slide of body a against b, counted from the poses that [[bodies]] give, and rate
    [rad/s] or [m/s]; 0 by default. With one of them, all bodies of a tree of joints move along: their poses follow from
    that of its root, which is the world, a fixed body or the first body, and their velocities from its velocity and the
    rates. Unknowns name them joint_start and joint_rate.
    dry_friction [N m] or [N]: Coulomb's, as the torque or force (2/pi) dry_friction atan(rate / transition_rate)
    against the free motion. transition_rate [rad/s] or [m/s]: within some of it, dry friction changes its sign; 0.1 by
    default; a fit of friction needs one far below the rates of the motion. Unknowns name them joint_dry_friction and
    joint_transition_rate.
    name: for entries of unknowns, such as entries = ["elbow"] of joint_damping or motor_strength.
    """

    kind: Literal["revolute", "prismatic", "fixed"]
    a: OfBody
    b: OfBody | None = None
    anchor: Vector | None = None
    axis: Annotated[Vector, NotZero()] | None = None
    damping: NonNegative = 0.0
    motor: float | None = None
    start: float | None = None
    rate: float | None = None
    dry_friction: NonNegative | None = None
    transition_rate: Positive | None = None
    name: Annotated[str, Field(min_length=1)] | None = None


class SpringSection(Section):
    """A spring-damper between points of body `a` and body `b`, or the world.

    anchor_a [m] and anchor_b [m]: initial positions of its ends. Unknowns name the anchor in the frame of a
    spring_anchor_a, that in the frame of b, or in the world, spring_anchor_b: they start where the poses that
    [[bodies]] give put these positions. stiffness [N/m], damping [kg/s];
    length: rest length [m], by default the distance of these positions, whichever anchors are found.
    name: for entries of unknowns, such as entries = ["tether"] of spring_stiffness.
    """

    a: OfBody
    b: OfBody | None = None
    anchor_a: Vector
    anchor_b: Vector
    stiffness: NonNegative
    damping: NonNegative = 0.0
    length: NonNegative | None = None
    name: Annotated[str, Field(min_length=1)] | None = None


class EnvironmentSection(Section):
    """Gravity [m/s^2], none by default."""

    gravity: Vector | None = None


class ContactSection(Section):
    """Parameters of the compliant law: stiffness [N/m], force per depth, and damping [s/m], relative to that force.

    apart: pairs of bodies, by their indices or names, that never touch, in addition to pairs connected by a joint.
    """

    stiffness: Positive | None = None
    damping: NonNegative = 0.0
    apart: list[Annotated[list[OfBody], Field(min_length=2, max_length=2), Distinct()]] = []
