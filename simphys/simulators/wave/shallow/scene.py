"""The sections of a scene file that describe shallow water, their conversion to arrays, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.autograd.errors import InputError
from simphys.files.field_file import read_field
from simphys.scenefile.section import Count, Fields, Key, NonNegative, Positive, Problem, Section, Simulator, Words
from simphys.simulator import Array
from simphys.simulators.wave.shallow.model import ShallowWater

Vector = Annotated[list[float], Field(min_length=1, max_length=2)]
Kind = Literal["closed", "periodic"]


class ShallowSimulator(Simulator):
    """The simulator section, which has no options of its own."""

    name: Literal["shallow_water"]


class GridSection(Section):
    """The grid: number of cells along each axis, their spacing [m], and the boundaries.

    boundaries: "closed" (free-slip walls) or "periodic", either one for all axes or a list with one for each.
    """

    cells: Annotated[list[Count], Field(min_length=1, max_length=2)]
    spacing: Positive
    boundaries: Kind | list[Kind] = "closed"


class ArrayFileSection(Section):
    """A file (.npy, text or a picture) with a number for each cell, [*cells]."""

    file: str


class MediumSection(Section):
    """The medium: depth of the bottom below the rest level [m], gravity [m/s^2], and bottom friction [1].

    depth: one number for all cells, or a file.
    """

    depth: Positive | ArrayFileSection
    gravity: Positive = 9.81
    friction: NonNegative = 0.0


class BumpSection(Section):
    """An elevation height exp(-|x - centre|^2 / radius^2) above the rest level: centre [m], radius [m], height [m]."""

    centre: Vector
    radius: Positive
    height: float


class StateSection(Section):
    """The initial elevation above the rest level, as bumps or a file; the velocity is 0 initially."""

    elevation: list[BumpSection] | ArrayFileSection = []


def build_fields(config: Any) -> Fields:
    """Build every parameter and state field at full size."""
    grid, medium, state = config.grid, config.medium, config.state
    cells = tuple(grid.cells)
    params = {"depth": depth(grid, medium), "gravity": np.array(medium.gravity), "friction": np.array(medium.friction)}
    start = {"elevation": elevation(grid, state), "velocity": np.zeros((len(cells), *cells))}
    return Fields(params=params, state=start)


def depth(grid: GridSection, medium: MediumSection) -> Array:
    """Compute the depth of each cell, [*cells] [m]."""
    cells = tuple(grid.cells)
    if isinstance(medium.depth, ArrayFileSection):
        return read_field(medium.depth.file, [cells])
    return np.full(cells, medium.depth)


def elevation(grid: GridSection, state: StateSection) -> Array:
    """Compute the initial elevation, [*cells] [m]."""
    cells = tuple(grid.cells)
    if isinstance(state.elevation, ArrayFileSection):
        return read_field(state.elevation.file, [cells])
    made = np.zeros(cells)
    places = np.meshgrid(*[grid.spacing * (np.arange(n) + 0.5) for n in cells], indexing="ij")
    for bump in state.elevation:
        squares = sum([(x - c) ** 2 for x, c in zip(places, bump.centre, strict=True)])
        made += bump.height * np.exp(-squares / bump.radius**2)
    return made


def build_model(config: Any) -> ShallowWater:
    """Build the model of a validated scene."""
    grid: GridSection = config.grid
    given = grid.boundaries if isinstance(grid.boundaries, list) else [grid.boundaries] * len(grid.cells)
    return ShallowWater(tuple(grid.cells), grid.spacing, config.time.dt, tuple(given))


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Collect all problems. A section that is itself invalid is None; checks that need it are skipped."""
    grid: GridSection | None = sections.get("grid")
    medium: MediumSection | None = sections.get("medium")
    state: StateSection | None = sections.get("state")
    if grid is None:
        return []
    dim = len(grid.cells)
    found: list[Problem] = []
    if isinstance(grid.boundaries, list):
        found += _check_axes(("grid", "boundaries"), grid.boundaries, dim)
    if medium is not None and isinstance(medium.depth, ArrayFileSection):
        found += _check_file(("medium", "depth", "file"), lambda: depth(grid, medium), positive=True)
    if state is not None and isinstance(state.elevation, ArrayFileSection):
        found += _check_file(("state", "elevation", "file"), lambda: elevation(grid, state))
    elif state is not None and isinstance(state.elevation, list):
        for place, bump in enumerate(state.elevation):
            found += _check_axes(("state", "elevation", place, "centre"), bump.centre, dim)
    return found


def _check_axes(key: Key, value: list[Any], dim: int) -> Iterator[Problem]:
    if len(value) != dim:
        constraint = f"must have {dim} elements, one for each axis of the grid"
        remedy = f"It has {len(value)}: give {dim}."
        yield Problem(key=key, constraint=constraint, found=value, remedy=remedy)


def _check_file(key: Key, read: Callable[[], Array], *, positive: bool = False) -> Iterator[Problem]:
    try:
        values = read()
    except InputError as error:
        found = Words(f"{error.found} in {error.source}")
        yield Problem(key=key, constraint=error.constraint, found=found, remedy=error.remedy)
        return
    if positive and values.min() <= 0:
        at = [int(i) for i in np.unravel_index(int(values.argmin()), values.shape)]
        found = Words(f"{values.min():g} at {at}")
        remedy = "Deepen the bottom there: the equations do not cover dry cells."
        yield Problem(key=key, constraint="must hold positive depths", found=found, remedy=remedy)
