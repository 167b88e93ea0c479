"""The sections of a scene file that describe material points, grid and colliders; particles of a body."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Count, Index, Length, NonNegative, NotZero, Positive, Section, Simulator
from simphys.scenefile.shared import Side, place_lattice
from simphys.simulator import Array

from .collider import Collider
from .seeding import fill_ball, fill_box

Vector = Annotated[list[float], Field(min_length=2, max_length=3), Length("dim")]
Contact = Literal["sticking", "slip", "separating", "friction"]

DEFAULTS = {"hardening": 10.0, "critical_compression": 2.5e-2, "critical_stretch": 7.5e-3}
"""Default values of some parameters of laws: Stomakhin et al. 2013, table 2."""
SHAPE_KEYS = {"box": ("lower", "upper"), "ball": ("centre", "radius"), "lattice": ("origin", "counts")}
"""Keys that describe each shape of a body."""
PER_CELL = 2
"""Default number of particles along each axis of a cell."""


class MPMSimulator(Simulator):
    """The simulator section, which has no options of its own."""

    name: Literal["mpm"]


class GridSection(Section):
    """The grid: number of nodes along each axis, their spacing [m], and the walls, `margin` nodes inside of the grid.

    walls: contact condition of all faces, or a table such as { "y-" = "sticking" }, with all other faces separating.
    wall_friction [1]: Coulomb friction coefficient of walls with friction. skin: thickness of the layer over which the
    contact with colliders sets in [m], by default one spacing.
    """

    cells: Annotated[list[Count], Field(min_length=2, max_length=3)]
    spacing: Positive
    margin: Count = 3
    walls: Contact | dict[Side, Contact] = "separating"
    wall_friction: NonNegative = 0.0
    skin: Positive | None = None


class BodySection(Section):
    """A piece of material, filled with particles on a regular lattice.

    shape: "box" from `lower` to `upper` corner [m]; "ball" around `centre` with `radius` [m]; "lattice" of `counts`
    particles along the axes, the first of which is at `origin` [m]. Particles are `particle_spacing` [m] apart (rounded
    in a box, to fill it evenly). Alternatively `per_cell` is their number along each axis of a grid cell, by default 2.
    law: the constitutive law, with the parameters that it uses: young_modulus [Pa], poisson_ratio [1], bulk_modulus
    [Pa], yield_stress [Pa], friction_angle [rad], hardening [1], critical_compression [1], critical_stretch [1].
    density [kg/m^2 or kg/m^3], or particle_mass [kg]; particle_volume [m^2 or m^3], by default that of the lattice.
    velocity [m/s], 0 by default. actuator: number of the actuator that stresses the body along `fibre` [1], of any
    length, by default the last axis.
    name: its name in pictures and scripts (`scene.bodies["leg"]`), which pieces may share; by default its number.
    """

    shape: Literal["box", "ball", "lattice"]
    lower: Vector | None = None
    upper: Vector | None = None
    centre: Vector | None = None
    radius: Positive | None = None
    origin: Vector | None = None
    counts: Annotated[list[Count], Field(min_length=2, max_length=3), Length("dim")] | None = None
    per_cell: Count | None = None
    particle_spacing: Positive | None = None
    law: str = "fixed_corotated"
    density: Positive | None = None
    particle_mass: Positive | None = None
    particle_volume: Positive | None = None
    young_modulus: Positive | None = None
    poisson_ratio: Annotated[float, Field(gt=-1, lt=0.5)] | None = None
    bulk_modulus: Positive | None = None
    yield_stress: Positive | None = None
    friction_angle: Annotated[float, Field(gt=0, lt=np.pi / 2)] | None = None
    hardening: NonNegative | None = None
    critical_compression: Annotated[float, Field(gt=0, lt=1)] | None = None
    critical_stretch: Positive | None = None
    velocity: Vector | None = None
    actuator: Index | None = None
    fibre: Annotated[Vector, NotZero()] | None = None
    name: Annotated[str, Field(min_length=1)] | None = None

    def parameter(self, name: str) -> float | None:
        """Return a parameter of the body's law, or its default; None if it has neither."""
        value: float | None = getattr(self, name)
        return DEFAULTS.get(name) if value is None else value

    def find_spacing(self, grid: GridSection) -> float:
        """Compute the spacing of the body's particles [m]."""
        return self.particle_spacing or grid.spacing / (self.per_cell or PER_CELL)

    def seed(self, grid: GridSection) -> tuple[Array, float]:
        """Compute the positions [n, dim] of the body's particles, and the volume that each represents."""
        spacing = self.find_spacing(grid)
        match self.shape:
            case "box":
                assert self.lower is not None and self.upper is not None, "checked when the scene was loaded"
                return fill_box(self.lower, self.upper, spacing)
            case "ball":
                assert self.centre is not None and self.radius is not None, "checked when the scene was loaded"
                return fill_ball(self.centre, self.radius, spacing)
            case "lattice":
                assert self.origin is not None and self.counts is not None, "checked when the scene was loaded"
                return place_lattice(self.origin, self.counts, spacing), spacing ** len(self.counts)


class ColliderSection(Section):
    """A rigid body at a position [m] that moves at a given velocity [m/s] and spin [rad/s] and pushes the material.

    size [m]: a sphere's radius; half of each edge of a box; half of the distance between a capsule's centres, and its
    radius; a plane has none. Before rotation a capsule lies along the first axis, and a plane's normal, which points
    into the material, along the last. rotation: an angle [rad] in 2-D, a quaternion (w, x, y, z) in 3-D. spin: a number
    in 2-D, a vector in 3-D. friction [1]: Coulomb coefficient of the contact "friction".
    """

    shape: Literal["sphere", "box", "capsule", "plane"]
    position: Vector
    size: list[Positive] = []
    contact: Contact = "separating"
    friction: NonNegative = 0.0
    rotation: float | Annotated[list[float], Field(min_length=4, max_length=4), NotZero()] | None = None
    velocity: Vector | None = None
    spin: float | Annotated[list[float], Field(min_length=3, max_length=3)] | None = None

    def make(self) -> Collider:
        """Make the collider of the model."""
        return Collider(self.shape, tuple(self.size), self.contact)

    @property
    def start(self) -> Array:
        """The initial rotation: an angle [1], or a unit quaternion [4]."""
        if len(self.position) == 2:
            return np.atleast_1d(np.asarray(self.rotation or 0.0, dtype=float))
        quaternion = np.asarray(self.rotation or [1.0, 0.0, 0.0, 0.0], dtype=float)
        return quaternion / np.linalg.norm(quaternion)
