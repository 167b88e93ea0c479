"""Identified values against known ones, where a scene tells them: synthetic measurements show what a fit can find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.experiment.unknowns import Unknowns
from simphys.record import Recorder

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Comparison:
    """How far an unknown is from its known value: |value - truth| / |truth|, of all its entries together."""

    label: str
    start: float
    value: float


def compare(unknowns: Unknowns, theta: Array) -> tuple[Comparison, ...]:
    """The unknowns that have a known value, at their start and at theta."""
    start, value = unknowns.natural(unknowns.start), unknowns.natural(theta)
    made = []
    for block in unknowns.blocks:
        if (truth := unknowns.truths.get(block.label)) is not None:
            size = float(np.linalg.norm(truth)) or np.nan
            errors = [float(np.linalg.norm(each[block.where] - truth)) / size for each in (start, value)]
            made.append(Comparison(block.label, *errors))
    return tuple(made)


def write_truths(recorder: Recorder, unknowns: Unknowns, theta: Array) -> None:
    """Record known values of unknowns, in truth/LABEL, and in the same order start and result."""
    start, value = unknowns.natural(unknowns.start), unknowns.natural(theta)
    for block in unknowns.blocks:
        if (truth := unknowns.truths.get(block.label)) is not None:
            about = {"parameter": block.parameter, "unit": block.unit}
            parts: dict[str, Any] = {"start": start[block.where], "value": value[block.where]}
            recorder.write(f"truth/{block.label}", attrs=about, truth=truth, entries=block.entries, **parts)
