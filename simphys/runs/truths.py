"""Errors of identified values against known ones, for scenes that state them: tests with synthetic measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys.experiment.unknowns import Unknowns
from simphys.record import RunRecorder

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TruthError:
    """Relative error of an unknown, |value - truth| / |truth|, norms over all of its entries."""

    label: str
    start: float
    """Error of the start value."""
    value: float
    """Error of the identified value."""
    truth: tuple[float, ...]
    """The known value, of each entry."""


def compute_truth_errors(unknowns: Unknowns, theta: Array) -> tuple[TruthError, ...]:
    """Compute the error of each unknown that has a known value, at its start and at theta."""
    start, value = unknowns.natural(unknowns.start), unknowns.natural(theta)
    found = []
    for block in unknowns.blocks:
        if (truth := unknowns.truths.get(block.label)) is not None:
            size = float(np.linalg.norm(truth)) or np.nan
            before, after = [float(np.linalg.norm(each[block.where] - truth)) / size for each in (start, value)]
            found.append(TruthError(block.label, before, after, tuple(truth.tolist())))
    return tuple(found)


def write_truths(recorder: RunRecorder, unknowns: Unknowns, theta: Array) -> None:
    """Record known values of unknowns, in truth/LABEL, and in the same order start and result."""
    start, value = unknowns.natural(unknowns.start), unknowns.natural(theta)
    for block in unknowns.blocks:
        if (truth := unknowns.truths.get(block.label)) is not None:
            attrs = {"parameter": block.parameter, "unit": block.unit}
            parts: dict[str, Any] = {"start": start[block.where], "value": value[block.where]}
            recorder.write(f"truth/{block.label}", attrs=attrs, truth=truth, entries=block.entries, **parts)
