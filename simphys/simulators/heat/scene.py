"""The sections of a scene file that describe heat conduction, the arrays made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.cell_fields import FieldFileSection, check_cells, fill_cells
from simphys.scenefile.section import Count, Fields, Positive, Problem, Section, Simulator

from .model import SIDES, Heat, Side

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


class MediumSection(Section):
    """Conductivity [W/(m K)], heat capacity by volume [J/(m^3 K)] and source [W/m^3]: numbers or files."""

    conductivity: Positive | FieldFileSection
    heat_capacity: Positive | FieldFileSection
    source: float | FieldFileSection = 0.0


class StateSection(Section):
    """The initial temperature [K]: one number, or a file. All temperatures may be in deg C instead."""

    temperature: float | FieldFileSection


def build_fields(config: Any) -> Fields:
    """Build every parameter and state field at full size."""
    grid: GridSection = config.grid
    params = {name: fill_cells(grid.cells, getattr(config.medium, name)) for name in (*POSITIVE, "source")}
    params["side_temperature"] = np.array([grid.sides.get(side, 0.0) for side in SIDES[: 2 * len(grid.cells)]])
    state = {"temperature": fill_cells(grid.cells, config.state.temperature)}
    return Fields(params=params, state=state, channels=2 * len(grid.cells) if grid.sides else None)


def build_model(config: Any) -> Heat:
    """Build the model of a validated scene."""
    grid: GridSection = config.grid
    sides = tuple(["fixed" if side in grid.sides else "insulated" for side in SIDES[: 2 * len(grid.cells)]])
    return Heat(tuple(grid.cells), grid.spacing, config.time.dt, config.simulator.scheme, sides)


def find_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find the problems within and between the sections. A section that is itself invalid is None, and skipped."""
    grid = sections.get("grid")
    if grid is None:
        return
    known = SIDES[: 2 * len(grid.cells)]
    for side in grid.sides:
        if side not in known:
            constraint, remedy = f"must be a side of a {len(grid.cells)}-D grid", f"Its sides are {', '.join(known)}."
            yield Problem(key=("grid", "sides", side), constraint=constraint, found=side, remedy=remedy)
    for key, names in (("medium", (*POSITIVE, "source")), ("state", ("temperature",))):
        for name in names:
            given = getattr(sections.get(key), name, None)
            yield from check_cells((key, name), grid.cells, given, positive=name in POSITIVE)
