"""Consistency checks within and between the sections that describe waves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simphys.autograd.errors import InputError
from simphys.scenefile.control import WaveletSection
from simphys.scenefile.section import NOTHING, Key, Problem, Words
from simphys.scenefile.survey import ReceiversSection, check_axes, check_control, receiver_keys, shots
from simphys.simulators.wave.scene import (
    SIDES,
    FieldFileSection,
    GridSection,
    MediumSection,
    SourceSection,
    StateSection,
    WaveSimulator,
    boundaries,
    field,
)

MOST_CELLS = 2**31 - 1
"""Largest number of cells, limited by 32-bit indices."""
BEYOND = {"zero": 1.0, "free": 0.5, "periodic": 0.0, "absorbing": 0.0}
"""Distance from the outermost cell to the end of the field, in cells."""


def find_problems(sections: Mapping[str, Any]) -> list[Problem]:
    """Collect all problems. A section that is itself invalid is None; checks that need it are skipped.

    driven: true if the scene has a control. members: number of batch members with their own signals; None if shared.
    """
    simulator: WaveSimulator | None = sections.get("simulator")
    grid: GridSection | None = sections.get("grid")
    medium: MediumSection | None = sections.get("medium")
    state: StateSection | None = sections.get("state")
    sources: Sequence[SourceSection] | None = sections.get("sources")
    receivers: ReceiversSection | None = sections.get("receivers")
    control: Any = sections.get("control")
    members = control.members if isinstance(control, WaveletSection) else None
    driven = "control" not in sections or control is not None
    found: list[Problem] = []
    if sources is not None:
        found += check_control(sources, members, driven)
    if grid is None:
        return found
    dim = len(grid.cells)
    found += _check_grid(grid, simulator)
    for place, source in enumerate(sources or []):
        found += _check_source(("sources", place), source, grid)
    if sources is not None:
        found += _check_shots(sources)
    if receivers is not None:
        for key, position in receiver_keys(receivers):
            found += _check_place(key, position, grid, "a receiver")
    if medium is not None and isinstance(medium.speed, FieldFileSection):
        found += _check_file(("medium", "speed"), medium.speed, grid, positive=True)
    for name in ("height", "previous"):
        given = getattr(state, name, None)
        if isinstance(given, FieldFileSection):
            found += _check_file(("state", name), given, grid, positive=False)
        for place, bump in enumerate(given if isinstance(given, list) else []):
            found += check_axes(("state", name, place, "centre"), bump.centre, dim)
    return found


def _check_grid(grid: GridSection, simulator: WaveSimulator | None) -> Iterator[Problem]:
    dim, kinds, key = len(grid.cells), boundaries(grid), ("grid", "boundaries")
    for side in grid.boundaries if isinstance(grid.boundaries, dict) else ():
        if side not in SIDES[: 2 * dim]:
            remedy = f"Its sides are {', '.join(SIDES[: 2 * dim])}."
            yield _problem((*key, side), f"must be a side of a {dim}-D grid", side, remedy)
    if math.prod(grid.cells) > MOST_CELLS:
        constraint = f"a grid has at most {MOST_CELLS} cells"
        yield _problem(("grid", "cells"), constraint, grid.cells, "Use fewer and larger cells.")
    for axis, count in enumerate(grid.cells):
        pair = kinds[2 * axis : 2 * axis + 2]
        if pair.count("periodic") == 1:
            named = dict(zip(SIDES[2 * axis : 2 * axis + 2], pair, strict=True))
            remedy = "Make both periodic, or neither; sides not listed are zero."
            yield _problem(key, "opposite sides are periodic together", named, remedy)
        order, layers = simulator.order if simulator is not None else 0, pair.count("absorbing") * grid.layer
        layers += order // 2 if pair.count("absorbing") == 1 else 0
        if count < max(order, layers):
            why = (
                f"its layers and their differences take {layers} cells" if layers >= order else f"the order is {order}"
            )
            constraint = f"must be at least {max(order, layers)}, as {why}"
            yield _problem(("grid", "cells", axis), constraint, count, "Give more cells.")
    if "absorbing" in kinds and grid.layer_frequency is None:
        remedy = "Add it; usually it is the dominant frequency of the sources."
        yield _problem(("grid", "layer_frequency"), "absorbing layers need a frequency [Hz]", NOTHING, remedy)


def _check_source(key: Key, source: SourceSection, grid: GridSection) -> Iterator[Problem]:
    dim = len(grid.cells)
    normal = None if source.kind == "point" else ("plane_x", "plane_y", "plane_z").index(source.kind)
    if normal is not None and normal >= dim:
        remedy = "Choose a plane with its normal along an axis of the grid."
        yield _problem((*key, "kind"), f"must have its normal along an axis in {dim}-D", source.kind, remedy)
    else:
        yield from _check_place((*key, "position"), source.position, grid, "a source", normal)
    if source.velocity is not None:
        yield from check_axes((*key, "velocity"), source.velocity, dim)


def _check_shots(sources: Sequence[SourceSection]) -> Iterator[Problem]:
    first, *others = [[source.kind for source in each] for each in shots(sources)]
    for number, kinds in enumerate(others, 1):
        if kinds != first:
            constraint = f"shot {number} must have as many sources as shot 0, of the same kinds in the same order"
            found = Words(f"{_listed(kinds)}, and {_listed(first)} in shot 0")
            yield _problem(("sources",), constraint, found, "Number shots from 0, and give all the same sources.")


def _check_place(
    key: Key, position: Sequence[float], grid: GridSection, what: str, only: int | None = None
) -> Iterator[Problem]:
    """Check that a position is within the field, along all axes or only one."""
    dim, kinds = len(grid.cells), boundaries(grid)
    if len(position) != dim:
        yield from check_axes(key, position, dim)
        return
    for axis, count in enumerate(grid.cells):
        low, high = kinds[2 * axis], kinds[2 * axis + 1]
        lower = 0.0 - BEYOND[low] * grid.spacing
        upper = (count if high == "periodic" else count - 1 + BEYOND[high]) * grid.spacing
        if only in (None, axis) and not lower <= position[axis] <= upper * (1 + 1e-12):
            constraint = f"{what} must be inside of the grid, from {lower:.6g} to {upper:.6g} m along {'xyz'[axis]}"
            yield _problem((*key, axis), constraint, position[axis], "Move it, or give more cells.")


def _check_file(key: Key, given: FieldFileSection, grid: GridSection, *, positive: bool) -> Iterator[Problem]:
    try:
        values = field(grid, given)
    except InputError as error:
        found = Words(f"{error.found} in {error.source}")
        yield _problem((*key, "file"), error.constraint, found, error.remedy)
        return
    if positive and not values.min() > 0:
        index = tuple(map(int, np.unravel_index(np.argmin(values), values.shape)))
        found = Words(f"{values.min():g} in cell {list(index)} of {given.file}")
        picture = given.file.endswith(".png")
        remedy = "Set `greys` to the speeds of black and white." if picture else "Correct the file."
        yield _problem((*key, "file"), "speeds must be above 0", found, remedy)


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(kinds) or "none"


def _problem(key: Key, constraint: str, found: object, remedy: str) -> Problem:
    return Problem(key=key, constraint=constraint, found=found, remedy=remedy)
