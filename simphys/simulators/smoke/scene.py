"""The sections of a scene file that describe a flow (grid, fluid, sides, obstacle, state), and their conversion."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.files.field_file import read_field
from simphys.scenefile.section import Count, Fields, NonNegative, Positive, Section, Simulator
from simphys.simulator import Array
from simphys.simulators.smoke.faces import own_faces
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.shapes import coordinates, distance, fraction_inside

Vector = Annotated[list[float], Field(min_length=2, max_length=3)]
Kind = Literal["periodic", "closed", "open", "inflow"]
Side = Literal["x-", "x+", "y-", "y+", "z-", "z+"]

SIDES: tuple[Side, ...] = ("x-", "x+", "y-", "y+", "z-", "z+")


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


class FluidSection(Section):
    """The fluid: kinematic viscosity [m^2/s], and buoyancy [m/s^2], the acceleration per unit of smoke; default 0."""

    viscosity: NonNegative = 0.0
    buoyancy: Vector | None = None


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
    radii: Annotated[list[Positive], Field(min_length=2, max_length=3)] | None = None


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


class NamedFlowSection(Section):
    """A named initial flow.

    taylor_green: vortices with the largest velocity `speed` [m/s] along x, and `waves` pairs along each axis. Four
    vortices meet at `origin` [m], by default the corner of the grid.
    """

    flow: Literal["taylor_green"]
    speed: float = 1.0
    waves: Count = 1
    origin: Vector | None = None


class ArrayFileSection(Section):
    """A file (.npy or text) with a number for each entry of the field."""

    file: str


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

    velocity: Vector | NamedFlowSection | ArrayFileSection | None = None
    smoke: float | list[PuffSection] | ArrayFileSection = 0.0


def build_fields(config: Any) -> Fields:
    """Build every parameter and state field at full size."""
    simulator, grid, fluid, sides = config.simulator, config.grid, config.fluid, config.sides
    emitters, obstacle, state = config.emitters, config.obstacle, config.state
    of = model(simulator, grid, dt=1.0, has_obstacle=obstacle is not None)
    dim = of.dim
    given = [sides.get(name, SideFlowSection()) for name in SIDES[: 2 * dim]]
    rates = [fraction_inside(distance(of, each.centre, each.radius), of.spacing) * each.rate for each in emitters]
    params = {
        "viscosity": np.array(fluid.viscosity),
        "buoyancy": np.array(fluid.buoyancy or [0.0] * dim),
        "boundary_velocity": np.array([side.velocity or [0.0] * dim for side in given]),
        "boundary_smoke": np.array([side.smoke for side in given]),
        "smoke_rate": np.sum(rates, axis=0) if rates else np.zeros(of.cells),
        "obstacle": np.zeros(0) if obstacle is None else signed_distance(of, obstacle),
    }
    start = {"velocity": velocity(of, state), "smoke": smoke(of, state), "force": np.zeros(dim)}
    follows = design(obstacle)
    designed = frozenset({"obstacle"} if follows else ())
    return Fields(params=params, state=start, design=follows, designed=designed)


def model(simulator: SmokeSimulator, grid: GridSection, *, dt: float, has_obstacle: bool) -> Smoke:
    """Build the model of these sections. Raises InputError if they are inconsistent, see `scene_checks`."""
    return Smoke(
        cells=tuple(grid.cells),
        spacing=grid.spacing,
        dt=dt,
        boundaries=boundaries(grid),
        slip=grid.slip,
        grid=simulator.grid,
        advection=simulator.advection,
        projection=simulator.projection,
        sweeps=simulator.sweeps,
        tolerance=simulator.tolerance,
        has_obstacle=has_obstacle,
    )


def build_model(config: Any) -> Smoke:
    """Build the model of a validated scene."""
    return model(config.simulator, config.grid, dt=config.time.dt, has_obstacle=config.obstacle is not None)


def boundaries(grid: GridSection) -> tuple[str, ...]:
    """List the boundary kind of each side, in the order of SIDES."""
    given = grid.boundaries if isinstance(grid.boundaries, dict) else dict.fromkeys(SIDES, grid.boundaries)
    return tuple([given.get(side, "closed") for side in SIDES[: 2 * len(grid.cells)]])


def signed_distance(model: Smoke, obstacle: ObstacleSection) -> Array:
    """Compute the signed distance of the cell centres to an obstacle, [*cells] [m]."""
    if obstacle.file is not None:
        return read_field(obstacle.file, [model.cells])
    if obstacle.outline is not None:
        return distance(model, obstacle.outline.centre, obstacle.outline.radius)
    assert obstacle.shapes is not None, "checked when the scene was loaded"
    return np.minimum.reduce([distance(model, each.centre, each.radius or each.radii) for each in obstacle.shapes])


def design(obstacle: ObstacleSection | None) -> dict[str, Array]:
    """Return the initial design of an obstacle's outline; empty if it has none."""
    given = None if obstacle is None else obstacle.outline
    return {} if given is None else {"stretch": np.zeros(()), "outline": np.zeros((given.modes, 2))}


def velocity(model: Smoke, state: StateSection) -> Array:
    """Compute the initial velocity, [dim, *faces]."""
    if isinstance(state.velocity, ArrayFileSection):
        return read_field(state.velocity.file, [(model.dim, *model.faces)])
    made = np.zeros((model.dim, *model.faces))
    for component in range(model.dim if state.velocity is not None else 0):
        at: tuple[Any, ...] = (component, *map(slice, own_faces(model, component)))
        if isinstance(state.velocity, NamedFlowSection):
            made[at] = taylor_green(model, state.velocity, component)[at[1:]]
        elif state.velocity is not None:
            made[at] = state.velocity[component]
    return made


def taylor_green(model: Smoke, flow: NamedFlowSection, component: int) -> Array:
    """Compute Taylor-Green vortices at the faces of a component.

    u = U sin kx cos ly, v = -(k/l) U cos kx sin ly, and in 3-D times cos mz. x is relative to the origin, and
    k = 2 pi waves / length of the grid along x, and so on. In 2-D they decay as exp(-nu (k^2 + l^2) t), as their
    advection is a pressure gradient (Taylor and Green 1937).
    """
    k = [2 * np.pi * flow.waves / (n * model.spacing) for n in model.cells]
    places = zip(k, coordinates(model, component), flow.origin or [0.0] * model.dim, strict=True)
    phases = [each * (x - x0) for each, x, x0 in places]
    if component == 2:
        return np.zeros(model.faces)
    parts = [np.sin(p) if axis == component else np.cos(p) for axis, p in enumerate(phases)]
    return flow.speed * (1.0 if component == 0 else -k[0] / k[1]) * np.prod(parts, axis=0)


def smoke(model: Smoke, state: StateSection) -> Array:
    """Compute the initial smoke, [*cells]."""
    if isinstance(state.smoke, ArrayFileSection):
        return read_field(state.smoke.file, [model.cells])
    if not isinstance(state.smoke, list):
        return np.full(model.cells, float(state.smoke))
    made = np.zeros(model.cells)
    for puff in state.smoke:
        squares = [(x - c) ** 2 for x, c in zip(coordinates(model), puff.centre, strict=True)]
        made += puff.amount * np.exp(-np.sum(squares, axis=0) / puff.radius**2)
    return made
