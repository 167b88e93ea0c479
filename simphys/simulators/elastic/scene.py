"""A scene of elastic waves: the sections of its file, the arrays and the model made of them, and their checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from simphys.scenefile.control import WaveletSection
from simphys.scenefile.model_sections import fill_model, fill_record, scene_of
from simphys.scenefile.section import EACH, Count, Fields, Index, Length, Positive, Problem, Section, Simulator, Words
from simphys.scenefile.sections import Config
from simphys.scenefile.sizes import SQUARE
from simphys.scenefile.survey import (
    LineSection,
    ReceiversSection,
    Vector,
    check_place,
    check_receivers,
    check_sources,
    group_rows,
    receiver_position,
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
    sides: dict[Literal["x-", "x+", "y-", "y+", "z-", "z+"], Literal["free", "wall", "absorbing"]] = {}
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
    moment: Annotated[list[float], Field(min_length=3, max_length=6), Length("moments")] | None = None
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
    def find_sizes(cls, sections: Mapping[str, Any]) -> dict[str, int]:
        grid = sections.get("grid")
        return {} if grid is None else {"moments": len(grid.cells) * (len(grid.cells) + 1) // 2}

    @classmethod
    def find_problems(cls, sections: Mapping[str, Any]) -> Iterator[Problem]:
        sources = sections.get("sources", [])
        yield from check_sources(sources, sections)
        for number, source in enumerate(sources):
            if source.force is None and source.moment is None:
                remedy = "Add force = [x, z] or moment = [xx, zz, xz]; in space [x, y, z] or [xx, yy, zz, xy, xz, yz]."
                yield Problem(("sources", number), "a source has a force or a moment", Words("neither"), remedy)
        if (grid := sections.get("grid")) is not None:
            for side in [side for side in grid.sides if side not in name_sides(grid.cells)]:
                remedy = "Leave it out, or give cells along x, y and z."
                yield Problem(("grid", "sides", side), "a section x, z has no sides across y", grid.sides[side], remedy)
        for number, line in enumerate(sections.get("fibre", [])):
            if line.start == line.end:
                constraint, remedy = "a fibre goes from its start to another place", "One channel lies at the start."
                yield Problem(("fibre", number, "end"), constraint, line.end, f"Give another end. {remedy}")

    def find_problems_with(self, model: Elastic) -> Iterator[Problem]:
        bounds = self.grid.bounds
        for number, source in enumerate(self.sources):
            yield from check_place(("sources", number, "position"), source.position, bounds, "a source")
        yield from check_receivers(self.receivers, bounds)
        for number, line in enumerate(self.fibre):
            for name, position, sign in (("start", line.start, -0.5), ("end", line.end, 0.5)):
                last = (np.array(position) + sign * np.array(line.vector)).tolist()
                yield from check_place(("fibre", number, name), last, bounds, "the gauge of a channel")

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
        return fill_model(
            self,
            Elastic,
            sides=grid.kinds,
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
