"""Lines about the recordings that a failed fit has read: a wrong unit or column shows at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from simphys.autograd.errors import InputError
from simphys.experiment import sensors
from simphys.experiment.observe import Observations
from simphys.experiment.scene import Scene

HARDLY = 0.1
"""Part of a channel's variance: a model that explains less suits another unit or column, whatever the iterations."""


def explains_nothing(scene: Scene, rmse: Mapping[str, float]) -> bool:
    """Return True if a fit with these root mean square residuals explains hardly anything of some channel."""
    for part in scene.parts:
        seen = part.observations
        if not isinstance(seen, Observations):
            continue
        for place, channel in enumerate(seen.channels):
            there = seen.weights[:, place] > 0
            residual = rmse.get(f"{part.name}: {channel.label}" if part.name else channel.label, 0.0)
            if there.any() and residual**2 > (1 - HARDLY) * np.var(seen.values[there, place]):
                return True
    return False


def describe_readings(scene: Scene) -> Iterator[str]:
    """Describe each recording in one line: samples, times, steps, the first sample, and where the model starts.

    The first channel that shows a component of the state stands for all. Its start is that of the unknowns.
    """
    try:
        objective = scene.objective()
    except InputError:  # the logarithm of a value that the search has taken to 0
        return
    begin = objective.scene_at(objective.start)
    for part in begin.parts:
        seen = part.observations
        if seen is None:
            continue
        name = f"{part.name}: " if part.name else ""
        span = f"{seen.times[0]:.4g} to {seen.times[-1]:.4g} {part.units.time}"
        line = f"{name}{len(seen.times):,} samples, {span}, {part.steps:,} steps"
        yield line + (_first_sample(part, seen) if isinstance(seen, Observations) and part.members is None else "")


def _first_sample(part: Scene, seen: Observations) -> str:
    for place, channel in enumerate(seen.channels):
        rows = (seen.weights[:, place] > 0).nonzero()[0]
        if not rows.size or not sensors.shows_component(part, place):
            continue
        value, unit = seen.values[rows[0], place], f" {channel.unit}" if channel.unit else ""
        start = getattr(part.state, channel.field).data[channel.component]
        whose = f" of {channel.label}" if len(seen.channels) > 1 else ""
        return f"; first sample{whose} {value:.4g}{unit}, the model starts at {start:.4g}{unit}"
    return ""
