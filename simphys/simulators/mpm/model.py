"""The model of a material-point simulation: particles and their constitutive laws, the grid, walls, rigid colliders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from simphys.autograd import Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.simulator import Arrays, Bodies, Model, Record, Shape, declare
from simphys.simulator.model_checks import (
    read_whole_numbers,
    require_counts,
    require_grid,
    require_not_negative_fields,
    require_sides,
)
from simphys.simulator.space import OnGrid

from .collider import CONTACTS, Collider
from .laws import LAW_PARAMETERS, LAWS


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient.

    A parameter of constitutive laws has an entry for each particle if a law of the model uses it, else shape [0].
    """

    mass: Tensor = declare("particles", "kg", sign="positive")
    """Mass of each particle."""
    volume: Tensor = declare("particles", "m^dim", sign="positive")
    """Volume of each particle at rest."""
    young_modulus: Tensor = declare("particles", "Pa")
    """Young's modulus E."""
    poisson_ratio: Tensor = declare("particles", "1")
    """Poisson's ratio nu, between -1 and 1/2."""
    bulk_modulus: Tensor = declare("particles", "Pa")
    """Bulk modulus of a fluid, density times the square of the speed of sound."""
    yield_stress: Tensor = declare("particles", "Pa")
    """Yield stress of von Mises plasticity in uniaxial tension."""
    friction_angle: Tensor = declare("particles", "rad")
    """Friction angle phi of sand."""
    hardening: Tensor = declare("particles", "1")
    """Hardening coefficient xi of snow."""
    critical_compression: Tensor = declare("particles", "1")
    """Critical compression theta_c of snow, the fraction by which a principal stretch shrinks elastically."""
    critical_stretch: Tensor = declare("particles", "1")
    """Critical stretch theta_s of snow, the fraction by which a principal stretch grows elastically."""
    gravity: Tensor = declare("dim", "m/s^2", section="environment", standard=0.0)
    """Gravitational acceleration."""
    wall_friction: Tensor = declare("", "1", section="grid")
    """Coulomb friction coefficient of the walls with friction."""
    collider_velocity: Tensor = declare("colliders, dim", "m/s")
    """Velocity of the centre of each collider; a control adds to it."""
    collider_spin: Tensor = declare("colliders, spins", "rad/s")
    """Angular velocity of each collider; a control adds to it."""
    collider_friction: Tensor = declare("colliders", "1")
    """Coulomb friction coefficient of each collider with friction."""


@dataclass(frozen=True)
class State(Record):
    """Position, velocity and deformation of the particles, and poses of the colliders."""

    position: Tensor = declare("particles, dim", "m")
    """Positions of the particles."""
    velocity: Tensor = declare("particles, dim", "m/s")
    """Velocities of the particles."""
    affine: Tensor = declare("particles, dim, dim", "1/s")
    """Velocity gradient C of each particle (APIC)."""
    deformation: Tensor = declare("particles, dim, dim", "1")
    """Elastic deformation gradient F, without the plastic part."""
    plastic: Tensor = declare("particles", "1", only_if="is_plastic")
    """Hidden variable of plastic laws (see each law)."""
    collider_position: Tensor = declare("colliders, dim", "m")
    """Positions of the colliders' centres."""
    collider_rotation: Tensor = declare("colliders, rotations", "rad, 1")
    """Angles in 2-D; unit quaternions (w, x, y, z) in 3-D."""


@dataclass(frozen=True)
class MPM(OnGrid, Model):
    """MLS-MPM: everything without a gradient.

    Node i of the grid is at i * spacing, with i from 0 to cells - 1 along each axis. The control of a step holds the
    stress [Pa] of each actuator along its fibres. Then follow additions to the velocities of the colliders [m/s]
    (collider by collider), and to their spins [rad/s].
    """

    cells: tuple[int, ...]
    """Number of grid nodes along each of 2 or 3 axes."""
    spacing: float
    """Spacing of the nodes, dx [m]."""
    dt: float
    """Time step [s]."""
    particles: int
    """Number of particles, n."""
    laws: tuple[str, ...] = ("fixed_corotated",)
    """Constitutive laws in use, of `laws.LAWS`."""
    law: npt.NDArray[np.int32] | None = None
    """Index in `laws` of each particle's law, [n]; None: all have the first one."""
    actuator: npt.NDArray[np.int32] | None = None
    """Number of the actuator of each particle, from 0, or -1 for none, [n]; None: there are no actuators."""
    fibre: npt.NDArray[np.float64] | None = None
    """Unit vector of each particle's fibre at rest, [n, dim]; None: the last axis."""
    walls: tuple[str, ...] = ()
    """Contact condition of the faces x-, x+, y-, ... of the grid, of CONTACTS; (): all are separating."""
    margin: int = 3
    """Width of the walls, which occupy the nodes i < margin and i > cells - margin. Below 3, upper ones are void."""
    colliders: tuple[Collider, ...] = ()
    skin: float = 0.0
    """Thickness of the layer over which a collider's contact sets in smoothly [m]; 0: one spacing."""
    group: npt.NDArray[np.int32] | None = None
    """Index of the piece of material that each particle belongs to, for pictures, [n]; None: all are one piece."""
    mass_floor: float = 1e-10
    """Mass added to each node so that empty nodes have a velocity [kg]; small compared with a particle's."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_grid(self, 2, 3)
        require_counts(self, particles=1, margin=0)
        require_not_negative_fields(self, "skin", "mass_floor")
        least = 2 * self.margin + 2
        enough = min(self.cells) >= least and self.margin >= 1
        constraint = f"must have at least {least} nodes along each axis, with a margin of at least 1"
        _require(enough, "cells", constraint, self.cells, "Give more nodes, or another margin.")
        known = len(self.laws) > 0 and set(self.laws) <= set(LAWS) and len(set(self.laws)) == len(self.laws)
        _require(known, "laws", f"must be different ones of {tuple(LAWS)}", self.laws, "Choose from these.")
        require_sides(self, "walls", CONTACTS, "separating")
        for name, most in (("law", len(self.laws) - 1), ("actuator", None)):
            given = getattr(self, name)
            if given is not None:
                given = read_whole_numbers(f"MPM.{name}", given)
                object.__setattr__(self, name, given)
                fits = given.shape == (self.particles,) and given.min() >= (0 if name == "law" else -1)
                fits = fits and (most is None or given.max() <= most)
                constraint = f"must hold one valid number for each of {self.particles} particles"
                _require(fits, name, constraint, given, "Correct it.")
        if not self.skin:
            object.__setattr__(self, "skin", self.spacing)
        for collider in self.colliders:
            collider.require_valid(self.dim)

    @property
    def nodes(self) -> int:
        """Number of grid nodes."""
        return int(np.prod(self.cells))

    @cached_property
    def actuators(self) -> int:
        """Number of actuators."""
        return 0 if self.actuator is None else int(self.actuator.max()) + 1

    @cached_property
    def fibres(self) -> Any:
        """Direction of each particle's fibre at rest, [n, dim]."""
        if self.fibre is not None:
            return np.asarray(self.fibre, runtime.real_dtype())
        return np.tile(np.eye(self.dim, dtype=runtime.real_dtype())[-1], (self.particles, 1))

    @property
    def ends(self) -> tuple[float, ...]:
        """Largest coordinates of a particle along the axes, filled up by 0 to three [m]."""
        return (*[(count - 1.5) * self.spacing for count in self.cells], 0.0)[:3]

    @property
    def spins(self) -> int:
        """Number of components of an angular velocity."""
        return 1 if self.dim == 2 else 3

    @property
    def rotations(self) -> int:
        """Number of components of a rotation."""
        return 1 if self.dim == 2 else 4

    @cached_property
    def law_numbers(self) -> Any:
        """Index of each particle's law as a real number, as kernels take it, [n]."""
        return np.asarray(self.law, runtime.real_dtype())

    @cached_property
    def is_plastic(self) -> bool:
        """True if a law of the model has a hidden variable."""
        return any(LAWS[name].HIDDEN for name in self.laws)

    @cached_property
    def width(self) -> int:
        """Number of coefficients of a particle, see constitutive.py."""
        return max(len(LAWS[name].COEFFICIENTS) for name in self.laws)

    def param_shapes(self) -> Mapping[str, Shape]:
        unused = set(LAW_PARAMETERS) - {name for law in self.laws for name in LAWS[law].PARAMETERS}
        return {**super().param_shapes(), **dict.fromkeys(unused, (0,))}

    def control_shape(self) -> Shape | None:
        return (self.actuators + len(self.colliders) * (self.dim + self.spins),)

    def describe_bodies(self, params: Arrays) -> Bodies:
        return Bodies(pinned=np.zeros(self.particles, dtype=bool), own=self.particles, group=self.group)


def _require(holds: Any, name: str, constraint: str, found: object, remedy: str) -> None:
    if not holds:
        raise InputError(f"MPM.{name}", constraint, found, remedy)
