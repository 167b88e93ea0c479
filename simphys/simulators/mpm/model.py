"""What a material-point simulation is: particles, their constitutive laws, the grid with its walls, rigid colliders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays, Record, Shape

from .collider import CONTACTS, Collider
from .laws import LAWS

if TYPE_CHECKING:
    from .engine import MPMEngine

OF_COLLIDERS = ("collider_velocity", "collider_spin", "collider_friction")
"""Fields of Params of colliders; the other ones but gravity and wall_friction are of particles."""


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient.

    Those of constitutive laws have an entry for each particle where a law of the model reads them, else none: [0].
    """

    mass: Tensor
    """Of each particle [kg], [n]."""
    volume: Tensor
    """Of each particle at rest [m^2 or m^3], [n]."""
    young_modulus: Tensor
    """E [Pa], [n]."""
    poisson_ratio: Tensor
    """nu, between -1 and 1/2, [n]."""
    bulk_modulus: Tensor
    """Of a fluid: density times the square of the speed of sound [Pa], [n]."""
    yield_stress: Tensor
    """Of von Mises: where flow begins in uniaxial tension [Pa], [n]."""
    friction_angle: Tensor
    """Of sand: phi [rad], [n]."""
    hardening: Tensor
    """Of snow: xi, [n]."""
    critical_compression: Tensor
    """Of snow: theta_c, the part by which a principal stretch may shrink elastically, [n]."""
    critical_stretch: Tensor
    """Of snow: theta_s, the part by which it may grow, [n]."""
    gravity: Tensor
    """Gravitational acceleration [m/s^2], [dim]."""
    wall_friction: Tensor
    """Coulomb's coefficient of the walls with friction, []."""
    collider_velocity: Tensor
    """Of the centre of each collider [m/s], [K, dim]; a control adds to it."""
    collider_spin: Tensor
    """Angular velocity of each collider [rad/s], [K, 1] in the plane, [K, 3] in space; a control adds to it."""
    collider_friction: Tensor
    """Coulomb's coefficient of each collider with friction, [K]."""


@dataclass(frozen=True)
class State(Record):
    """Where the particles and the colliders are, and how the particles move and are deformed."""

    position: Tensor
    """Of particles [m], [n, dim]."""
    velocity: Tensor
    """Of particles [m/s], [n, dim]."""
    affine: Tensor
    """C: the velocity gradient that a particle carries (APIC) [1/s], [n, dim, dim]."""
    deformation: Tensor
    """F: the elastic deformation gradient, of which a plastic law has taken its part, [n, dim, dim]."""
    plastic: Tensor
    """The hidden variable of plastic laws (see each), [n]; [0] where no law of the model has one."""
    collider_position: Tensor
    """Of centres [m], [K, dim]."""
    collider_rotation: Tensor
    """Angle [rad], [K, 1], in the plane; unit quaternion (w, x, y, z), [K, 4], in space."""


@dataclass(frozen=True)
class MPM:
    """MLS-MPM: everything that no gradient flows to.

    Node i of the grid lies at i * spacing, from 0 to cells - 1 along each axis. The control of a step holds the stress
    [Pa] of each actuator along its fibres, then what is added to the velocities of colliders [m/s] (collider by
    collider), then to their spins [rad/s].
    """

    cells: tuple[int, ...]
    """Nodes of the grid along each of 2 or 3 axes."""
    spacing: float
    """Of the nodes, dx [m]."""
    dt: float
    """Time step [s]."""
    particles: int
    """How many, n."""
    laws: tuple[str, ...] = ("fixed_corotated",)
    """The constitutive laws in use, of `laws.LAWS`."""
    law: npt.NDArray[np.int32] | None = None
    """Which of `laws` a particle obeys, [n]; None: the first."""
    actuator: npt.NDArray[np.int32] | None = None
    """The actuator that stresses a particle, counted from 0; -1: none. [n]; None: there are no actuators."""
    fibre: npt.NDArray[np.float64] | None = None
    """Unit vector along which it acts, at rest, [n, dim]; None: the last axis."""
    walls: tuple[str, ...] = ()
    """What the faces x-, x+, y-, ... of the grid do, of CONTACTS; (): all are separating."""
    margin: int = 3
    """A wall stands at the nodes i < margin, and i > cells - margin; with less than 3 the upper one holds nothing."""
    colliders: tuple[Collider, ...] = ()
    skin: float = 0.0
    """Thickness of the layer in which a collider's contact sets in, smoothly [m]; 0: a spacing."""
    mass_floor: float = 1e-10
    """Added to the mass of each node, so that empty ones have a velocity [kg]; small against a particle's."""

    Params = Params
    State = State

    def __post_init__(self) -> None:
        _require(len(self.cells) in (2, 3), "cells", "the grid has 2 or 3 axes", self.cells, "Give 2 or 3 numbers.")
        least = 2 * self.margin + 2
        enough = min(self.cells) >= least and self.margin >= 1
        _require(enough, "cells", f"at least {least} nodes an axis, between the margins", self.cells, "Give more.")
        known = len(self.laws) > 0 and set(self.laws) <= set(LAWS) and len(set(self.laws)) == len(self.laws)
        _require(known, "laws", f"different ones of {tuple(LAWS)}", self.laws, "Choose of these.")
        if not self.walls:
            object.__setattr__(self, "walls", ("separating",) * (2 * self.dim))
        faces = len(self.walls) == 2 * self.dim and set(self.walls) <= set(CONTACTS)
        _require(faces, "walls", f"one of {CONTACTS} for each of {2 * self.dim} faces", self.walls, "Correct them.")
        for name, most in (("law", len(self.laws) - 1), ("actuator", None)):
            given = getattr(self, name)
            if given is not None:
                fits = given.shape == (self.particles,) and given.min() >= (0 if name == "law" else -1)
                fits = fits and (most is None or given.max() <= most)
                _require(fits, name, f"one number for each of {self.particles} particles", given, "Correct it.")
        if not self.skin:
            object.__setattr__(self, "skin", self.spacing)
        for collider in self.colliders:
            collider.require_valid(self.dim)

    @property
    def dim(self) -> int:
        """Of space, 2 or 3."""
        return len(self.cells)

    @property
    def nodes(self) -> int:
        """Of the grid."""
        return int(np.prod(self.cells))

    @cached_property
    def actuators(self) -> int:
        """How many there are."""
        return 0 if self.actuator is None else int(self.actuator.max()) + 1

    @property
    def spins(self) -> int:
        """Components of an angular velocity."""
        return 1 if self.dim == 2 else 3

    @property
    def rotations(self) -> int:
        """Components of a rotation."""
        return 1 if self.dim == 2 else 4

    @cached_property
    def is_plastic(self) -> bool:
        """Whether a law of the model has a hidden variable."""
        return any(LAWS[name].HIDDEN for name in self.laws)

    @cached_property
    def width(self) -> int:
        """Coefficients of a particle that kernels take, see constitutive.py."""
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
    ) -> MPMEngine:
        """The fused loops."""
        from .engine import MPMEngine

        return MPMEngine(
            self, params, control, batch=batch, needs=needs, deterministic=deterministic, tangents=tangents
        )

    def advice(self, params: Arrays, state: Arrays) -> str:
        """Which particle leaves the grid, or how large a time step is stable."""
        from .stability import advice

        return advice(self, params, state)


def _require(holds: Any, name: str, constraint: str, found: object, remedy: str) -> None:
    if not holds:
        raise InputError(f"MPM.{name}", constraint, found, remedy)
