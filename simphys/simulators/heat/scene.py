"""The sections of a scene file that describe heat conduction, the arrays made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.autograd.errors import InputError
from simphys.files.field_file import read_field
from simphys.scenefile.section import Count, Fields, Key, Positive, Problem, Section, Simulator, Words
from simphys.simulator import Array

from .model import SIDES, Heat, Side

Vector = Annotated[list[float], Field(min_length=1, max_length=3)]
POSITIVE = ("conductivity", "heat_capacity")


class HeatSimulator(Simulator):
    """Options of the simulator: the scheme in time; the implicit ones are stable for every step."""

    name: Literal["heat"]
    scheme: Literal["explicit", "crank_nicolson", "implicit"] = "explicit"


class GridSection(Section):
    """The grid: number of cells along each axis, their spacing [m], and the temperatures of its fixed sides [K].

    The middle of cell i is at (i + 1/2) spacing. Sides that are not listed are insulated. A [control] takes the place
    of the temperatures: it has a channel for each side x-, x+, y-, ...
    """

    cells: Annotated[list[Count], Field(min_length=1, max_length=3)]
    spacing: Positive
    sides: dict[Side, float] = {}


class FieldFileSection(Section):
    """A file (.npy or text) with a number for each cell, [*cells]."""

    file: str


class RegionSection(Section):
    """A box from the corner `first` to the corner `last` [m] with values of its own; the later of two boxes counts."""

    first: Vector
    last: Vector
    conductivity: Positive | None = None
    heat_capacity: Positive | None = None
    source: float | None = None


class MediumSection(Section):
    """Conductivity [W/(m K)], heat capacity by volume [J/(m^3 K)] and source [W/m^3]: numbers or files, and regions."""

    conductivity: Positive | FieldFileSection
    heat_capacity: Positive | FieldFileSection
    source: float | FieldFileSection = 0.0
    regions: list[RegionSection] = []


class StateSection(Section):
    """The initial temperature [K, or deg C like all temperatures]: one number, or a file."""

    temperature: float | FieldFileSection


def build_fields(config: Any) -> Fields:
    """Build every parameter and state field at full size."""
    grid: GridSection = config.grid
    params = {name: fill(grid, getattr(config.medium, name)) for name in (*POSITIVE, "source")}
    axes = np.meshgrid(*[grid.spacing * (np.arange(n) + 0.5) for n in grid.cells], indexing="ij", sparse=True)
    for region in config.medium.regions:
        corners = zip(axes, region.first, region.last, strict=True)
        inside = np.logical_and.reduce(np.broadcast_arrays(*[(x > low) & (x < high) for x, low, high in corners]))
        for name, values in params.items():
            if getattr(region, name) is not None:
                values[inside] = getattr(region, name)
    params["side_temperature"] = np.array([grid.sides.get(side, 0.0) for side in SIDES[: 2 * len(grid.cells)]])
    state = {"temperature": fill(grid, config.state.temperature)}
    return Fields(params=params, state=state, channels=2 * len(grid.cells) if grid.sides else None)


def build_model(config: Any) -> Heat:
    """Build the model of a validated scene."""
    grid: GridSection = config.grid
    sides = tuple(["fixed" if side in grid.sides else "insulated" for side in SIDES[: 2 * len(grid.cells)]])
    return Heat(tuple(grid.cells), grid.spacing, config.time.dt, config.simulator.scheme, sides)


def fill(grid: GridSection, given: float | FieldFileSection) -> Array:
    """Compute a field, [*cells]."""
    shape = tuple(grid.cells)
    return read_field(given.file, [shape]) if isinstance(given, FieldFileSection) else np.full(shape, float(given))


def find_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find the problems within and between the sections. A section that is itself invalid is None, and skipped."""
    grid, medium, state = (sections.get(name) for name in ("grid", "medium", "state"))
    if grid is None:
        return
    known = SIDES[: 2 * len(grid.cells)]
    for side in grid.sides:
        if side not in known:
            remedy = f"Its sides are {', '.join(known)}."
            yield _problem(("grid", "sides", side), f"must be a side of a {len(grid.cells)}-D grid", side, remedy)
    for place, region in enumerate(medium.regions if medium is not None else []):
        for name in ("first", "last"):
            yield from _check_axes(("medium", "regions", place, name), getattr(region, name), len(grid.cells))
    for key, section in (("medium", medium), ("state", state)):
        for name in (*POSITIVE, "source", "temperature"):
            given = getattr(section, name, None)
            if isinstance(given, FieldFileSection):
                yield from _check_file((key, name, "file"), grid, given, positive=name in POSITIVE)


def _check_axes(key: Key, value: Sequence[float], dim: int) -> Iterator[Problem]:
    if len(value) != dim:
        constraint = f"must have {dim} elements, one for each axis of the grid"
        yield _problem(key, constraint, list(value), f"It has {len(value)}: give {dim}.")


def _check_file(key: Key, grid: GridSection, given: FieldFileSection, *, positive: bool) -> Iterator[Problem]:
    try:
        values = fill(grid, given)
    except InputError as error:
        yield _problem(key, error.constraint, Words(f"{error.found} in {error.source}"), error.remedy)
        return
    if positive and not values.min() > 0:
        at = list(map(int, np.unravel_index(np.argmin(values), values.shape)))
        yield _problem(key, "must be above 0", Words(f"{values.min():g} in cell {at}"), "Correct the file.")


def _problem(key: Key, constraint: str, found: object, remedy: str) -> Problem:
    return Problem(key=key, constraint=constraint, found=found, remedy=remedy)
