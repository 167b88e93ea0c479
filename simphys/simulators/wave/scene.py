"""A scene of waves: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import EACH, Count, Fields, Index, Positive, Problem, Section, Simulator
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import FieldFileSection, Side, check_cells, fill_cells, kinds_of_sides
from simphys.scenefile.survey import (
    ReceiversSection,
    Vector,
    check_place,
    check_receivers,
    check_sources,
    group_rows,
    receiver_position,
)

from .model import Params, Wave
from .receive import receive

Kind = Literal["zero", "free", "periodic", "absorbing"]

BEYOND = {"zero": 1.0, "free": 0.5, "periodic": 0.0, "absorbing": 0.0}
"""Distance from the outermost cell to the end of the field, in cells."""
ANYWHERE = (-math.inf, math.inf)
"""Bounds along an axis in which a plane extends."""


class WaveSimulator(Simulator):
    """Options of the simulator: the order of the finite differences in space."""

    name: Literal["wave"]
    order: Literal[2, 4, 8] = 2


class GridSection(Section):
    """The grid: number of cells along each axis, their spacing [m], and its boundaries. Cell i is at i * spacing.

    boundaries: "zero", "free", "periodic" or "absorbing" for all sides, or a table such as
    { "x-" = "absorbing", "x+" = "absorbing" }, with all other sides zero. Absorbing layers lie inside the grid and
    are `layer` cells wide. layer_frequency: the frequency that they absorb best [Hz], usually that of the sources.
    layer_speed: the wave speed for which they are designed [m/s], by default the largest in the medium.
    """

    cells: Annotated[list[Count], Field(min_length=1, max_length=3)]
    spacing: Positive
    boundaries: Kind | dict[Side, Kind] = "zero"
    layer: Count = 20
    layer_frequency: Positive | None = None
    layer_speed: Positive | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kind of the boundary at each side."""
        return kinds_of_sides(self.boundaries, len(self.cells), "zero")

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Begin and end of the field along each axis [m]."""
        bounds = {}
        for axis, (name, count) in enumerate(zip("xyz", self.cells, strict=False)):
            low, high = self.kinds[2 * axis], self.kinds[2 * axis + 1]
            upper = (count if high == "periodic" else count - 1 + BEYOND[high]) * self.spacing
            bounds[name] = (0.0 - BEYOND[low] * self.spacing, upper)
        return bounds


class BumpSection(Section):
    """A Gaussian bump amplitude exp(-|x - centre|^2 / width^2).

    centre [m], width [m], amplitude [unit of the field].
    """

    centre: Vector
    width: Positive
    amplitude: float = 1.0


class StateSection(Section):
    """The initial field, height [unit of the field]: one number, a list of bumps, or a file; 0 by default.

    previous [unit of the field]: the field one time step earlier; equal to the initial field by default, so that it is
    at rest.
    """

    height: float | list[BumpSection] | FieldFileSection = 0.0
    previous: float | list[BumpSection] | FieldFileSection | None = None


class SourceSection(Section):
    """A source of the field, at a point or along the plane through `position` [m] with this normal.

    velocity: its velocity [m/s], 0 by default. shot: the number of its shot. Each shot is a separate simulation; all
    shots have the same number of sources, of the same kinds in the same order.
    """

    kind: Literal["point", "plane_x", "plane_y", "plane_z"] = "point"
    position: Vector
    velocity: Vector | None = None
    shot: Index = 0


@scene_of(Wave, cells="grid.cells")
class WaveConfig(Config):
    """A scene of waves."""

    SIZES = ((("receivers", "lines", EACH, "count"), 100),)

    simulator: WaveSimulator
    grid: GridSection
    state: StateSection = StateSection()
    sources: list[SourceSection] = []
    receivers: ReceiversSection = ReceiversSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        yield from check_sources(sections.get("sources", []), sections)

    def find_problems_with(self, model: Wave) -> Iterator[Problem]:
        bounds = self.grid.bounds
        for number, source in enumerate(self.sources):
            own = {name: b if source.kind in ("point", f"plane_{name}") else ANYWHERE for name, b in bounds.items()}
            yield from check_place(("sources", number, "position"), source.position, own, "a source")
        yield from check_receivers(self.receivers, bounds)
        for name, given in self.state:
            yield from check_cells(("state", name), model.cells, given)

    def build_fields(self) -> Fields:
        """Build every field; with several shots, source positions have a batch axis. The receivers read 0 as yet."""
        grid, state, sources = self.grid, self.state, self.sources
        dim = len(grid.cells)
        position = group_rows([source.position for source in sources], sources, dim)
        velocity = group_rows([source.velocity or [0.0] * dim for source in sources], sources, dim)
        params = {
            **fill_record(self, Params),
            "source_velocity": velocity if velocity.any() else np.zeros(position.shape[-2:]),
            "receiver_position": receiver_position(self.receivers, dim),
        }
        previous = state.height if state.previous is None else state.previous
        start = {name: np.zeros(shape) for name, shape in self.build_model().state_shapes().items()} | {
            "height": fill_cells(grid.cells, state.height, grid.spacing, 0.0),
            "previous": fill_cells(grid.cells, previous, grid.spacing, 0.0),
            "source_position": position,
        }
        batched = [name for name, x in {**params, **start}.items() if name.startswith("source") and x.ndim > 2]
        channels = position.shape[-2] or None
        return Fields(params=params, state=start, channels=channels, batched=frozenset(batched))

    def build_model(self) -> Wave:
        grid, absorbing = self.grid, "absorbing" in self.grid.kinds
        return fill_model(
            self,
            Wave,
            boundaries=grid.kinds,
            layer_speed=(grid.layer_speed or float(fill_record(self, Params)["speed"].max())) if absorbing else 0.0,
            layer_frequency=(grid.layer_frequency or 0.0) if absorbing else 0.0,
            sources=tuple([source.kind for source in self.sources if source.shot == 0]),
            receivers=len(receiver_position(self.receivers, len(grid.cells))),
        )

    def first_state(self, model: Any, params: Any, state: Any) -> Any:
        """Let the receivers read the start."""
        return state.replace(received=receive(model, state.height, params.receiver_position))

    def completed(self, state: Any, design: Any = None, params: Any = None) -> Any:
        """Repeat an initial field at rest one step earlier."""
        sought = {unknown.parameter for unknown in self.unknowns.values()}
        if self.state.previous is not None or "previous" in sought:
            return state
        return state.replace(previous=state.height)
