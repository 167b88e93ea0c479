"""Moments at which a recording is late or early against the fitted motion: a clock that drifts, or another frequency.

A motion y that is late by tau has the residuals r = -tau dy/dt to first order, in quadrature to an oscillation, where a
wrong force or gain changes its amplitude. With tau of its own in each of K parts of the recording

    sum r^2 - sum_k (sum_k r dy/dt)^2 / sum_k (dy/dt)^2

is left of the squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from simphys import optimize
from simphys.experiment.objective import SceneObjective
from simphys.experiment.observe import Observations
from simphys.experiment.setup import Setup

from .pace import predict_with_rates

Array = np.ndarray[Any, Any]

PARTS, SAMPLES = 10, 8
"""Parts of a recording, and the least number of samples in each."""
EXPLAINED = 0.75
"""Part of the squares that lags have to explain to be named."""


@dataclass(frozen=True)
class Lags:
    """Lags of the parts of a channel."""

    label: str
    lags: Array
    """Time by which the recording is late in each part, negative where it is early [s]."""
    explained: float
    """Part of the squares of the residuals that they explain."""


def measure_lags(scene: Setup) -> Iterator[Lags]:
    """Measure the lags of each channel of a set-up with its fitted values. Errors: optimize.FailedTrial."""
    seen = scene.observations
    if not isinstance(seen, Observations):
        return
    motion, rates = predict_with_rates(scene, seen)
    for place, channel in enumerate(seen.channels):
        rows = np.flatnonzero(seen.weights[:, place] > 0)
        if channel.modulo is not None or len(rows) < PARTS * SAMPLES:
            continue
        roots = np.sqrt(seen.weights[rows, place])
        residual = roots * (seen.values[rows, place] - motion[rows, place])
        parts = np.array_split(np.stack([residual, roots * rates[rows, place]]), PARTS, axis=1)
        both = np.array([float(r @ rate) for r, rate in parts])
        squares = np.array([float(rate @ rate) for _, rate in parts])
        whole = float(residual @ residual)
        if whole > 0 and np.all(squares > 0):
            yield Lags(channel.label, -both / squares, float(np.sum(both**2 / squares)) / whole)


def describe_lags(objective: SceneObjective[Any], theta: Array, *, least: float = 0.0) -> str:
    """Describe lags that explain a misfit, with a remedy; empty if they explain less than a part of it, `least`."""
    parts = objective.scene_at(theta).parts
    try:
        found = [(each, part) for part in parts for each in measure_lags(part)]
    except optimize.FailedTrial:
        return ""
    if not found:
        return ""
    best, part = max(found, key=lambda each: each[0].explained)
    if best.explained < max(EXPLAINED, least):
        return ""
    low, high, name = best.lags.min(), best.lags.max(), f"{part.name}: " * bool(part.name)
    return (
        f"{name}{best.label} is late by {low:.2g} to {high:.2g} {part.units.time} along the recording, which is "
        f"{100 * best.explained:.2g} % of the misfit: its clock may drift, or the frequency change. Compare its times "
        "with a clock, or fit parts of it (observations.window)."
    )
