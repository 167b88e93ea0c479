"""Model, parameters and state of smoothed particle hydrodynamics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simphys.autograd import Tensor
from simphys.autograd.errors import InputError
from simphys.simulator import Array, Arrays, Bodies, Model, Record, declare
from simphys.simulator.memo import cast
from simphys.simulator.model_checks import (
    require_box,
    require_counts,
    require_not_negative_fields,
    require_positive_fields,
)
from simphys.simulator.space import InBox

from .kernel import strength
from .stability import find_wall_distance


@dataclass(frozen=True)
class Params(Record):
    """Physical parameters; each is a Tensor and may require a gradient."""

    rest_density: Tensor = declare("", "kg/m^3", sign="positive", section="material.density", standard=1000.0)
    """Density at rest, without pressure."""
    sound_speed: Tensor = declare("", "m/s", sign="positive", section="material")
    """Speed of sound: ten times the largest speed or more, so that the density changes by 1 %."""
    viscosity: Tensor = declare("", "Pa s", sign="not_negative", section="material", standard=0.0)
    """Dynamic viscosity."""
    slip_length: Tensor = declare("", "m", sign="not_negative", section="material", standard=0.0)
    """Distance behind a wall at which the continued velocity vanishes; 0 where the fluid sticks to walls."""
    gravity: Tensor = declare("dim", "m/s^2", section="environment", standard=0.0)
    """Acceleration by gravity."""


@dataclass(frozen=True)
class State(Record):
    """Motion of the particles: those of the fluid first, then those of walls, which are at rest."""

    position: Tensor = declare("particles, dim", "m")
    """Position; that of a particle that leaves a periodic box goes on outside of it."""
    velocity: Tensor = declare("particles, dim", "m/s")
    """Velocity of each particle."""
    density: Tensor = declare("particles", "kg/m^3")
    """Density; that of walls is not used."""
    depth: Tensor = declare("gauges", "m")
    """Depth of the fluid at the gauges."""


@dataclass(frozen=True)
class SPH(InBox, Model):
    """A weakly compressible fluid of particles, with walls of particles: all parts that carry no gradient."""

    fluid_count: int
    """Number of particles of fluid."""
    wall_count: int
    """Number of particles of walls."""
    box: tuple[float, ...]
    """Length [m] of each axis of the box, which is periodic, or inf for an open axis: dim = 2 or 3 of them."""
    dt: float
    """Time step [s]."""
    spacing: float
    """Distance of particles at rest [m], which makes the volume of each."""
    smoothing: float
    """Smoothing length h [m]; particles farther apart than 2h do not meet."""
    skin: float
    """Distance [m] by which lists of neighbours reach beyond that."""
    neighbours: int = 80
    """Largest number of neighbours of a particle, within 2h and skin."""
    exponent: float = 7.0
    """Exponent of the equation of state: 7 is Tait's, 1 is linear."""
    diffusion: float = 0.1
    """Diffusion of the density, delta [1]."""
    background: float = 0.0
    """Pressure [Pa] at rest, which keeps particles apart in flows without a free surface."""
    gauges: tuple[float, ...] = ()
    """Places [m] of gauges along the first axis."""
    gauge_width: float = 1.0
    """Width [m] of the window of a gauge."""
    breadth: float = 1.0
    """Breadth [m] of the tank that depths are averaged over, in space; 1 in the plane."""

    Params, State = Params, State

    def __post_init__(self) -> None:
        require_box(self)
        require_counts(self, fluid_count=1, wall_count=0, neighbours=1)
        require_positive_fields(self, "spacing", "smoothing", "gauge_width", "breadth", "exponent")
        require_not_negative_fields(self, "skin", "diffusion")
        if not 1.0 <= self.smoothing / self.spacing <= 3.0:
            constraint = f"between 1 and 3 spacings of {self.spacing:g}, so that sums over neighbours are accurate"
            raise InputError("SPH.smoothing", constraint, f"{self.smoothing:g}", "Take 1.5 spacings.")

    @property
    def particles(self) -> int:
        """Number of all particles, n."""
        return self.fluid_count + self.wall_count

    @property
    def cutoff(self) -> float:
        """Distance [m] from which on particles do not meet."""
        return 2 * self.smoothing

    @property
    def volume(self) -> float:
        """Volume of a particle at rest [m^dim]."""
        return self.spacing**self.dim

    @property
    def strength(self) -> float:
        """Constant of the slope of the kernel [1/m^(dim + 2)]."""
        return strength(self.dim, self.smoothing)

    @property
    def mixing(self) -> float:
        """Constant of the diffusion, 2 delta h V."""
        return 2 * self.diffusion * self.smoothing * self.volume

    @cached_property
    def wall_distance(self) -> float:
        """Mean distance [m] from a wall at which particles meet it."""
        return find_wall_distance(self.spacing, self.smoothing, self.dim)

    @property
    def walls(self) -> Array:
        """1 for each particle of a wall, 0 for others, [n]."""
        return cast(self, "walls", np.arange(self.particles) >= self.fluid_count)

    @property
    def fluid(self) -> Array:
        """1 for each particle of fluid, 0 for others, [n]."""
        return cast(self, "fluid", np.arange(self.particles) < self.fluid_count)

    @property
    def gauge_numbers(self) -> tuple[Array, Array, float, float]:
        """Places of the gauges, marks of the fluid, volume over area of a gauge, and one over its width."""
        area = self.gauge_width * self.breadth
        return cast(self, "gauges", np.array(self.gauges)), self.fluid, self.volume / area, 1 / self.gauge_width

    def describe_bodies(self, params: Arrays) -> Bodies:
        walls = np.arange(self.particles) >= self.fluid_count
        group = walls.astype(np.int32) if self.wall_count else None
        names = ("fluid", "wall")[: 1 + bool(self.wall_count)]
        return Bodies(pinned=walls, group=group, own=self.particles, names=names, box=self.box)
