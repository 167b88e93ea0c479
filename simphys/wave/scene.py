"""The sections of a scene file that describe waves: grid, medium, sources, receivers; and what arrays they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.field_file import read_field
from simphys.grids import Grid as Cells
from simphys.section import Count, Fields, Index, Positive, Section, Simulator
from simphys.simulator import Array
from simphys.wave.model import Wave

if TYPE_CHECKING:
    from simphys.config.simulators import WaveConfig

Vector = Annotated[list[float], Field(min_length=1, max_length=3)]
Kind = Literal["zero", "free", "periodic", "absorbing"]
Side = Literal["x-", "x+", "y-", "y+", "z-", "z+"]

SIDES: tuple[Side, ...] = ("x-", "x+", "y-", "y+", "z-", "z+")


class WaveSimulator(Simulator):
    """The simulator's own options: the order of differences in space."""

    name: Literal["wave"]
    order: Literal[2, 4, 8] = 2


class Grid(Section):
    """The grid: its cells along each axis, their spacing [m], and what its sides are; cell i is at i * spacing.

    boundaries: "zero", "free", "periodic" or "absorbing", one for all sides, or a table such as
    { "x-" = "absorbing", "x+" = "absorbing" }, where other sides are zero. Absorbing layers are inside the grid and
    `layer` cells wide; layer_frequency: the one that they absorb best [Hz], as a rule that of the sources;
    layer_speed: of the waves that they are made for [m/s], by default the largest one of the medium.
    """

    cells: Annotated[list[Count], Field(min_length=1, max_length=3)]
    spacing: Positive
    boundaries: Kind | dict[Side, Kind] = "zero"
    layer: Count = 20
    layer_frequency: Positive | None = None
    layer_speed: Positive | None = None


class FieldFile(Section):
    """A file with a number for each cell: .npy, text, or a picture (.png) whose black and white mean these `greys`."""

    file: str
    greys: Annotated[list[float], Field(min_length=2, max_length=2)] = [0.0, 1.0]


class Medium(Section):
    """The speed of waves [m/s]: one number, or a file."""

    speed: Positive | FieldFile


class Bump(Section):
    """A field amplitude exp(-|x - centre|^2 / width^2), lengths in m."""

    centre: Vector
    width: Positive
    amplitude: float = 1.0


class State(Section):
    """The field at the start: one number, a list of bumps, or a file; 0 by default.

    previous: the same one time step before; as at the start by default, so that the field is at rest.
    """

    height: float | list[Bump] | FieldFile = 0.0
    previous: float | list[Bump] | FieldFile | None = None


class Source(Section):
    """What drives the field: at a point, or along the plane through `position` [m] with this normal.

    velocity: how it moves [m/s], at rest by default. shot: sources of different shots never meet, each shot is a
    simulation of its own; all have as many sources, of the same kinds in the same order.
    """

    kind: Literal["point", "plane_x", "plane_y", "plane_z"] = "point"
    position: Vector
    velocity: Vector | None = None
    shot: Index = 0


class Line(Section):
    """`count` receivers at equal distances from `start` to `end` [m]."""

    start: Vector
    end: Vector
    count: Count


class Receivers(Section):
    """Where receivers are [m]: one by one, then along lines."""

    position: list[Vector] = []
    lines: list[Line] = []


def fields(*, grid: Grid, medium: Medium, state: State, sources: Sequence[Source], receivers: Receivers) -> Fields:
    """Every parameter field and state component in full length; of several shots positions of sources are a batch.

    What receivers read of the start is left at 0.
    """
    dim = len(grid.cells)
    position = _of_shots([source.position for source in sources], sources, dim)
    velocity = _of_shots([source.velocity or [0.0] * dim for source in sources], sources, dim)
    at = receiver_position(receivers, dim)
    height = field(grid, state.height)
    layer_cells = model(grid, medium, sources, receivers, order=2, dt=1.0).layer_cells
    params = {
        "speed": speed(grid, medium),
        "source_velocity": velocity if velocity.any() else np.zeros(position.shape[-2:]),
        "receiver_position": at,
    }
    start = {
        "height": height,
        "previous": height.copy() if state.previous is None else field(grid, state.previous),
        "slope_memory": np.zeros(layer_cells),
        "curvature_memory": np.zeros(layer_cells),
        "source_position": position,
        "received": np.zeros(len(at)),
    }
    batched = [
        name for name, values in (*params.items(), *start.items()) if name.startswith("source") and values.ndim > 2
    ]
    return Fields(params=params, state=start, channels=position.shape[-2] or None, batched=frozenset(batched))


def model(
    grid: Grid, medium: Medium, sources: Sequence[Source], receivers: Receivers, *, order: int, dt: float
) -> Wave:
    """The model of these sections. Errors: InputError where they do not fit each other, see `scene_checks`."""
    kinds = boundaries(grid)
    absorbing = "absorbing" in kinds
    return Wave(
        cells=tuple(grid.cells),
        spacing=grid.spacing,
        dt=dt,
        order=order,
        boundaries=kinds,
        layer=grid.layer,
        layer_speed=(grid.layer_speed or float(speed(grid, medium).max())) if absorbing else 0.0,
        layer_frequency=(grid.layer_frequency or 0.0) if absorbing else 0.0,
        sources=tuple([source.kind for source in sources if source.shot == 0]),
        receivers=len(receiver_position(receivers, len(grid.cells))),
    )


def model_of(config: WaveConfig) -> Wave:
    """The model of a scene that was loaded, and so is known to be free of problems."""
    order, dt = config.simulator.order, config.time.dt
    return model(config.grid, config.medium, config.sources, config.receivers, order=order, dt=dt)


def cells(model: Wave) -> Cells:
    """Where the cells are, and which fields show something: the height before is no news."""
    fields = {"height": "", "speed": "m/s"}
    return Cells(cells=model.cells, spacing=model.spacing, offset=0.0, fields=fields)


def boundaries(grid: Grid) -> tuple[Kind, ...]:
    """What each side is, in the order of SIDES."""
    given = grid.boundaries if isinstance(grid.boundaries, dict) else dict.fromkeys(SIDES, grid.boundaries)
    return tuple([given.get(side, "zero") for side in SIDES[: 2 * len(grid.cells)]])


def shots(sources: Sequence[Source]) -> list[list[Source]]:
    """The sources of each shot."""
    count = max([source.shot for source in sources], default=0) + 1
    return [[source for source in sources if source.shot == shot] for shot in range(count)]


def speed(grid: Grid, medium: Medium) -> Array:
    """In each cell, [*cells]."""
    return field(grid, medium.speed)


def field(grid: Grid, given: float | list[Bump] | FieldFile) -> Array:
    """The field that a number, bumps or a file stand for, [*cells]."""
    shape = tuple(grid.cells)
    if isinstance(given, FieldFile):
        return read_field(given.file, [shape], greys=given.greys)
    if not isinstance(given, list):
        return np.full(shape, float(given))
    axes = np.meshgrid(*[grid.spacing * np.arange(n) for n in shape], indexing="ij", sparse=True)
    made = np.zeros(shape)
    for bump in given:
        squares = sum([(x - c) ** 2 for x, c in zip(axes, bump.centre, strict=True)])
        made += bump.amplitude * np.exp(-squares / bump.width**2)
    return made


def receiver_position(receivers: Receivers, dim: int) -> Array:
    """Of all receivers, [R, dim]."""
    lines = [np.linspace(line.start, line.end, line.count) for line in receivers.lines]
    return np.concatenate([np.array(receivers.position, dtype=float).reshape(-1, dim), *lines])


def _of_shots(rows: Sequence[Any], sources: Sequence[Source], dim: int) -> Array:
    """Rows of sources [S, dim], or [shots, S, dim] where there are several."""
    count = max([source.shot for source in sources], default=0) + 1
    parts = [[row for row, source in zip(rows, sources, strict=True) if source.shot == shot] for shot in range(count)]
    made = np.array(parts, dtype=float).reshape(count, -1, dim)
    return made if count > 1 else made[0]
