"""The sections of a scene file that describe a flow: grid, fluid, sides, obstacle, state; and what they stand for."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from simphys.files.field_file import read_field
from simphys.scenefile.section import Count, Length, Positive, Section, Simulator
from simphys.scenefile.shared import FieldFileSection, Side, fill_cells, kinds_of_sides
from simphys.simulator import Array

from .faces import own_index
from .model import Smoke
from .shapes import coordinates, distance

Vector = Annotated[list[float], Field(min_length=2, max_length=3), Length("dim")]
Kind = Literal["periodic", "closed", "open", "inflow"]


class SmokeSimulator(Simulator):
    """Options of the simulator.

    grid and projection: see the model. sweeps: number of sweeps of the projection "jacobi", which nothing
    interrupts; others need far fewer for such accuracy. tolerance [1]: of the iterative projections, the residual
    relative to the initial divergence. advection: "maccormack" is sharper; its limiter has kinks, where finite
    differences, as those of `simphys check`, tell nothing.
    """

    name: Literal["smoke"]
    grid: Literal["staggered", "collocated"] = "staggered"
    advection: Literal["semi_lagrangian", "maccormack"] = "maccormack"
    projection: Literal["jacobi", "conjugate_gradients", "multigrid", "fft"] = "multigrid"
    sweeps: Annotated[int, Field(ge=1, le=10_000)] = 6
    tolerance: Positive = 1e-8


class GridSection(Section):
    """The grid: number of cells along each axis, their spacing [m], and the boundaries.

    boundaries: "periodic", "closed" (a wall), "open" or "inflow" for all sides, or a table such as
    { "x-" = "inflow", "x+" = "open" }, with all other sides closed. slip: true for free-slip walls.
    """

    cells: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=3)]
    spacing: Positive
    boundaries: Kind | dict[Side, Kind] = "periodic"
    slip: bool = False

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kind of each side."""
        return kinds_of_sides(self.boundaries, len(self.cells), "closed")


class SideFlowSection(Section):
    """The flow at a side: velocity [m/s] of the inflow, or tangential velocity of the wall; smoke [1] in the inflow."""

    velocity: Vector | None = None
    smoke: float = 0.0


class EmitterSection(Section):
    """A ball of `radius` [m] around `centre` [m] in which smoke appears at a rate [1/s]; its edge is one cell wide."""

    centre: Vector
    radius: Positive
    rate: float


class ShapeSection(Section):
    """A ball of `radius` [m], or an ellipse or ellipsoid with `radii` [m] along the axes, around `centre` [m]."""

    centre: Vector
    radius: Positive | None = None
    radii: Annotated[list[Positive], Field(min_length=2, max_length=3), Length("dim")] | None = None


class OutlineSection(Section):
    """A disc of `radius` [m] around `centre` [m] in 2-D, whose shape an optimization changes by a stretch and `modes`.

    Both are 0 initially; as unknowns their names are stretch and outline, [modes, 2]. The area is always that of the
    disc, see outline.py.
    """

    centre: Annotated[list[float], Field(min_length=2, max_length=2)]
    radius: Positive
    modes: Count


class ObstacleSection(Section):
    """The obstacle: the union of `shapes`; or an outline; or a file (.npy or text).

    The file holds the signed distance of each cell centre to the surface, negative inside [m], [*cells].
    """

    shapes: Annotated[list[ShapeSection], Field(min_length=1)] | None = None
    outline: OutlineSection | None = None
    file: str | None = None

    def measure(self, model: Smoke) -> Array:
        """Compute the signed distance of the cell centres to the obstacle, [*cells] [m]."""
        if self.file is not None:
            return read_field(self.file, [model.cells])
        if self.outline is not None:
            return distance(model, self.outline.centre, self.outline.radius)
        assert self.shapes is not None, "checked when the scene was loaded"
        return np.minimum.reduce([distance(model, each.centre, each.radius or each.radii) for each in self.shapes])


class NamedFlowSection(Section):
    """A named initial flow.

    taylor_green: vortices with the largest velocity `speed` [m/s] along x, and `waves` pairs along each axis. Four
    vortices meet at `origin` [m], by default the corner of the grid.
    """

    flow: Literal["taylor_green"]
    speed: float = 1.0
    waves: Count = 1
    origin: Vector | None = None

    def compute(self, model: Smoke, component: int) -> Array:
        """Compute Taylor-Green vortices at the faces of a component.

        u = U sin kx cos ly, v = -(k/l) U cos kx sin ly, and in 3-D times cos mz. x is relative to the origin, and
        k = 2 pi waves / length of the grid along x, and so on. In 2-D they decay as exp(-nu (k^2 + l^2) t), as their
        advection is a pressure gradient (Taylor and Green 1937).
        """
        k = [2 * np.pi * self.waves / (n * model.spacing) for n in model.cells]
        places = zip(k, coordinates(model, component), self.origin or [0.0] * model.dim, strict=True)
        phases = [each * (x - x0) for each, x, x0 in places]
        if component == 2:
            return np.zeros(model.faces)
        parts = [np.sin(p) if axis == component else np.cos(p) for axis, p in enumerate(phases)]
        return self.speed * (1.0 if component == 0 else -k[0] / k[1]) * np.prod(parts, axis=0)


class PuffSection(Section):
    """A puff of smoke, amount exp(-|x - centre|^2 / radius^2): centre [m], radius [m], amount [1]."""

    centre: Vector
    radius: Positive
    amount: float = 1.0


class StateSection(Section):
    """The initial state, by default at rest and without smoke.

    velocity: a uniform velocity [m/s], a named flow, or a file with [dim, *faces]; see the model for faces.
    smoke [1]: one number, a list of puffs, or a file with [*cells].
    """

    velocity: Vector | NamedFlowSection | FieldFileSection | None = None
    smoke: float | list[PuffSection] | FieldFileSection = 0.0

    def compute_velocity(self, model: Smoke) -> Array:
        """Compute the initial velocity, [dim, *faces]."""
        if isinstance(self.velocity, FieldFileSection):
            return fill_cells((model.dim, *model.faces), self.velocity)
        made = np.zeros((model.dim, *model.faces))
        for component in range(model.dim if self.velocity is not None else 0):
            at = own_index(model, component)
            if isinstance(self.velocity, NamedFlowSection):
                made[at] = self.velocity.compute(model, component)[at[1:]]
            elif self.velocity is not None:
                made[at] = self.velocity[component]
        return made

    def compute_smoke(self, model: Smoke) -> Array:
        """Compute the initial smoke, [*cells]."""
        return fill_cells(model.cells, self.smoke, model.spacing)
