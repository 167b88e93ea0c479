"""Do time steps, samples and cells resolve the motion, and does it change as fast as the recording says?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd import no_grad
from simphys.experiment.misfits import predict, sigma_is_stated
from simphys.experiment.objective import SceneObjective, as_failed_trial
from simphys.experiment.observe import Observations
from simphys.experiment.setup import Setup
from simphys.experiment.trajectory import compute_trajectory

from .chi_square import compare_neighbours
from .criteria import Criterion

Array = np.ndarray[Any, Any]

FEW_STEPS, FEW_SAMPLES = 20.0, 4.0
"""Least time steps, and samples, in a period of the measured motion."""
MANY_STEPS = 5_000_000
"""Steps of a horizon beyond which the unit of time is doubtful."""
MANY_STEPS_A_PERIOD = 100_000
"""Steps in a period of the measured motion beyond which the unit of time is doubtful."""
OTHER_PACE = 10.0
"""Ratio of the times in which the recording, and the motion from the start, change, beyond which units may differ."""
RESTING_SAMPLES = 5
"""Least number of samples at the beginning that show a body at rest."""
MOVING = 20.0
"""Distance, in standard deviations of the noise, by which the motion from the start must move in that time."""
CLEAR = 4.0
"""Distance from the mean, in standard deviations of the noise, at which a value lies on one side of it."""
SPEED_ERROR = 0.01
"""Relative error of the speed of the slowest waves that shifts a wave by a tenth of a period in ten wavelengths."""
BEGIN = "If the recording began before the motion, set observations.begin to the time when this began."
UNIT_OF_TIME = "Is the column of time in s? For a recording in ms set observations.time_unit = 0.001."


def judge_resolution(scene: Setup) -> list[Criterion]:
    """Judge time steps, samples and cells of each experiment; nothing is simulated."""
    return [each for part in scene.parts for each in (*_judge_sampling(part), *_judge_waves(part))]


def judge_pace(objective: SceneObjective[Any]) -> Iterator[Criterion]:
    """Judge whether the motion from the start changes much faster than the recording, or before it; simulates it.

    It is faster, whatever the time step, if the times of the recording are in milliseconds, and before it if the
    recording began before the motion. Yields nothing if no channel stands out of its noise, or none moves.
    Errors: optimize.FailedTrial for a start that blows up.
    """
    found = [pace for part in objective.scene_at(objective.start).parts for pace in _compare_paces(part)]
    if not found:
        return
    words, ratio, _ = max(found, key=lambda each: each[1])
    rests = [rest for *_, rest in found if rest]
    if ratio <= OTHER_PACE and len(rests) == len(found):
        yield Criterion("pace", ratio, "doubtful", rests[0], BEGIN)
    elif ratio > OTHER_PACE:
        remedy = f"{UNIT_OF_TIME} Otherwise give unknowns.NAME.start other values."
        yield Criterion("pace", ratio, "doubtful", words, remedy)
    else:
        yield Criterion("pace", ratio, "passed", words)


def describe_rest(objective: SceneObjective[Any]) -> str:
    """Describe a recording at rest while the motion from the start is not, with a remedy; empty if there is none.

    Nothing is said where the time at which channels are late is sought.
    """
    if any(each.parameter == "channel_delay" for each in objective.scene.config.unknowns.values()):
        return ""
    try:
        doubts = [each for each in judge_pace(objective) if each.remedy == BEGIN]
    except optimize.FailedTrial:
        return ""
    return f"{doubts[0].found}. {BEGIN}" if doubts else ""


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
    clear = _list_clear_channels(scene)
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


def _list_clear_channels(scene: Setup) -> Iterator[tuple[int, Array, float]]:
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


def _compare_paces(scene: Setup) -> Iterator[tuple[str, float, str]]:
    """Divide the time in which a channel changes by its scatter by that of the motion from the start, for each.

    Yields words, this ratio, and words about a channel that rests at the beginning, while the motion does not, or "".
    Noise makes the first time shorter, so that it hides a difference, and feigns none. Periodic angles are left out.
    """
    seen = scene.observations
    clear = [each for each in _list_clear_channels(scene) if len(each[1]) >= FEW_SAMPLES]
    if not clear or not isinstance(seen, Observations):
        return
    motion, rates = predict_with_rates(scene, seen)
    for c, rows, noise in clear:
        values = seen.values[rows, c]
        change, elapsed = (_root_mean_square(np.diff(each)) for each in (values, seen.times[rows]))
        own = values.std() * elapsed / change
        size, rate = motion[rows, c].std(), _root_mean_square(rates[rows, c])
        if size > 0 and rate > 0 and seen.channels[c].modulo is None:
            unit, name = scene.units.time, f"{scene.name}: " * bool(scene.name) + seen.channels[c].label
            words = f"{name} changes by its scatter in {own:.2g} {unit}, "
            words += f"in the motion from the start in {size / rate:.2g} {unit}"
            rest = _count_resting(values, noise)
            moved = np.ptp(motion[rows[:rest], c]) if rest >= RESTING_SAMPLES else 0.0
            still = ""
            if moved > MOVING * noise and moved > 0.2 * np.ptp(values):
                until = seen.times[rows[rest - 1]]
                still = f"{name} is at rest for the first {until:.3g} {unit}, the motion from the start is not"
            yield words, float(own * rate / size), still


def _count_resting(values: Array, noise: float) -> int:
    """Count the samples at the beginning that differ from the mean of the first ones by noise alone."""
    away = np.abs(values - values[:RESTING_SAMPLES].mean()) > CLEAR * noise
    return int(np.argmax(away)) if away.any() else 0  # a channel that never moves tells nothing


def predict_with_rates(scene: Setup, seen: Observations) -> tuple[Array, Array]:
    """Predict the channels [N, C], and their rates over a time step at each sample, however far these are apart."""
    later = np.minimum(seen.times + scene.dt, scene.steps * scene.dt)
    times, places = np.unique(np.concatenate([later - scene.dt, later]), return_inverse=True)
    shape = (len(times), len(seen.channels))
    probe = replace(seen, times=times, values=np.zeros(shape), weights=np.ones(shape), validation=None)
    watched = replace(scene, observations=probe)
    with no_grad(), as_failed_trial():
        found = np.asarray(predict(watched, compute_trajectory(watched, only_seen=True)).data, float)
    before, after = found[places[: len(later)]], found[places[len(later) :]]
    return before, (after - before) / scene.dt


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
