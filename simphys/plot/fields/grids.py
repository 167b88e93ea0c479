"""Data for pictures of fields on a regular grid: the quantity, the planes and the times to draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.autograd.errors import StorageError
from simphys.plot import style
from simphys.record import Recording
from simphys.simulator.grids import Grid

MOST = 400
"""Largest number of pixels along an axis of a picture; if there are more cells, means over blocks are drawn."""
BULK = 0.1
"""Number of values of a field per cell of the grid above which they are not drawn one by one."""
OBSTACLE = "parameters/obstacle"
REMEDY = "Only simulators of fields on a grid record one, with the motion."


@dataclass(frozen=True)
class Plane:
    """Visible part of a grid: the axis of a line, the axes of a plane, or a plane through the middle of a space.

    In space, the plane is orthogonal to the axis `across`.
    """

    grid: Grid
    axes: tuple[int, ...]
    across: int | None = None

    @property
    def name(self) -> str:
        """Position of the plane in space: 'z = 0.5 m'."""
        if self.across is None:
            return ""
        middle = self.grid.axis(self.across)[self.grid.cells[self.across] // 2]
        return f"{style.AXIS_NAMES[self.across]} = {style.number(middle)} {self.grid.units.length}"

    @property
    def labels(self) -> list[str]:
        """Labels of the axes."""
        names = ["depth" if self.is_depth(axis) else style.AXIS_NAMES[axis] for axis in self.axes]
        return [style.with_unit(name, self.grid.units.length) for name in names]

    def is_depth(self, axis: int) -> bool:
        """True for the axis that points downwards, the last one of a grid with depth."""
        return self.grid.depth and axis == len(self.grid.cells) - 1

    def cut(self, values: np.ndarray) -> np.ndarray:
        """Take the visible part of values [*cells], in f32; means over blocks if there are more cells than pixels."""
        visible = values if self.across is None else values.take(self.grid.cells[self.across] // 2, self.across)
        for place, axis in enumerate(self.axes):
            block, count = self._blocks(axis)
            if block > 1:
                shape = (*visible.shape[:place], count, block, *visible.shape[place + 1 :])
                visible = visible.take(range(count * block), place).reshape(shape).mean(axis=place + 1)
        return visible.astype(np.float32)

    def places(self, axis: int) -> np.ndarray:
        """Positions of the values of `cut` along one of the axes [m]."""
        block, count = self._blocks(axis)
        return self.grid.axis(axis)[: count * block].reshape(count, block).mean(axis=1)

    def limits(self, axis: int) -> tuple[float, float]:
        """Lower and upper edge of the cells shown by `cut` along one of the axes [m]."""
        block, count = self._blocks(axis)
        first = self.grid.spacing * (self.grid.offset - 0.5)
        return first, first + count * block * self.grid.spacing

    def _blocks(self, axis: int) -> tuple[int, int]:
        """Number of cells in a block, and number of whole blocks."""
        block = -(-self.grid.cells[axis] // (MOST if len(self.axes) > 1 else 4 * MOST))
        return block, self.grid.cells[axis] // block


@dataclass(frozen=True)
class Quantity:
    """Quantity drawn for a field at `path`: its values, or the vorticity or length of its vectors."""

    path: str
    name: str
    unit: str
    kind: str = "number"
    of_many: bool = False
    """True if the field has a batch axis of experiments in front; the first experiment is drawn."""

    @property
    def label(self) -> str:
        """Label of its axis or colour scale."""
        return style.with_unit(self.name + (", experiment 0" if self.of_many else ""), self.unit)

    def compute(self, values: np.ndarray, grid: Grid) -> np.ndarray:
        """Compute the quantity in each cell [*cells] from the field at a moment."""
        values = values[0] if self.of_many else values
        if self.kind == "number":
            return values
        vectors = _at_middles(values, grid)
        if self.kind == "vorticity":
            return (np.gradient(vectors[1], axis=0) - np.gradient(vectors[0], axis=1)) / grid.spacing
        return np.sqrt(np.sum(vectors**2, axis=0))


@dataclass(frozen=True)
class Frames:
    """Pictures of a quantity, [time][plane], each [across, up] or along a line, at times [T] s."""

    quantity: Quantity
    planes: tuple[Plane, ...]
    rows: np.ndarray
    time: np.ndarray
    pictures: list[list[np.ndarray]]
    ended: str = ""
    obstacle: tuple[np.ndarray, ...] = ()
    """Signed distance to an obstacle in each plane [m], negative inside; () without an obstacle."""


def read_grid(recording: Recording, picture: str) -> Grid:
    """Read the grid of the run. Errors: NotRecorded if there is none."""
    style.require(recording, picture, ("grid",), REMEDY)
    about: dict[str, Any] = recording.attrs("grid")
    fields = dict(zip(about["fields"], about["units"], strict=True))
    place = {"spacing": about["spacing"], "offset": about["offset"], "depth": bool(about.get("depth", False))}
    return Grid(cells=tuple(about["cells"]), fields=fields, units=recording.units, **place)


def make_planes(grid: Grid) -> tuple[Plane, ...]:
    """Planes to draw: a line or a plane itself; for a space the middle planes, from above, the front and the side."""
    if len(grid.cells) < 3:
        return (Plane(grid, tuple(range(len(grid.cells)))),)
    return Plane(grid, (0, 1), 2), Plane(grid, (0, 2), 1), Plane(grid, (1, 2), 0)


def list_state_fields(recording: Recording, group: str = style.FIELDS) -> list[str]:
    """List the fields on the grid recorded along time; with the group "adjoint", those with recorded gradients."""
    if "grid" not in recording:
        return []
    return [name for name in read_grid(recording, "").fields if f"{group}/{name}" in recording]


def list_shown_fields(recording: Recording) -> list[str]:
    """List the fields on the grid that pictures show: not those that are 0 throughout, unless all of them are."""
    names = list_state_fields(recording)
    return [name for name in names if not _is_nowhere(recording, f"{style.FIELDS}/{name}/value")] or names


def _is_nowhere(recording: Recording, path: str) -> bool:
    """True for a field that is 0 in every recorded row, such as smoke that no source makes."""
    try:
        return not any(np.any(recording.row(path, row)) for row in range(recording.shape(path)[0]))
    except (KeyError, IndexError, StorageError):  # what draws it reports this
        return False


def choose_default_field(names: list[str], picture: str) -> str:
    """Field drawn by default. Errors: NotRecorded if there is none."""
    if not names:
        remedy = "Leave output.fields out, or name one there."
        raise style.NotRecorded(f"picture {picture!r}", "needs a field on the grid", "none", remedy)
    return names[0]


def choose_quantity(recording: Recording, grid: Grid, field: str, picture: str) -> Quantity:
    """Choose the quantity to draw for a field of the state; for vectors, vorticity in a plane and length in space."""
    path = f"{style.FIELDS}/{field}/value"
    style.require(recording, picture, (path,), REMEDY)
    if field not in grid.fields:
        constraint = f"draws fields on the grid: {', '.join(list_state_fields(recording)) or 'none'}"
        raise style.NotRecorded(f"picture {picture!r}", constraint, field, "Name one of these.")
    kind, many = _kind(recording, path, grid)
    return make_quantity(grid, field, path, kind, of_many=many)


def make_quantity(
    grid: Grid, field: str, path: str, kind: str, *, of_many: bool = False, unit: str | None = None
) -> Quantity:
    """Name the quantity of a field, or of its vectors; for None, the unit is that of the grid."""
    unit = grid.fields[field] if unit is None else unit
    if kind == "vorticity":
        rotation = "vorticity" if field == "velocity" else f"rotation of {style.words(field)}"
        is_speed = unit == grid.units.speed
        unit = f"1/{grid.units.time}" if is_speed else f"({unit or 1})/{grid.units.length}"
        return Quantity(path, rotation, unit, kind, of_many)
    if kind == "length":
        return Quantity(path, "speed" if field == "velocity" else f"|{style.words(field)}|", unit, kind, of_many)
    return Quantity(path, style.words(field), unit, kind, of_many)


def choose_adjoint_quantity(recording: Recording, grid: Grid, field: str) -> Quantity:
    """Choose the quantity to draw for the gradient of the loss with respect to a field; for vectors, its length."""
    path = f"adjoint/{field}"
    kind, many = _kind(recording, path, grid)
    name, unit = f"∂loss/∂{style.words(field)}", style.per_unit(grid.fields[field])
    return (
        Quantity(path, name, unit, of_many=many)
        if kind == "number"
        else Quantity(path, f"|{name}|", unit, "length", many)
    )


def read_frames(recording: Recording, grid: Grid, chosen: Quantity, time: np.ndarray, count: int) -> Frames:
    """Read at most `count` frames, evenly along `time` [T], one by one, without those that are not finite.

    Errors: NotRecorded if none is finite.
    """
    shown, kept, pictures = make_planes(grid), [], []
    for row in np.unique(np.linspace(0, len(time) - 1, count).round().astype(int)):
        values = recording.row(chosen.path, int(row))
        if (np.abs(values) < style.HUGE).all():  # False for NaN too
            numbers = chosen.compute(values, grid)
            pictures.append([plane.cut(numbers) for plane in shown])
            kept.append(row)
    if not kept:
        raise style.NotRecorded("picture of fields", "needs a finite frame", "none", "Start the run with a smaller dt.")
    rows = np.array(kept)
    ended = style.describe_end(recording, time[: rows[-1] + 1], time)
    solid = recording[OBSTACLE] if OBSTACLE in recording and len(grid.cells) > 1 else None
    around = () if solid is None or solid.shape != grid.cells else tuple(plane.cut(solid) for plane in shown)
    return Frames(chosen, shown, rows, time[rows], pictures, ended, around)


def field_frames(recording: Recording, field: str | None, count: int, picture: str) -> Frames:
    """Read frames of a field of the state; for None, of the first one on the grid. Errors: NotRecorded."""
    grid = read_grid(recording, picture)
    field = choose_default_field(list_state_fields(recording), picture) if field is None else field
    chosen = choose_quantity(recording, grid, field, picture)
    time = recording[f"{style.FIELDS}/{field}/time"]
    return read_frames(recording, grid, chosen, time, count)


def vector_kind(grid: Grid) -> str:
    """Kind of the quantity drawn for vectors."""
    return "vorticity" if len(grid.cells) == 2 else "length"


def _kind(recording: Recording, path: str, grid: Grid) -> tuple[str, bool]:
    """Find the kind of quantity drawn for a field along time, and whether it has a batch of experiments."""
    many = "members" in recording.attrs("grid")
    vectors = len(recording.shape(path)) - 1 - many > len(grid.cells)
    return vector_kind(grid) if vectors else "number", many


def is_bulk(recording: Recording, path: str) -> bool:
    """True if a field along time has about as many values as the run's grid has cells; pictures of grids show it."""
    if "grid" not in recording:
        return False
    return math.prod(recording.shape(path)[1:]) > BULK * math.prod(read_grid(recording, "").cells)


def _at_middles(vectors: np.ndarray, grid: Grid) -> np.ndarray:
    """Interpolate vectors [dim, *faces] to the middle of cells, [dim, *cells].

    Along its own axis, a component may have one entry more than cells: it then lies on faces, and their mean is taken.
    Along another axis, the last entry is dropped.
    """
    made = []
    for component, values in enumerate(vectors):
        for axis, cells in enumerate(grid.cells):
            if values.shape[axis] > cells:
                low, high = values.take(range(cells), axis), values.take(range(1, cells + 1), axis)
                values = (low + high) / 2 if axis == component else low
        made.append(values)
    return np.stack(made)
