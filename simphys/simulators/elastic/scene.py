"""The sections of a scene file that describe elastic waves, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.numerics.staggered import least_count
from simphys.scenefile.cell_fields import FieldFileSection, check_cells, fill_cells
from simphys.scenefile.control import WaveletSection
from simphys.scenefile.section import NOTHING, Count, Fields, Index, Key, Positive, Problem, Section, Simulator, Words
from simphys.scenefile.survey import (
    LineSection,
    ReceiversSection,
    Vector,
    check_axes,
    check_control,
    group_rows,
    receiver_keys,
    receiver_position,
    shots,
)

from .model import Elastic, name_axes, name_sides

Side = Literal["x-", "x+", "y-", "y+", "z-", "z+"]
MEDIUM = ("vp", "vs", "density")


class ElasticSimulator(Simulator):
    """Options of the simulator: the order of the differences in space."""

    name: Literal["elastic"]
    order: Literal[2, 4, 8] = 4


class GridSection(Section):
    """The section or space: number of cells along x (and y) and z (downwards), their spacing [m], and its sides.

    The top is at z = 0. sides: a table such as { "z-" = "free", "x-" = "wall" }; by default the top, z-, is free and
    all others are absorbing. Absorbing layers lie inside the grid and are `layer` cells wide. layer_frequency: the
    frequency that they absorb best [Hz], usually that of the sources. layer_speed: the speed for which they are
    designed [m/s], by default the largest vp.
    """

    cells: Annotated[list[Count], Field(min_length=2, max_length=3)]
    spacing: Positive
    sides: dict[Side, Literal["free", "wall", "absorbing"]] = {}
    layer: Count = 10
    layer_frequency: Positive | None = None
    layer_speed: Positive | None = None


class MediumSection(Section):
    """Speeds vp of compressional waves [m/s] and vs of shear waves [m/s], and density [kg/m^3]: numbers or files."""

    vp: Positive | FieldFileSection
    vs: Positive | FieldFileSection
    density: Positive | FieldFileSection


class SourceSection(Section):
    """A source at a position [m]: a force [N or N/m] or moment rates [N m/s or N m/(m s)], times the control.

    In space a force has components x, y, z, and moment rates are xx, yy, zz, xy, xz, yz. In a section they are x, z
    and xx, zz, xz, by length along y, with the second of these units.

    shot: the number of its shot. Each shot is a separate simulation; all shots have the same number of sources.
    """

    position: Vector
    force: Vector | None = None
    moment: Annotated[list[float], Field(min_length=3, max_length=6)] | None = None
    shot: Index = 0


class FibreSection(LineSection):
    """A fibre: `count` channels, their middles from `start` [m] to `end` [m], each with a `gauge` length [m]."""

    gauge: Positive


def sides(grid: GridSection) -> tuple[str, ...]:
    """List the kind of each side, in order: absorbing where a scene names none, but for the free top."""
    given = {"z-": "free"} | {str(side): str(kind) for side, kind in grid.sides.items()}
    return tuple([given.get(side, "absorbing") for side in name_sides(grid.cells)])


def gauge_vector(line: FibreSection) -> tuple[float, ...]:
    """Compute the gauge of the channels of a fibre: a vector along it [m]."""
    along = np.subtract(line.end, line.start)
    return tuple((line.gauge / np.linalg.norm(along) * along).tolist())


def build_fields(config: Any) -> Fields:
    """Build every parameter and state field at full size. What differs between shots has a batch axis."""
    grid, sources = config.grid, config.sources
    dim = len(grid.cells)
    moments = dim * (dim + 1) // 2
    params = {name: fill_cells(grid.cells, getattr(config.medium, name)) for name in MEDIUM}
    rows = {
        "source_position": group_rows([source.position for source in sources], sources, dim),
        "force": group_rows([source.force or [0.0] * dim for source in sources], sources, dim),
        "moment": group_rows([source.moment or [0.0] * moments for source in sources], sources, moments),
    }
    for name in ("force", "moment"):
        if rows[name].ndim > 2 and (rows[name] == rows[name][0]).all():
            rows[name] = rows[name][0]
    params |= rows
    params["receiver_position"] = receiver_position(config.receivers, dim)
    params["fibre_position"] = receiver_position(ReceiversSection(lines=config.fibre), dim)
    shapes = _make_model(config, dt=1.0).state_shapes()  # [time] may be what is invalid
    state = {name: np.zeros(shape) for name, shape in shapes.items()}
    batched = frozenset([name for name, values in rows.items() if values.ndim > 2])
    return Fields(params=params, state=state, channels=rows["force"].shape[-2] or None, batched=batched)


def build_model(config: Any) -> Elastic:
    """Build the model of a validated scene."""
    return _make_model(config, dt=config.time.dt)


def _make_model(config: Any, *, dt: float) -> Elastic:
    grid: GridSection = config.grid
    absorbing = "absorbing" in sides(grid)
    speed = grid.layer_speed or float(fill_cells(grid.cells, config.medium.vp).max())
    return Elastic(
        cells=tuple(grid.cells),
        spacing=grid.spacing,
        dt=dt,
        order=config.simulator.order,
        sides=sides(grid),
        layer=grid.layer,
        layer_speed=speed if absorbing else 0.0,
        layer_frequency=(grid.layer_frequency or 0.0) if absorbing else 0.0,
        sources=len([source for source in config.sources if source.shot == 0]),
        forces=any([source.force is not None for source in config.sources]),
        moments=any([source.moment is not None for source in config.sources]),
        receivers=len(receiver_position(config.receivers, len(grid.cells))),
        fibre=tuple([gauge_vector(line) for line in config.fibre for _ in range(line.count)]),
    )


def find_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Find the problems within and between the sections. A section that is itself invalid is None, and skipped."""
    grid: GridSection | None = sections.get("grid")
    sources: Sequence[SourceSection] | None = sections.get("sources")
    control: Any = sections.get("control")
    if sources is not None:
        members = control.members if isinstance(control, WaveletSection) else None
        yield from check_control(sources, members, "control" not in sections or control is not None)
        yield from _check_sources(sources)
    if grid is None:
        return
    yield from _check_grid(grid, sections.get("simulator"))
    for number, source in enumerate(sources or ()):
        yield from _check_place(("sources", number, "position"), source.position, grid, "a source")
        yield from _check_components(number, source, len(grid.cells))
    for number, line in enumerate(sections.get("fibre") or ()):
        yield from _check_fibre(number, line, grid)
    for key, position in receiver_keys(sections.get("receivers") or ReceiversSection()):
        yield from _check_place(key, position, grid, "a receiver")
    for name in MEDIUM:
        yield from check_cells(("medium", name), grid.cells, getattr(sections.get("medium"), name, None), positive=True)


def _check_grid(grid: GridSection, simulator: ElasticSimulator | None) -> Iterator[Problem]:
    kinds = sides(grid)
    for side, kind in grid.sides.items():
        key = ("grid", "sides", side)
        if kind == "free" and side != "z-":
            remedy = 'Let it be "wall" or "absorbing".'
            yield Problem(key=key, constraint="only the top, z-, can be free", found="free", remedy=remedy)
        if side not in name_sides(grid.cells):
            remedy = "Leave it out, or give cells along x, y and z."
            yield Problem(key=key, constraint="a section x, z has no sides across y", found=kind, remedy=remedy)
    if "absorbing" in kinds and grid.layer_frequency is None:
        remedy = "Add it; usually it is the dominant frequency of the sources."
        constraint = "absorbing layers need a frequency [Hz]"
        yield Problem(key=("grid", "layer_frequency"), constraint=constraint, found=NOTHING, remedy=remedy)
    for axis, count in enumerate(grid.cells):
        layers = kinds[2 * axis : 2 * axis + 2].count("absorbing") * grid.layer
        ends = least_count(simulator.order) if simulator is not None else 0
        if count < max(layers, ends):
            why = f"its layers take {layers} cells" if layers >= ends else f"its ends take {ends} cells in this order"
            constraint = f"must be at least {max(layers, ends)}, as {why}"
            yield Problem(key=("grid", "cells", axis), constraint=constraint, found=count, remedy="Give more cells.")


def _check_sources(sources: Sequence[SourceSection]) -> Iterator[Problem]:
    for number, source in enumerate(sources):
        if source.force is None and source.moment is None:
            remedy = "Add force = [x, z] or moment = [xx, zz, xz]; in space [x, y, z] or [xx, yy, zz, xy, xz, yz]."
            yield Problem(
                key=("sources", number),
                constraint="a source has a force or a moment",
                found=Words("neither"),
                remedy=remedy,
            )
    first, *others = [len(each) for each in shots(sources)]
    for number, count in enumerate(others, 1):
        if count != first:
            constraint = f"shot {number} must have as many sources as shot 0, which has {first}"
            yield Problem(
                key=("sources",),
                constraint=constraint,
                found=count,
                remedy="Number shots from 0, and give all as many sources.",
            )


def _check_components(number: int, source: SourceSection, dim: int) -> Iterator[Problem]:
    """Check that a source has the components of a section, or of space."""
    if source.force is not None:
        yield from check_axes(("sources", number, "force"), source.force, dim)
    count = dim * (dim + 1) // 2
    if source.moment is not None and len(source.moment) != count:
        names = "xx, zz, xz" if dim == 2 else "xx, yy, zz, xy, xz, yz"
        key, constraint = ("sources", number, "moment"), f"must have {count} elements, the moment rates {names}"
        yield Problem(key=key, constraint=constraint, found=source.moment, remedy=f"Give {count} numbers.")


def _check_fibre(number: int, line: FibreSection, grid: GridSection) -> Iterator[Problem]:
    """Check that a fibre has a direction, and that the gauges of its channels are within the grid."""
    places = {"start": line.start, "end": line.end}
    for name, position in places.items():
        yield from check_axes(("fibre", number, name), position, len(grid.cells))
    if not len(line.start) == len(line.end) == len(grid.cells):
        return
    if line.start == line.end:
        remedy = "Give another end; one channel lies at the start."
        constraint = "a fibre goes from its start to another place"
        yield Problem(key=("fibre", number, "end"), constraint=constraint, found=line.end, remedy=remedy)
        return
    for name, sign in (("start", -0.5), ("end", 0.5)):
        last = (np.array(places[name]) + sign * np.array(gauge_vector(line))).tolist()
        yield from _check_place(("fibre", number, name), last, grid, "the gauge of a channel")


def _check_place(key: Key, position: Sequence[float], grid: GridSection, what: str) -> Iterator[Problem]:
    """Check that a position is within the grid."""
    if len(position) != len(grid.cells):
        yield from check_axes(key, position, len(grid.cells))
        return
    for axis, (value, count) in enumerate(zip(position, grid.cells, strict=True)):
        end = count * grid.spacing
        if not 0 <= value <= end * (1 + 1e-12):
            constraint = f"{what} must be inside of the grid, from 0 to {end:.6g} m along {name_axes(grid.cells)[axis]}"
            yield Problem(key=(*key, axis), constraint=constraint, found=value, remedy="Move it, or give more cells.")
