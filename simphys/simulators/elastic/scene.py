"""A scene of elastic waves: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.numerics.staggered import least_count
from simphys.scenefile.control import WaveletSection
from simphys.scenefile.model_sections import fill_record, scene_of
from simphys.scenefile.section import EACH, Count, Fields, Index, Positive, Problem, Section, Simulator, Words
from simphys.scenefile.sections import Config
from simphys.scenefile.shared import Side, check_axes, check_length
from simphys.scenefile.sizes import SQUARE
from simphys.scenefile.survey import (
    LineSection,
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

from . import stability
from .model import Elastic, Params, name_axes, name_sides


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

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kind of each side, in order: absorbing where a scene names none, but for the free top."""
        given = {"z-": "free"} | {str(side): str(kind) for side, kind in self.sides.items()}
        return tuple([given.get(side, "absorbing") for side in name_sides(self.cells)])

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Begin and end of the grid along each axis [m]."""
        return {name: (0.0, n * self.spacing) for name, n in zip(name_axes(self.cells), self.cells, strict=True)}


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

    @property
    def vector(self) -> tuple[float, ...]:
        """Gauge of the channels: a vector along the fibre [m]."""
        along = np.subtract(self.end, self.start)
        return tuple((self.gauge / np.linalg.norm(along) * along).tolist())


@scene_of(Elastic, cells="grid.cells")
class ElasticConfig(Config):
    """A scene of elastic waves."""

    SIZES = (
        (("grid", "cells"), 50),
        (("grid", "cells", EACH, SQUARE), 24),
        (("receivers", "lines", EACH, "count"), 100),
        (("fibre", EACH, "count"), 100),
    )

    simulator: ElasticSimulator
    grid: GridSection
    sources: list[SourceSection] = []
    receivers: ReceiversSection = ReceiversSection()
    fibre: list[FibreSection] = []

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        names = ("simulator", "grid", "sources", "receivers", "fibre")
        simulator, grid, sources, receivers, fibre = map(sections.get, names)
        if sources is not None:
            yield from check_control(sources, sections)
            yield from _check_sources(sources)
        if grid is None:
            return
        yield from _check_grid(grid, simulator)
        for number, source in enumerate(sources or ()):
            yield from check_place(("sources", number, "position"), source.position, grid.bounds, "a source")
            yield from _check_components(number, source, len(grid.cells))
        for number, line in enumerate(fibre or ()):
            yield from _check_fibre(number, line, grid)
        yield from check_receivers(receivers or ReceiversSection(), grid.bounds)

    def build_fields(self) -> Fields:
        """Build every field; what differs between shots has a batch axis."""
        cells, sources = self.grid.cells, self.sources
        dim = len(cells)
        moments = dim * (dim + 1) // 2
        rows = {
            "source_position": group_rows([source.position for source in sources], sources, dim),
            "force": group_rows([source.force or [0.0] * dim for source in sources], sources, dim),
            "moment": group_rows([source.moment or [0.0] * moments for source in sources], sources, moments),
        }
        for name in ("force", "moment"):
            if rows[name].ndim > 2 and (rows[name] == rows[name][0]).all():
                rows[name] = rows[name][0]
        params = fill_record(self, Params) | rows
        params["receiver_position"] = receiver_position(self.receivers, dim)
        params["fibre_position"] = receiver_position(ReceiversSection(lines=[*self.fibre]), dim)
        shapes = self.build_model().state_shapes()
        state = {name: np.zeros(shape) for name, shape in shapes.items()}
        batched = frozenset([name for name, values in rows.items() if values.ndim > 2])
        return Fields(params=params, state=state, channels=rows["force"].shape[-2] or None, batched=batched)

    def build_model(self) -> Elastic:
        grid, absorbing = self.grid, "absorbing" in self.grid.kinds
        speed = grid.layer_speed or float(fill_record(self, Params)["vp"].max())
        return Elastic(
            cells=tuple(grid.cells),
            spacing=grid.spacing,
            dt=self.time.dt,
            order=self.simulator.order,
            sides=grid.kinds,
            layer=grid.layer,
            layer_speed=speed if absorbing else 0.0,
            layer_frequency=(grid.layer_frequency or 0.0) if absorbing else 0.0,
            sources=len([source for source in self.sources if source.shot == 0]),
            forces=any([source.force is not None for source in self.sources]),
            moments=any([source.moment is not None for source in self.sources]),
            receivers=len(receiver_position(self.receivers, len(grid.cells))),
            fibre=tuple([line.vector for line in self.fibre for _ in range(line.count)]),
        )

    def require_stable(self, model: Any, params: Any, state: Any) -> None:
        super().require_stable(model, params, state)
        if isinstance(self.control, WaveletSection):
            stability.require_resolved(model, params, self.control.frequency)


def _check_grid(grid: GridSection, simulator: ElasticSimulator | None) -> Iterator[Problem]:
    kinds = grid.kinds
    for side, kind in grid.sides.items():
        key = ("grid", "sides", side)
        if kind == "free" and side != "z-":
            yield Problem(key, "only the top, z-, can be free", "free", 'Let it be "wall" or "absorbing".')
        if side not in name_sides(grid.cells):
            remedy = "Leave it out, or give cells along x, y and z."
            yield Problem(key, "a section x, z has no sides across y", kind, remedy)
    yield from check_layer(kinds, grid.layer_frequency)
    for axis, count in enumerate(grid.cells):
        layers = kinds[2 * axis : 2 * axis + 2].count("absorbing") * grid.layer
        ends = least_count(simulator.order) if simulator is not None else 0
        if count < max(layers, ends):
            why = f"its layers take {layers} cells" if layers >= ends else f"its ends take {ends} cells in this order"
            constraint = f"must be at least {max(layers, ends)}, as {why}"
            yield Problem(("grid", "cells", axis), constraint, count, "Give more cells.")


def _check_sources(sources: Sequence[SourceSection]) -> Iterator[Problem]:
    for number, source in enumerate(sources):
        if source.force is None and source.moment is None:
            remedy = "Add force = [x, z] or moment = [xx, zz, xz]; in space [x, y, z] or [xx, yy, zz, xy, xz, yz]."
            yield Problem(("sources", number), "a source has a force or a moment", Words("neither"), remedy)
    first, *others = [len(each) for each in shots(sources)]
    for number, count in enumerate(others, 1):
        if count != first:
            constraint = f"shot {number} must have as many sources as shot 0, which has {first}"
            yield Problem(("sources",), constraint, count, "Number shots from 0, and give all as many sources.")


def _check_components(number: int, source: SourceSection, dim: int) -> Iterator[Problem]:
    """Check that a source has the components of a section, or of space."""
    yield from check_axes(("sources", number, "force"), source.force, dim)
    count = dim * (dim + 1) // 2
    names = "xx, zz, xz" if dim == 2 else "xx, yy, zz, xy, xz, yz"
    yield from check_length(("sources", number, "moment"), source.moment, count, f"of the moment rates {names}")


def _check_fibre(number: int, line: FibreSection, grid: GridSection) -> Iterator[Problem]:
    """Check that a fibre has a direction, and that the gauges of its channels are within the grid."""
    places = {"start": line.start, "end": line.end}
    for name, position in places.items():
        yield from check_axes(("fibre", number, name), position, len(grid.cells))
    if not len(line.start) == len(line.end) == len(grid.cells):
        return
    if line.start == line.end:
        remedy = "Give another end; one channel lies at the start."
        yield Problem(("fibre", number, "end"), "a fibre goes from its start to another place", line.end, remedy)
        return
    for name, sign in (("start", -0.5), ("end", 0.5)):
        last = (np.array(places[name]) + sign * np.array(line.vector)).tolist()
        yield from check_place(("fibre", number, name), last, grid.bounds, "the gauge of a channel")
