"""A scene of heat conduction: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.demands import demands_of
from simphys.scenefile.section import EACH, Count, Fields, Positive, Problem, Section, Simulator
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import SIDES, FieldFileSection, Side, check_cells, check_side, fill_cells

from .model import Heat


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


class HeatConfig(Config):
    """A scene of heat conduction."""

    FILES = (("medium", EACH, "file"), ("state", EACH, "file"))
    SIZES = ((("grid", "cells"), 50),)
    DEMANDS = demands_of(MediumSection, "conductivity", "heat_capacity")

    simulator: HeatSimulator
    grid: GridSection
    medium: MediumSection
    state: StateSection

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        grid, medium, state = map(sections.get, ("grid", "medium", "state"))
        if grid is None:
            return
        for side in grid.sides:
            yield from check_side(("grid", "sides", side), side, len(grid.cells))
        for name, given in medium or ():
            yield from check_cells(("medium", name), grid.cells, given, positive=name != "source")
        for name, given in state or ():
            yield from check_cells(("state", name), grid.cells, given)

    def build_fields(self) -> Fields:
        cells, sides = self.grid.cells, self.grid.sides
        params = {name: fill_cells(cells, given) for name, given in self.medium}
        params["side_temperature"] = np.array([sides.get(side, 0.0) for side in SIDES[: 2 * len(cells)]])
        state = {"temperature": fill_cells(cells, self.state.temperature)}
        return Fields(params=params, state=state, channels=2 * len(cells) if sides else None)

    def build_model(self) -> Heat:
        cells = tuple(self.grid.cells)
        sides = tuple(["fixed" if side in self.grid.sides else "insulated" for side in SIDES[: 2 * len(cells)]])
        return Heat(cells, self.grid.spacing, self.time.dt, self.simulator.scheme, sides)
