"""Consistency checks within and between the sections that describe a flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.numerics.multigrid import coarsest_cells
from simphys.scenefile.section import NOTHING, Key, Problem, Words
from simphys.scenefile.shared import (
    SIDES,
    FieldFileSection,
    Side,
    check_axes,
    check_cells,
    check_file,
    check_one_of,
    check_periodic,
    check_sides,
)
from simphys.simulator import Array

from .model import Smoke
from .sections import (
    GridSection,
    NamedFlowSection,
    ObstacleSection,
    SideFlowSection,
    SmokeSimulator,
    StateSection,
    make_model,
)

LARGEST_DIRECT = 2000
"""Largest number of cells along an axis for a direct solution, whose eigenvectors nothing interrupts (some seconds)."""
SLACK = 1e-9
"""Tolerance of the balance of inflow and outflow, relative to the flow."""


def find_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find all problems. A section that is itself invalid is absent; checks that need it are skipped."""
    names = ("simulator", "grid", "sides", "emitters", "obstacle", "state")
    simulator, grid, sides, emitters, obstacle, state = map(sections.get, names)
    if grid is None:
        return
    wrong = list(_check_boundaries(grid, simulator))
    dim = len(grid.cells)
    for place, emitter in enumerate(emitters or []):
        wrong += check_axes(("emitters", place, "centre"), emitter.centre, dim)
    if state is not None:
        wrong += _check_state(state, dim)
    if obstacle is not None:
        wrong += _check_obstacle(obstacle, dim)
    if sides is not None:
        wrong += _check_sides(grid, sides)
    if not wrong and simulator is not None:
        model = make_model(simulator, grid, dt=1.0, has_obstacle=obstacle is not None)
        wrong += _check_files(model, obstacle, state)
        if not wrong and sides is not None:
            wrong += _check_balance(model, sides, None if obstacle is None else obstacle.measure(model))
    yield from wrong


def _check_boundaries(grid: GridSection, simulator: SmokeSimulator | None) -> Iterator[Problem]:
    dim, kinds = len(grid.cells), grid.kinds
    key: Key = ("grid", "boundaries")
    yield from check_sides(key, grid.boundaries, dim)
    yield from check_periodic(key, kinds, "closed")
    if simulator is None:
        return
    if simulator.projection == "multigrid" and max(coarsest := coarsest_cells(grid.cells)) > LARGEST_DIRECT:
        constraint = f"multigrid halves the grid while all counts are even, down to {LARGEST_DIRECT} cells or fewer"
        found = Words(f"{grid.cells}, of which {coarsest} is left")
        remedy = 'Give counts with more factors of 2, or let simulator.projection be "conjugate_gradients".'
        yield Problem(("grid", "cells"), constraint, found, remedy)
    others = sorted(set(kinds) - {"periodic"})
    if simulator.projection == "fft" and others:
        constraint = f"fft needs periodic sides, and some are {' and '.join(others)}"
        yield Problem(("simulator", "projection"), constraint, "fft", 'Use "multigrid", or make all sides periodic.')
    if simulator.grid == "collocated" and set(kinds) & {"open", "inflow"}:
        constraint = f"a collocated grid has periodic or closed sides, and some are {' and '.join(others)}"
        yield Problem(("simulator", "grid"), constraint, "collocated", 'Use "staggered".')


def _check_sides(grid: GridSection, sides: Mapping[Side, SideFlowSection]) -> Iterator[Problem]:
    dim, kinds = len(grid.cells), grid.kinds
    for side, kind in zip(SIDES, kinds, strict=False):
        given = sides[side].velocity if side in sides else None
        key: Key = ("sides", side, "velocity")
        if kind == "inflow" and given is None:
            yield Problem(key, "an inflow needs a velocity", NOTHING, "Add one, or make the side open.")
        if kind in ("periodic", "open") and given is not None:
            remedy = 'Omit it, or make the side "inflow" in grid.boundaries.'
            yield Problem(key, f"only an inflow or a wall has a velocity, and this side is {kind}", given, remedy)
    yield from check_sides(("sides",), sides, dim)
    for side, flow in sides.items():
        yield from check_axes(("sides", side, "velocity"), flow.velocity, dim)
        place = SIDES.index(side)
        if place >= 2 * dim or flow.velocity is None or len(flow.velocity) != dim or kinds[place] != "closed":
            continue
        if flow.velocity[place // 2] != 0:
            remedy = 'Make it 0 there, or the side "inflow".'
            yield Problem(("sides", side, "velocity"), "the normal velocity at a wall must be 0", flow.velocity, remedy)
        elif grid.slip and any(flow.velocity):
            remedy = "Omit the velocity, or slip."
            yield Problem(("sides", side, "velocity"), "a free-slip wall cannot drag the fluid", flow.velocity, remedy)


def _check_state(state: StateSection, dim: int) -> Iterator[Problem]:
    yield from check_axes(("state", "velocity"), state.velocity, dim)
    if isinstance(state.velocity, NamedFlowSection):
        yield from check_axes(("state", "velocity", "origin"), state.velocity.origin, dim)


def _check_obstacle(obstacle: ObstacleSection, dim: int) -> Iterator[Problem]:
    yield from check_one_of(("obstacle",), obstacle, "shapes", "outline", "file")
    if obstacle.outline is not None and dim != 2:
        remedy = "Use shapes, or a file."
        yield Problem(("obstacle", "outline"), "an outline needs a 2-D grid", Words(f"a {dim}-D grid"), remedy)
    for place, shape in enumerate(obstacle.shapes or []):
        key: Key = ("obstacle", "shapes", place)
        yield from check_one_of(key, shape, "radius", "radii")
        yield from check_axes((*key, "centre"), shape.centre, dim)
        yield from check_axes((*key, "radii"), shape.radii, dim)


def _check_files(model: Smoke, obstacle: ObstacleSection | None, state: StateSection | None) -> Iterator[Problem]:
    if obstacle is not None and obstacle.file is not None:
        yield from check_file(("obstacle", "file"), lambda: obstacle.measure(model))
    if state is not None:
        yield from check_cells(("state", "smoke"), model.cells, state.smoke)
        if isinstance(state.velocity, FieldFileSection):
            yield from check_cells(("state", "velocity"), (model.dim, *model.faces), state.velocity)


def _check_balance(made: Smoke, sides: Mapping[Side, SideFlowSection], distance: Array | None) -> Iterator[Problem]:
    """Check that the fluid entering each connected part of the grid can leave it, as volume is conserved."""
    if "inflow" not in made.boundaries:
        return
    parts = np.ones(made.cells, int) if distance is None else connected(distance > 0, made.boundaries)
    if not parts.any():
        remedy = "Make it smaller, or move it."
        yield Problem(("obstacle",), "an obstacle must leave room for the fluid", Words("no cell left"), remedy)
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
    if parts.max() == 1:
        found = Words(f"a net inflow of {rate:.4g}, and no open side")
        remedy = 'Make a side "open", or let as much flow out at another inflow.'
        yield Problem(("grid", "boundaries"), "as much fluid must leave as enters", found, remedy)
    else:
        found = Words(f"{np.sum(parts == part)} cells that it cuts off, with a net inflow of {rate:.4g}")
        remedy = "Leave a gap around the obstacle, or make a side of these cells open."
        yield Problem(("obstacle",), "the obstacle must not block fluid that enters", found, remedy)


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
