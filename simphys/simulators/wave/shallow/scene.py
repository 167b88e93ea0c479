"""A scene of shallow water: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import Count, Fields, Length, Positive, Problem, Section, Simulator
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import FieldFileSection, check_cells, fill_cells

from . import stability
from .model import Params, ShallowWater

Vector = Annotated[list[float], Field(min_length=1, max_length=2), Length("dim")]
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
    boundaries: Kind | Annotated[list[Kind], Length("dim")] = "closed"


class BumpSection(Section):
    """An elevation height exp(-|x - centre|^2 / radius^2) above the rest level: centre [m], radius [m], height [m]."""

    centre: Vector
    radius: Positive
    height: float


class StateSection(Section):
    """The initial elevation above the rest level, as bumps or a file; the velocity is 0 initially."""

    elevation: list[BumpSection] | FieldFileSection = []


@scene_of(ShallowWater, cells="grid.cells")
class ShallowConfig(Config):
    """A scene of shallow water."""

    simulator: ShallowSimulator
    grid: GridSection
    state: StateSection = StateSection()

    def find_problems_with(self, model: ShallowWater) -> Iterator[Problem]:
        yield from check_cells(("state", "elevation"), model.cells, self.state.elevation)

    def build_fields(self) -> Fields:
        cells = self.grid.cells
        elevation = fill_cells(cells, self.state.elevation, self.grid.spacing)
        start = {"elevation": elevation, "velocity": np.zeros((len(cells), *cells))}
        return Fields(params=fill_record(self, Params), state=start)

    def build_model(self) -> ShallowWater:
        grid, given = self.grid, self.grid.boundaries
        kinds = tuple(given) if isinstance(given, list) else (given,) * len(grid.cells)
        return fill_model(self, ShallowWater, boundaries=kinds)

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        model.check_params(params.arrays())
        stability.require_wet(params, state)
        super().require_stable(model, params, state)
