"""The sections of a scene file that describe material points, grid and colliders, and the arrays made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.section import Count, Fields, Index, NonNegative, Positive, Section, Simulator
from simphys.simulators.mpm.collider import Collider
from simphys.simulators.mpm.laws import LAW_PARAMETERS, LAWS
from simphys.simulators.mpm.model import MPM
from simphys.simulators.mpm.seeding import fill_ball, fill_box, lattice

Vector = Annotated[list[float], Field(min_length=2, max_length=3)]
Contact = Literal["sticking", "slip", "separating", "friction"]
Face = Literal["x-", "x+", "y-", "y+", "z-", "z+"]

FACES: tuple[Face, ...] = ("x-", "x+", "y-", "y+", "z-", "z+")

DEFAULTS = {"hardening": 10.0, "critical_compression": 2.5e-2, "critical_stretch": 7.5e-3}
"""Default values of some parameters of laws: Stomakhin et al. 2013, table 2."""
SHAPE_KEYS = {"box": ("lower", "upper"), "ball": ("centre", "radius"), "lattice": ("origin", "counts")}
"""Keys that describe each shape of a body."""
MASS_FLOOR = 1e-10
"""Mass floor of the model, relative to the lightest particle."""
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
    walls: Contact | dict[Face, Contact] = "separating"
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
    counts: Annotated[list[Count], Field(min_length=2, max_length=3)] | None = None
    per_cell: Count | None = None
    particle_spacing: Positive | None = None
    law: str = "fixed_corotated"
    density: Positive | None = None
    particle_mass: Positive | None = None
    particle_volume: Positive | None = None
    young_modulus: float | None = None
    poisson_ratio: float | None = None
    bulk_modulus: float | None = None
    yield_stress: float | None = None
    friction_angle: float | None = None
    hardening: float | None = None
    critical_compression: float | None = None
    critical_stretch: float | None = None
    velocity: Vector | None = None
    actuator: Index | None = None
    fibre: Vector | None = None
    name: Annotated[str, Field(min_length=1)] | None = None


class EnvironmentSection(Section):
    """The environment: gravity [m/s^2], 0 by default."""

    gravity: Vector | None = None


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
    rotation: float | Annotated[list[float], Field(min_length=4, max_length=4)] | None = None
    velocity: Vector | None = None
    spin: float | Annotated[list[float], Field(min_length=3, max_length=3)] | None = None


@dataclass(frozen=True, eq=False)
class Seeding:
    """The particles of each body: positions [n, dim], and the volume of each particle."""

    bodies: list[tuple[np.ndarray, float]]


def particle_spacing(body: BodySection, grid: GridSection) -> float:
    """Compute the spacing of a body's particles [m]."""
    return body.particle_spacing or grid.spacing / (body.per_cell or PER_CELL)


def particles(body: BodySection, grid: GridSection) -> tuple[np.ndarray, float]:
    """Compute the positions [n, dim] of a body's particles, and the volume that each represents."""
    spacing = particle_spacing(body, grid)
    match body.shape:
        case "box":
            assert body.lower is not None and body.upper is not None, "checked when the scene was loaded"
            return fill_box(body.lower, body.upper, spacing)
        case "ball":
            assert body.centre is not None and body.radius is not None, "checked when the scene was loaded"
            return fill_ball(body.centre, body.radius, spacing)
        case "lattice":
            assert body.origin is not None and body.counts is not None, "checked when the scene was loaded"
            return lattice(body.origin, body.counts, spacing), spacing ** len(body.counts)


def particle_volume(body: BodySection, share: float) -> float:
    """Return the volume of each particle of a body; `share` is its share of the body's volume."""
    return body.particle_volume or share


def particle_mass(body: BodySection, share: float) -> float:
    """Return the mass of each particle of a body."""
    return body.particle_mass or (body.density or 0.0) * particle_volume(body, share)


def laws_of(bodies: Sequence[BodySection]) -> tuple[str, ...]:
    """List the laws in use, in the order in which bodies name them."""
    return tuple(dict.fromkeys(body.law for body in bodies))


def build_fields(config: Any) -> Fields:
    """Build every parameter and state field at full size.

    A parameter that only some of the laws use is 0 for the particles of the other laws.
    """
    grid, bodies, environment, colliders = config.grid, config.bodies, config.environment, config.colliders
    dim = len(grid.cells)
    seeding = config.seeding.bodies
    counts = [len(position) for position, _ in seeding]
    n, laws = sum(counts), laws_of(bodies)

    def repeat(values: Sequence[Any]) -> np.ndarray:
        """Repeat the value of each body for all of its particles."""
        return np.repeat(np.asarray(values, dtype=float), counts, axis=0)

    volume = [particle_volume(body, share) for body, (_, share) in zip(bodies, seeding, strict=True)]
    mass = [particle_mass(body, share) for body, (_, share) in zip(bodies, seeding, strict=True)]
    spins, rotations = (1, 1) if dim == 2 else (3, 4)
    params = {
        "mass": repeat(mass),
        "volume": repeat(volume),
        "gravity": np.array(environment.gravity or [0.0] * dim),
        "wall_friction": np.array(grid.wall_friction),
        "collider_velocity": _stack_rows([c.velocity or [0.0] * dim for c in colliders], dim),
        "collider_spin": _stack_rows([c.spin or [0.0] * spins for c in colliders], spins),
        "collider_friction": np.array([c.friction for c in colliders], dtype=float),
    }
    for name in LAW_PARAMETERS:
        reads = [name in LAWS[body.law].PARAMETERS for body in bodies]
        values = [parameter(body, name) if read else 0.0 for body, read in zip(bodies, reads, strict=True)]
        params[name] = repeat(values) if any(reads) else np.zeros(0)
    rest = {law: LAWS[law].REST for law in laws}
    hidden = any(LAWS[law].HIDDEN for law in laws)
    state = {
        "position": np.concatenate([position for position, _ in seeding]),
        "velocity": repeat([body.velocity or [0.0] * dim for body in bodies]),
        "affine": np.zeros((n, dim, dim)),
        "deformation": np.tile(np.eye(dim), (n, 1, 1)),
        "plastic": repeat([rest[body.law] for body in bodies]) if hidden else np.zeros(0),
        "collider_position": _stack_rows([c.position for c in colliders], dim),
        "collider_rotation": _stack_rows([rotation(c, dim) for c in colliders], rotations),
    }
    actuators = max([-1 if body.actuator is None else body.actuator for body in bodies]) + 1
    channels = actuators + len(colliders) * (dim + spins)
    return Fields(params=params, state=state, nodes=n, channels=channels or None)


def parameter(body: BodySection, name: str) -> float | None:
    """Return a parameter of a body's law, or its default; None if it has neither."""
    value: float | None = getattr(body, name)
    return DEFAULTS.get(name) if value is None else value


def rotation(collider: ColliderSection, dim: int) -> np.ndarray:
    """Return the initial rotation: an angle [1], or a unit quaternion [4]."""
    if dim == 2:
        return np.atleast_1d(np.asarray(collider.rotation or 0.0, dtype=float))
    quaternion = np.asarray(collider.rotation or [1.0, 0.0, 0.0, 0.0], dtype=float)
    return quaternion / np.linalg.norm(quaternion)


def build_model(config: Any) -> MPM:
    """Build the model of a validated scene."""
    grid, sections = config.grid, config.bodies
    dim, laws = len(grid.cells), laws_of(sections)
    seeding = config.seeding.bodies
    counts = [len(position) for position, _ in seeding]
    lightest = min(particle_mass(body, share) for body, (_, share) in zip(sections, seeding, strict=True))
    actuator = np.repeat([-1 if b.actuator is None else b.actuator for b in sections], counts).astype(np.int32)
    fibre = np.array([b.fibre or [0.0] * (dim - 1) + [1.0] for b in sections], dtype=float)
    fibre /= np.linalg.norm(fibre, axis=1, keepdims=True)
    walls = grid.walls if isinstance(grid.walls, dict) else dict.fromkeys(FACES, grid.walls)
    return MPM(
        cells=tuple(grid.cells),
        spacing=grid.spacing,
        dt=config.time.dt,
        particles=sum(counts),
        laws=laws,
        law=np.repeat([laws.index(b.law) for b in sections], counts).astype(np.int32) if len(laws) > 1 else None,
        actuator=actuator if actuator.max() >= 0 else None,
        fibre=np.repeat(fibre, counts, axis=0) if any(b.fibre for b in sections) else None,
        walls=tuple(walls.get(face, "separating") for face in FACES[: 2 * dim]),
        margin=grid.margin,
        colliders=tuple(Collider(c.shape, tuple(c.size), c.contact) for c in config.colliders),
        skin=grid.skin or 0.0,
        mass_floor=MASS_FLOOR * lightest,
        group=np.repeat(np.arange(len(sections), dtype=np.int32), counts),
    )


def _stack_rows(rows: Sequence[Any], width: int) -> np.ndarray:
    return np.array([np.ravel(row) for row in rows], dtype=float).reshape(-1, width)
