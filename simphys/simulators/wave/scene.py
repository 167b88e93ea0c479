"""The sections of a scene file that describe waves (grid, medium, sources, receivers), and the arrays made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.files.field_file import read_field
from simphys.scenefile.section import Count, Fields, Index, Positive, Section, Simulator
from simphys.scenefile.survey import ReceiversSection, Vector, group_rows, receiver_position
from simphys.simulator import Array
from simphys.simulators.wave.model import Wave

Kind = Literal["zero", "free", "periodic", "absorbing"]
Side = Literal["x-", "x+", "y-", "y+", "z-", "z+"]

SIDES: tuple[Side, ...] = ("x-", "x+", "y-", "y+", "z-", "z+")


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


class FieldFileSection(Section):
    """A file with a number for each cell: .npy, text, or a .png picture.

    greys [unit of the field]: the values of black and white.
    """

    file: str
    greys: Annotated[list[float], Field(min_length=2, max_length=2)] = [0.0, 1.0]


class MediumSection(Section):
    """The medium: the wave speed [m/s], one number or a file."""

    speed: Positive | FieldFileSection


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


def build_fields(config: Any) -> Fields:
    """Build every parameter and state field at full size. With several shots, source positions have a batch axis.

    The receivers' initial readings are left at 0.
    """
    grid, medium, state = config.grid, config.medium, config.state
    sources, receivers = config.sources, config.receivers
    dim = len(grid.cells)
    position = group_rows([source.position for source in sources], sources, dim)
    velocity = group_rows([source.velocity or [0.0] * dim for source in sources], sources, dim)
    positions = receiver_position(receivers, dim)
    height = field(grid, state.height)
    layer_cells = model(grid, medium, sources, receivers, order=2, dt=1.0).layer_cells
    params = {
        "speed": speed(grid, medium),
        "source_velocity": velocity if velocity.any() else np.zeros(position.shape[-2:]),
        "receiver_position": positions,
    }
    start = {
        "height": height,
        "previous": height.copy() if state.previous is None else field(grid, state.previous),
        "slope_memory": np.zeros(layer_cells),
        "curvature_memory": np.zeros(layer_cells),
        "source_position": position,
        "received": np.zeros(len(positions)),
    }
    batched = [
        name for name, values in (*params.items(), *start.items()) if name.startswith("source") and values.ndim > 2
    ]
    return Fields(params=params, state=start, channels=position.shape[-2] or None, batched=frozenset(batched))


def model(
    grid: GridSection,
    medium: MediumSection,
    sources: Sequence[SourceSection],
    receivers: ReceiversSection,
    *,
    order: int,
    dt: float,
) -> Wave:
    """Build the model of these sections. Raises InputError if they are inconsistent, see `scene_checks`."""
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


def build_model(config: Any) -> Wave:
    """Build the model of a validated scene."""
    order, dt = config.simulator.order, config.time.dt
    return model(config.grid, config.medium, config.sources, config.receivers, order=order, dt=dt)


def boundaries(grid: GridSection) -> tuple[Kind, ...]:
    """List the boundary kind of each side, in the order of SIDES."""
    given = grid.boundaries if isinstance(grid.boundaries, dict) else dict.fromkeys(SIDES, grid.boundaries)
    return tuple([given.get(side, "zero") for side in SIDES[: 2 * len(grid.cells)]])


def speed(grid: GridSection, medium: MediumSection) -> Array:
    """Compute the wave speed in each cell, [*cells] [m/s]."""
    return field(grid, medium.speed)


def field(grid: GridSection, given: float | list[BumpSection] | FieldFileSection) -> Array:
    """Compute the field given by a number, bumps or a file, [*cells]."""
    shape = tuple(grid.cells)
    if isinstance(given, FieldFileSection):
        return read_field(given.file, [shape], greys=given.greys)
    if not isinstance(given, list):
        return np.full(shape, float(given))
    axes = np.meshgrid(*[grid.spacing * np.arange(n) for n in shape], indexing="ij", sparse=True)
    made = np.zeros(shape)
    for bump in given:
        squares = sum([(x - c) ** 2 for x, c in zip(axes, bump.centre, strict=True)])
        made += bump.amplitude * np.exp(-squares / bump.width**2)
    return made
