"""A scene of waves: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.model_sections import fill_record, scene_of
from simphys.scenefile.section import EACH, Count, Fields, Index, Key, Positive, Problem, Section, Simulator, Words
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import (
    FieldFileSection,
    Side,
    check_axes,
    check_cells,
    check_periodic,
    check_sides,
    fill_cells,
    kinds_of_sides,
)
from simphys.scenefile.survey import (
    ReceiversSection,
    Vector,
    check_control,
    check_layer,
    check_place,
    check_receivers,
    group_rows,
    receiver_position,
    shots,
)

from .model import Params, Wave
from .receive import receive

Kind = Literal["zero", "free", "periodic", "absorbing"]

MOST_CELLS = 2**31 - 1
"""Largest number of cells, limited by 32-bit indices."""
BEYOND = {"zero": 1.0, "free": 0.5, "periodic": 0.0, "absorbing": 0.0}
"""Distance from the outermost cell to the end of the field, in cells."""


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

    FILES = (("state", EACH, "file"),)
    SIZES = ((("grid", "cells"), 50), (("receivers", "lines", EACH, "count"), 100))

    simulator: WaveSimulator
    grid: GridSection
    state: StateSection = StateSection()
    sources: list[SourceSection] = []
    receivers: ReceiversSection = ReceiversSection()

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        names = ("simulator", "grid", "state", "sources", "receivers")
        simulator, grid, state, sources, receivers = map(sections.get, names)
        if sources is not None:
            yield from check_control(sources, sections)
            yield from _check_shots(sources)
        if grid is None:
            return
        yield from _check_grid(grid, simulator)
        for place, source in enumerate(sources or []):
            yield from _check_source(("sources", place), source, grid)
        yield from check_receivers(receivers or ReceiversSection(), _bounds(grid))
        for name, given in state or ():
            yield from check_cells(("state", name), grid.cells, given)

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
        return Wave(
            cells=tuple(grid.cells),
            spacing=grid.spacing,
            dt=self.time.dt,
            order=self.simulator.order,
            boundaries=grid.kinds,
            layer=grid.layer,
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


def _check_grid(grid: GridSection, simulator: WaveSimulator | None) -> Iterator[Problem]:
    dim, kinds, key = len(grid.cells), grid.kinds, ("grid", "boundaries")
    yield from check_sides(key, grid.boundaries, dim)
    yield from check_periodic(key, kinds, "zero")
    yield from check_layer(kinds, grid.layer_frequency)
    if math.prod(grid.cells) > MOST_CELLS:
        constraint = f"a grid has at most {MOST_CELLS} cells"
        yield Problem(("grid", "cells"), constraint, grid.cells, "Use fewer and larger cells.")
    for axis, count in enumerate(grid.cells):
        pair = kinds[2 * axis : 2 * axis + 2]
        order, layers = simulator.order if simulator is not None else 0, pair.count("absorbing") * grid.layer
        layers += order // 2 if pair.count("absorbing") == 1 else 0
        if count < max(order, layers):
            of_layers = f"its layers and their differences take {layers} cells"
            why = of_layers if layers >= order else f"the order is {order}"
            constraint = f"must be at least {max(order, layers)}, as {why}"
            yield Problem(("grid", "cells", axis), constraint, count, "Give more cells.")


def _check_source(key: Key, source: SourceSection, grid: GridSection) -> Iterator[Problem]:
    dim = len(grid.cells)
    normal = None if source.kind == "point" else ("plane_x", "plane_y", "plane_z").index(source.kind)
    if normal is not None and normal >= dim:
        remedy = "Choose a plane with its normal along an axis of the grid."
        yield Problem((*key, "kind"), f"must have its normal along an axis in {dim}-D", source.kind, remedy)
    else:
        bounds = {
            name: bound if normal in (None, axis) else (-math.inf, math.inf)
            for axis, (name, bound) in enumerate(_bounds(grid).items())
        }
        yield from check_place((*key, "position"), source.position, bounds, "a source")
    yield from check_axes((*key, "velocity"), source.velocity, dim)


def _check_shots(sources: Sequence[SourceSection]) -> Iterator[Problem]:
    first, *others = [[source.kind for source in each] for each in shots(sources)]
    for number, kinds in enumerate(others, 1):
        if kinds != first:
            constraint = f"shot {number} must have as many sources as shot 0, of the same kinds in the same order"
            found = Words(f"{', '.join(kinds) or 'none'}, and {', '.join(first) or 'none'} in shot 0")
            yield Problem(("sources",), constraint, found, "Number shots from 0, and give all the same sources.")


def _bounds(grid: GridSection) -> dict[str, tuple[float, float]]:
    """Return where the field begins and ends along each axis [m]."""
    bounds = {}
    for axis, (name, count) in enumerate(zip("xyz", grid.cells, strict=False)):
        low, high = grid.kinds[2 * axis], grid.kinds[2 * axis + 1]
        upper = (count if high == "periodic" else count - 1 + BEYOND[high]) * grid.spacing
        bounds[name] = (0.0 - BEYOND[low] * grid.spacing, upper)
    return bounds
