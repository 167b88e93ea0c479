"""A scene of heat conduction: the sections of its file, and the arrays and the model made of them."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import Count, Fields, Positive, Section, Simulator
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import SIDES, Side

from .model import Heat, Params, State


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


@scene_of(Heat, cells="grid.cells")
class HeatConfig(Config):
    """A scene of heat conduction."""

    simulator: HeatSimulator
    grid: GridSection

    def build_fields(self) -> Fields:
        kinds, sides = SIDES[: 2 * len(self.grid.cells)], self.grid.sides
        fixed = {"side_temperature": np.array([sides.get(side, 0.0) for side in kinds])}
        params = fill_record(self, Params) | fixed
        return Fields(params=params, state=fill_record(self, State), channels=len(kinds) if sides else None)

    def build_model(self) -> Heat:
        kinds = ["fixed" if side in self.grid.sides else "insulated" for side in SIDES[: 2 * len(self.grid.cells)]]
        return fill_model(self, Heat, sides=tuple(kinds))
