"""Are times those of the motion, and do time steps, samples and cells resolve it?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simphys.experiment.misfits import sigma_is_stated
from simphys.experiment.observe import Observations
from simphys.experiment.setup import Setup

from .chi_square import compare_neighbours
from .criteria import Criterion

Array = np.ndarray[Any, Any]

FEW_STEPS, FEW_SAMPLES = 20.0, 4.0
"""Least time steps, and samples, in a period of the measured motion."""
MANY_STEPS = 5_000_000
"""Steps of a horizon beyond which the unit of time is doubtful."""
MANY_STEPS_A_PERIOD = 100_000
"""Steps in a period of the measured motion beyond which the unit of time is doubtful."""
LATE = 2.0
"""First time of a recording, in its lengths, beyond which its times may count from another start."""
CLEAR = 4.0
"""Distance from the mean, in standard deviations of the noise, at which a value lies on one side of it."""
SPEED_ERROR = 0.01
"""Relative error of the speed of the slowest waves that shifts a wave by a tenth of a period in ten wavelengths."""
UNIT_OF_TIME = "Is the column of time in s? For a recording in ms set observations.time_unit = 0.001."


def judge_resolution(scene: Setup) -> list[Criterion]:
    """Judge times, time steps, samples and cells of each experiment; nothing is simulated."""
    parts = [each for part in scene.parts for each in (*_judge_sampling(part), *_judge_waves(part))]
    return [*parts, *list(judge_first_sample(scene))[:1]]


def judge_first_sample(scene: Setup) -> Iterator[Criterion]:
    """Doubt recordings whose first sample comes long after the start of the motion, such as trials of one clock."""
    for part in scene.parts:
        seen, unit = part.observations, part.units.time
        if seen is None or len(seen.times) < FEW_SAMPLES:
            continue
        first, length = float(seen.times[0]), float(seen.times[-1] - seen.times[0])
        if first > LATE * length:
            words = f"{part.name}: " * bool(part.name)
            words += (
                f"the first sample comes {first:g} {unit} after the start of the motion, the others within {length:.3g}"
            )
            remedy = f"If the motion began with the recording, set its observations.begin = {first:g}."
            yield Criterion("first sample", first / length, "doubtful", words, remedy)


def describe_late(scene: Setup) -> str:
    """Describe such a recording, with a remedy; empty if there is none."""
    return next((f"{each.found}. {each.remedy}" for each in judge_first_sample(scene)), "")


def find_period(times: Array, values: Array, noise: float = 0.0) -> float:
    """Estimate the period of an oscillation [s] from its crossings of the mean; infinite below one oscillation.

    Values that are no farther from the mean than `noise` may cross it, or by a twentieth of their range, cross nothing.
    """
    about = values - values.mean()
    far = np.flatnonzero(np.abs(about) > max(CLEAR * noise, 0.05 * np.ptp(values)))
    crossings = far[1:][np.diff(np.sign(about[far])) != 0]
    if len(crossings) < 3:
        return np.inf
    return float(2 * (times[crossings[-1]] - times[crossings[0]]) / (len(crossings) - 1))


def find_band(signal: Array, dt: float) -> tuple[float, float]:
    """Find the frequency [Hz] at which signals [T, S] are strongest, and the highest one with half of that power."""
    power = np.sum(np.abs(np.fft.rfft(signal, 8 * len(signal), axis=0)) ** 2, axis=1)
    frequencies = np.fft.rfftfreq(8 * len(signal), dt)
    strong = np.flatnonzero(power >= 0.5 * power.max())
    return float(frequencies[np.argmax(power)]), float(frequencies[strong[-1]])


def _judge_sampling(scene: Setup) -> Iterator[Criterion]:
    seen = scene.observations
    if seen is None:
        return
    found = f"{scene.name}: " * bool(scene.name) + f"{_describe_times(scene)}, {scene.steps} steps"
    apart = float(np.median(np.diff(seen.times))) if len(seen.times) > 1 else np.nan
    found += "" if np.isnan(apart) else f", {apart / scene.dt:.3g} a sample"
    if scene.steps > MANY_STEPS:
        yield Criterion("resolution", scene.steps, "doubtful", found, UNIT_OF_TIME)
        return
    clear = list_clear_channels(scene)
    period = min(
        [find_period(seen.times[rows], seen.values[rows, c], noise) for c, rows, noise in clear], default=np.inf
    )
    steps, samples = period / scene.dt, period / apart
    if np.isfinite(period):
        found += (
            f"; shortest period about {period:.3g} {scene.units.time}, of {steps:.3g} steps and {samples:.3g} samples"
        )
    if np.isfinite(period) and steps > MANY_STEPS_A_PERIOD:
        yield Criterion("resolution", steps, "doubtful", found, UNIT_OF_TIME)
    elif steps < FEW_STEPS or samples < FEW_SAMPLES:
        remedy = "Lower time.dt." if steps < FEW_STEPS else "Record more often, or fit a slower part of the motion."
        yield Criterion("resolution", min(steps, samples), "doubtful", found, remedy)
    else:
        yield Criterion("resolution", steps if np.isfinite(steps) else np.nan, "passed", found)


def _describe_times(scene: Setup) -> str:
    """Describe the times that were read."""
    seen, section = scene.observations, scene.config.observations
    assert seen is not None
    own = scene.units.time
    unit = f", read in units of {section.time_unit:g} {own}" * (section is not None and section.time_unit != 1)
    if len(seen.times) == 1:
        return f"1 sample at {seen.times[0]:.3g} {own}{unit}"
    return f"{len(seen.times)} samples from {seen.times[0]:.3g} to {seen.times[-1]:.3g} {own}{unit}"


def list_clear_channels(scene: Setup) -> Iterator[tuple[int, Array, float]]:
    """List the channels that stand out of their noise, which alone would cross the mean: rows of samples, and noise."""
    seen = scene.observations
    if not isinstance(seen, Observations):
        return
    stated = sigma_is_stated(scene)
    for c in range(len(seen.channels)):
        rows = np.flatnonzero(seen.weights[:, c] > 0)
        times, values, weights = seen.times[rows], seen.values[rows, c], seen.weights[rows, c]
        squares, freedom = (1.0, 1) if stated else compare_neighbours(times, values[:, None], weights[:, None])
        noise = np.sqrt(squares / freedom / np.median(weights)) if freedom and len(rows) else np.inf
        if len(rows) and np.ptp(values) > 10 * noise:
            yield c, rows, float(noise)


def _judge_waves(scene: Setup) -> Iterator[Criterion]:
    """Judge the cells in a wavelength, of a scene of waves with sources."""
    waves, signal = scene.model.describe_waves(scene.params.arrays()), scene.control()
    if waves is None or signal is None or not np.any(signal.data):
        return
    steps = np.moveaxis(signal.data, -2, 0)
    peak, highest = find_band(np.asarray(steps.reshape(len(steps), -1), float), scene.dt)
    if highest == 0:
        return
    cells, error = waves.cells_a_wavelength(highest), waves.speed_error(highest)
    found = f"{scene.name}: " * bool(scene.name)
    frequency, speed = scene.units.frequency, scene.units.speed
    found += f"{cells:.3g} cells in one of {highest:.3g} {frequency}, where the source has half of its power, "
    found += f"at {waves.speed:.4g} {speed}; "
    if peak > 0:
        found += f"{waves.cells_a_wavelength(peak):.3g} at its strongest, {peak:.3g} {frequency}; "
    if error == -1:
        found += "the grid does not carry such waves"
    else:
        found += f"on the grid they are {100 * abs(error):.2g} % too {'slow' if error < 0 else 'fast'}"
    if abs(error) > SPEED_ERROR:
        remedy = "Take smaller cells (grid.spacing), a higher simulator.order, or a lower frequency of the source."
        yield Criterion("wavelength", cells, "doubtful", found, remedy)
    else:
        yield Criterion("wavelength", cells, "passed", found)
