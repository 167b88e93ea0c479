"""Consistency checks within and between the sections that describe a flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.numerics.multigrid import coarsest_cells
from simphys.scenefile.section import NOTHING, Key, Problem, Words
from simphys.simulator import Array
from simphys.simulators.smoke.model import Smoke
from simphys.simulators.smoke.scene import (
    SIDES,
    ArrayFileSection,
    EmitterSection,
    FluidSection,
    GridSection,
    NamedFlowSection,
    ObstacleSection,
    Side,
    SideFlowSection,
    SmokeSimulator,
    StateSection,
    boundaries,
    model,
    signed_distance,
    smoke,
    velocity,
)

LARGEST_DIRECT = 2000
"""Largest number of cells along an axis for a direct solution, whose eigenvectors nothing interrupts (some seconds)."""
SLACK = 1e-9
"""Tolerance of the balance of inflow and outflow, relative to the flow."""


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Collect all problems. A section that is itself invalid is absent; checks that need it are skipped."""
    simulator: SmokeSimulator | None = sections.get("simulator")
    grid: GridSection | None = sections.get("grid")
    fluid: FluidSection | None = sections.get("fluid")
    sides: Mapping[Side, SideFlowSection] | None = sections.get("sides")
    emitters: Sequence[EmitterSection] | None = sections.get("emitters")
    obstacle: ObstacleSection | None = sections.get("obstacle")
    state: StateSection | None = sections.get("state")
    if grid is None:
        return []
    found = list(_check_boundaries(grid, simulator))
    dim = len(grid.cells)
    if fluid is not None:
        found += _check_axes(("fluid", "buoyancy"), fluid.buoyancy, dim)
    for place, emitter in enumerate(emitters or []):
        found += _check_axes(("emitters", place, "centre"), emitter.centre, dim)
    if state is not None:
        found += _check_state(state, dim)
    if obstacle is not None:
        found += _check_obstacle(obstacle, dim)
    side_problems = list(_check_sides(grid, sides)) if sides is not None else []
    found += side_problems
    if found or simulator is None:
        return found
    made = model(simulator, grid, dt=1.0, has_obstacle=obstacle is not None)
    found += _check_files(made, obstacle, state)
    if not found and sides is not None:
        distance = None if obstacle is None else signed_distance(made, obstacle)
        found += _check_balance(made, sides, distance)
    return found


def _check_boundaries(grid: GridSection, simulator: SmokeSimulator | None) -> Iterator[Problem]:
    dim, kinds = len(grid.cells), boundaries(grid)
    key: Key = ("grid", "boundaries")
    if isinstance(grid.boundaries, dict):
        for side in grid.boundaries:
            yield from _check_side((*key, side), side, dim)
    for axis in range(dim):
        if list(pair := kinds[2 * axis : 2 * axis + 2]).count("periodic") == 1:
            named = dict(zip(SIDES[2 * axis : 2 * axis + 2], pair, strict=True))
            remedy = "Make both periodic, or neither; sides not listed are closed."
            yield _problem(key, "opposite sides are periodic together", named, remedy)
    if simulator is None:
        return
    if simulator.projection == "multigrid" and max(coarsest := coarsest_cells(grid.cells)) > LARGEST_DIRECT:
        constraint = f"multigrid halves the grid while all counts are even, down to {LARGEST_DIRECT} cells or fewer"
        found = Words(f"{grid.cells}, of which {coarsest} is left")
        remedy = 'Give counts with more factors of 2, or let simulator.projection be "conjugate_gradients".'
        yield _problem(("grid", "cells"), constraint, found, remedy)
    others = sorted(set(kinds) - {"periodic"})
    if simulator.projection == "fft" and others:
        constraint = f"fft needs periodic sides, and some are {' and '.join(others)}"
        yield _problem(("simulator", "projection"), constraint, "fft", 'Use "multigrid", or make all sides periodic.')
    if simulator.grid == "collocated" and set(kinds) & {"open", "inflow"}:
        constraint = f"a collocated grid has periodic or closed sides, and some are {' and '.join(others)}"
        yield _problem(("simulator", "grid"), constraint, "collocated", 'Use "staggered".')


def _check_sides(grid: GridSection, sides: Mapping[Side, SideFlowSection]) -> Iterator[Problem]:
    dim, kinds = len(grid.cells), boundaries(grid)
    for side, kind in zip(SIDES, kinds, strict=False):
        given = sides[side].velocity if side in sides else None
        key: Key = ("sides", side, "velocity")
        if kind == "inflow" and given is None:
            yield _problem(key, "an inflow needs a velocity", NOTHING, "Add one, or make the side open.")
        if kind in ("periodic", "open") and given is not None:
            remedy = 'Omit it, or make the side "inflow" in grid.boundaries.'
            yield _problem(key, f"only an inflow or a wall has a velocity, and this side is {kind}", given, remedy)
    for side, flow in sides.items():
        yield from _check_side(("sides", side), side, dim)
        yield from _check_axes(("sides", side, "velocity"), flow.velocity, dim)
        place = SIDES.index(side)
        if place >= 2 * dim or flow.velocity is None or len(flow.velocity) != dim or kinds[place] != "closed":
            continue
        if flow.velocity[place // 2] != 0:
            remedy = 'Make it 0 there, or the side "inflow".'
            constraint = "the normal velocity at a wall must be 0"
            yield _problem(("sides", side, "velocity"), constraint, flow.velocity, remedy)
        elif grid.slip and any(flow.velocity):
            remedy = "Omit the velocity, or slip."
            constraint = "a free-slip wall cannot drag the fluid"
            yield _problem(("sides", side, "velocity"), constraint, flow.velocity, remedy)


def _check_state(state: StateSection, dim: int) -> Iterator[Problem]:
    if isinstance(state.velocity, list):
        yield from _check_axes(("state", "velocity"), state.velocity, dim)
    if isinstance(state.velocity, NamedFlowSection):
        yield from _check_axes(("state", "velocity", "origin"), state.velocity.origin, dim)
    for place, puff in enumerate(state.smoke if isinstance(state.smoke, list) else []):
        yield from _check_axes(("state", "smoke", place, "centre"), puff.centre, dim)


def _check_obstacle(obstacle: ObstacleSection, dim: int) -> Iterator[Problem]:
    given = [name for name in ("shapes", "outline", "file") if getattr(obstacle, name) is not None]
    if len(given) != 1:
        found = Words(" and ".join(given) or "none of them")
        yield _problem(("obstacle",), "must have exactly one of shapes, outline and file", found, "Give exactly one.")
    if obstacle.outline is not None and dim != 2:
        remedy = "Use shapes, or a file."
        yield _problem(("obstacle", "outline"), "an outline needs a 2-D grid", Words(f"a {dim}-D grid"), remedy)
    for place, shape in enumerate(obstacle.shapes or []):
        key: Key = ("obstacle", "shapes", place)
        if (shape.radius is None) == (shape.radii is None):
            found = Words("neither" if shape.radius is None else "both")
            yield _problem(key, "must have exactly one of radius and radii", found, "Give exactly one.")
        yield from _check_axes((*key, "centre"), shape.centre, dim)
        yield from _check_axes((*key, "radii"), shape.radii, dim)


def _check_files(made: Smoke, obstacle: ObstacleSection | None, state: StateSection | None) -> Iterator[Problem]:
    reads: list[tuple[Key, Callable[[], Array]]] = []
    if obstacle is not None and obstacle.file is not None:
        reads.append((("obstacle", "file"), lambda: signed_distance(made, obstacle)))
    if state is not None and isinstance(state.velocity, ArrayFileSection):
        reads.append((("state", "velocity", "file"), lambda: velocity(made, state)))
    if state is not None and isinstance(state.smoke, ArrayFileSection):
        reads.append((("state", "smoke", "file"), lambda: smoke(made, state)))
    for key, read in reads:
        try:
            read()
        except InputError as error:
            found = Words(f"{error.found} in {error.source}")
            yield _problem(key, error.constraint, found, error.remedy)


def _check_balance(made: Smoke, sides: Mapping[Side, SideFlowSection], distance: Array | None) -> Iterator[Problem]:
    """Check that the fluid entering each connected part of the grid can leave it, as volume is conserved."""
    if "inflow" not in made.boundaries:
        return
    parts = np.ones(made.cells, int) if distance is None else connected(distance > 0, made.boundaries)
    if not parts.any():
        remedy = "Make it smaller, or move it."
        yield _problem(("obstacle",), "an obstacle must leave room for the fluid", Words("no cell left"), remedy)
        return
    enters, flows = np.zeros(parts.max() + 1), np.zeros(parts.max() + 1)
    for side, kind in enumerate(made.boundaries):
        at = np.take(parts, 0 if side % 2 == 0 else -1, axis=side // 2)
        if kind == "open":
            enters[np.unique(at)] = np.nan  # an open side balances any inflow
        elif kind == "inflow":
            flow = sides[SIDES[side]].velocity
            assert flow is not None, "checked before"
            inwards = flow[side // 2] * (1 if side % 2 == 0 else -1)
            np.add.at(enters, at.reshape(-1), inwards)
            np.add.at(flows, at.reshape(-1), abs(inwards))
    unbalanced = np.flatnonzero(np.abs(enters[1:]) > SLACK * flows[1:]) + 1  # part 0 is the obstacle
    if not unbalanced.size:
        return
    part = int(unbalanced[0])
    rate = enters[part] * made.spacing ** (made.dim - 1)
    unit = "m^2/s" if made.dim == 2 else "m^3/s"
    if parts.max() == 1:
        found = Words(f"a net inflow of {rate:.4g} {unit}, and no open side")
        remedy = 'Make a side "open", or let as much flow out at another inflow.'
        yield _problem(("grid", "boundaries"), "as much fluid must leave as enters", found, remedy)
    else:
        found = Words(f"{np.sum(parts == part)} cells that it cuts off, with a net inflow of {rate:.4g} {unit}")
        remedy = "Leave a gap around the obstacle, or make a side of these cells open."
        yield _problem(("obstacle",), "the obstacle must not block fluid that enters", found, remedy)


def connected(free: Array, boundaries: Sequence[str]) -> Array:
    """Number the connected part of each free cell, from 1; cells that are not free get 0.

    Cells are connected through faces, also across periodic sides.
    """
    from scipy import ndimage
    from scipy.sparse import coo_array, csgraph

    parts, count = ndimage.label(free)
    joined = [np.zeros((2, 0), np.int64)]
    for axis in range(free.ndim):
        if boundaries[2 * axis] == "periodic":
            ends = np.stack([parts.take(0, axis).ravel(), parts.take(-1, axis).ravel()])
            joined.append(ends[:, (ends > 0).all(axis=0)])
    pairs = np.concatenate(joined, axis=1)
    graph = coo_array((np.ones(pairs.shape[1], bool), (pairs[0], pairs[1])), shape=(count + 1, count + 1))
    return csgraph.connected_components(graph, directed=False)[1][parts].astype(np.int64)


def _check_side(key: Key, side: str, dim: int) -> Iterator[Problem]:
    if side not in SIDES[: 2 * dim]:
        remedy = f"Its sides are {', '.join(SIDES[: 2 * dim])}."
        yield _problem(key, f"must be a side of a {dim}-D grid", side, remedy)


def _check_axes(key: Key, value: list[Any] | None, dim: int) -> Iterator[Problem]:
    if value is not None and len(value) != dim:
        constraint = f"must have {dim} elements, one for each axis of the grid"
        yield _problem(key, constraint, value, f"It has {len(value)}: give {dim}.")


def _problem(key: Key, constraint: str, found: object, remedy: str) -> Problem:
    return Problem(key=key, constraint=constraint, found=found, remedy=remedy)
