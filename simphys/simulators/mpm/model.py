"""The model of a material-point simulation: particles and their constitutive laws, the grid, walls, rigid colliders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from simphys.autograd import Tensor, runtime
from simphys.autograd.errors import InputError
from simphys.simulator import Arrays, Bodies, Model, Record, Shape
from simphys.simulator.model_checks import (
    read_whole_numbers,
    require_counts,
    require_grid,
    require_not_negative_fields,
    require_sides,
)
from simphys.simulator.physical import require_positive
from simphys.simulator.space import OnGrid

from .collider import CONTACTS, Collider
from .laws import LAWS


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient.

    A parameter of constitutive laws has an entry for each particle if a law of the model uses it, else shape [0].
    """

    mass: Tensor
    """Mass of each particle [kg], [n]."""
    volume: Tensor
    """Volume of each particle at rest [m^2 or m^3], [n]."""
    young_modulus: Tensor
    """Young's modulus E [Pa], [n]."""
    poisson_ratio: Tensor
    """Poisson's ratio nu, between -1 and 1/2, [n]."""
    bulk_modulus: Tensor
    """Bulk modulus of a fluid, density times the square of the speed of sound [Pa], [n]."""
    yield_stress: Tensor
    """Yield stress of von Mises plasticity in uniaxial tension [Pa], [n]."""
    friction_angle: Tensor
    """Friction angle phi of sand [rad], [n]."""
    hardening: Tensor
    """Hardening coefficient xi of snow, [n]."""
    critical_compression: Tensor
    """Critical compression theta_c of snow, the fraction by which a principal stretch shrinks elastically, [n]."""
    critical_stretch: Tensor
    """Critical stretch theta_s of snow, the fraction by which a principal stretch grows elastically, [n]."""
    gravity: Tensor
    """Gravitational acceleration [m/s^2], [dim]."""
    wall_friction: Tensor
    """Coulomb friction coefficient of the walls with friction, []."""
    collider_velocity: Tensor
    """Velocity of the centre of each collider [m/s], [K, dim]; a control adds to it."""
    collider_spin: Tensor
    """Angular velocity of each collider [rad/s], [K, 1] in 2-D, [K, 3] in 3-D; a control adds to it."""
    collider_friction: Tensor
    """Coulomb friction coefficient of each collider with friction, [K]."""


@dataclass(frozen=True)
class State(Record):
    """Position, velocity and deformation of the particles, and poses of the colliders."""

    position: Tensor
    """Positions of the particles [m], [n, dim]."""
    velocity: Tensor
    """Velocities of the particles [m/s], [n, dim]."""
    affine: Tensor
    """Velocity gradient C of each particle (APIC) [1/s], [n, dim, dim]."""
    deformation: Tensor
    """Elastic deformation gradient F, without the plastic part, [n, dim, dim]."""
    plastic: Tensor
    """Hidden variable of plastic laws (see each law), [n]; [0] if no law of the model has one."""
    collider_position: Tensor
    """Positions of the colliders' centres [m], [K, dim]."""
    collider_rotation: Tensor
    """Angles [rad], [K, 1], in 2-D; unit quaternions (w, x, y, z), [K, 4], in 3-D."""


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
    units: ClassVar[Mapping[str, str]] = {"affine": "1/s", "deformation": "", "collider_position": "m"}
    """Units of fields of the state, for recordings and pictures."""

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
        n, K = self.particles, len(self.colliders)
        read = {name for law in self.laws for name in LAWS[law].PARAMETERS}
        shapes: dict[str, Shape] = {name: (n if name in read else 0,) for name in Params.names()}
        return shapes | {
            "mass": (n,),
            "volume": (n,),
            "gravity": (self.dim,),
            "wall_friction": (),
            "collider_velocity": (K, self.dim),
            "collider_spin": (K, self.spins),
            "collider_friction": (K,),
        }

    def state_shapes(self) -> Mapping[str, Shape]:
        n, dim, K = self.particles, self.dim, len(self.colliders)
        return {
            "position": (n, dim),
            "velocity": (n, dim),
            "affine": (n, dim, dim),
            "deformation": (n, dim, dim),
            "plastic": (n if self.is_plastic else 0,),
            "collider_position": (K, dim),
            "collider_rotation": (K, self.rotations),
        }

    def control_shape(self) -> Shape | None:
        return (self.actuators + len(self.colliders) * (self.dim + self.spins),)

    def describe_bodies(self, params: Arrays) -> Bodies:
        return Bodies(pinned=np.zeros(self.particles, dtype=bool), own=self.particles, group=self.group)


def check_params(params: Arrays) -> None:
    """Raise UnphysicalValue unless masses and volumes are positive."""
    require_positive("mpm", params, "mass", "volume")


def _require(holds: Any, name: str, constraint: str, found: object, remedy: str) -> None:
    if not holds:
        raise InputError(f"MPM.{name}", constraint, found, remedy)
