"""Sections and checks of surveys: shots, each a simulation with its own sources, and receivers that all shots share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from pydantic import Field

from simphys.scenefile.control import WaveletSection
from simphys.scenefile.section import Count, Key, Length, Problem, Section, Words
from simphys.simulator import Array

Vector = Annotated[list[float], Field(min_length=1, max_length=3), Length("dim")]


class LineSection(Section):
    """A line of `count` evenly spaced receivers from `start` to `end` [m]."""

    start: Vector
    end: Vector
    count: Count


class ReceiversSection(Section):
    """Receiver positions [m]: single ones first, then lines."""

    position: list[Vector] = []
    lines: list[LineSection] = []


class InShot(Protocol):
    """A section of something that belongs to a shot."""

    shot: int


Source = TypeVar("Source", bound=InShot)


def shots(sources: Sequence[Source]) -> list[list[Source]]:
    """Group the sources by shot; shots beyond the number of sources, which leave gaps, count as one."""
    shot_of = [min(source.shot, len(sources)) for source in sources]
    groups: list[list[Source]] = [[] for _ in range(max(shot_of, default=0) + 1)]
    for source, shot in zip(sources, shot_of, strict=True):
        groups[shot].append(source)
    return groups


def group_rows(rows: Sequence[Any], sources: Sequence[InShot], dim: int) -> Array:
    """Arrange the rows of all sources as [S, dim], or as [shots, S, dim] for several shots."""
    count = max([source.shot for source in sources], default=0) + 1
    parts = [[row for row, source in zip(rows, sources, strict=True) if source.shot == shot] for shot in range(count)]
    made = np.array(parts, dtype=float).reshape(count, -1, dim)
    return made if count > 1 else made[0]


def receiver_position(receivers: ReceiversSection, dim: int) -> Array:
    """Compute the positions of all receivers, [R, dim] [m]."""
    lines = [np.linspace(line.start, line.end, line.count) for line in receivers.lines]
    return np.concatenate([np.array(receivers.position, dtype=float).reshape(-1, dim), *lines])


def check_receivers(receivers: ReceiversSection, bounds: Mapping[str, tuple[float, float]]) -> Iterator[Problem]:
    """Check that receivers, and the ends of lines of them, are within these bounds of the grid."""
    for place, position in enumerate(receivers.position):
        yield from check_place(("receivers", "position", place), position, bounds, "a receiver")
    for place, line in enumerate(receivers.lines):
        for name, position in (("start", line.start), ("end", line.end)):
            yield from check_place(("receivers", "lines", place, name), position, bounds, "a receiver")


def check_sources(sources: Sequence[InShot], sections: Mapping[str, Any]) -> Iterator[Problem]:
    """Check that shots have the same sources, driven by as many signals as there are shots, or by one for all."""
    groups, control = shots(sources), sections.get("control")
    members = control.members if isinstance(control, WaveletSection) else None
    if sources and "control" in sections and control is None:
        remedy = 'Add a section [control], such as kind = "wavelet", or drop the sources.'
        yield Problem(("sources",), "sources need a control", Words("no [control] section"), remedy)
    elif members is not None and len(groups) not in (1, members):
        constraint = f"must have {len(groups)} rows, one for each shot"
        remedy = "Give a row for each shot, or one row for all."
        yield Problem(("control", "amplitude"), constraint, Words(f"{members}"), remedy)
    first, *others = [[getattr(source, "kind", "a source") for source in each] for each in groups]
    for number, kinds in enumerate(others, 1):
        if kinds != first:
            constraint = f"shot {number} must have as many sources as shot 0, of the same kinds in the same order"
            found = Words(f"{', '.join(kinds) or 'none'}, and {', '.join(first) or 'none'} in shot 0")
            yield Problem(("sources",), constraint, found, "Number shots from 0, and give all the same sources.")


def check_place(
    key: Key, position: list[float], bounds: Mapping[str, tuple[float, float]], what: str
) -> Iterator[Problem]:
    """Check that a position is within these bounds [m] of the grid, by the names of its axes."""
    for axis, (value, (name, (low, high))) in enumerate(zip(position, bounds.items(), strict=True)):
        if not low <= value <= high * (1 + 1e-12):
            constraint = f"{what} must be inside of the grid, from {low:.6g} to {high:.6g} along {name}"
            yield Problem((*key, axis), constraint, value, "Move it, or give more cells.")
