"""Does the motion from the start change as fast, and as much, as the recording says, and no sooner?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from simphys import optimize
from simphys.autograd import no_grad
from simphys.experiment.channels import Channel
from simphys.experiment.misfits import predict
from simphys.experiment.objective import SceneObjective, as_failed_trial
from simphys.experiment.observe import Observations
from simphys.experiment.setup import Setup
from simphys.experiment.trajectory import compute_trajectory

from .criteria import Criterion
from .resolution import CLEAR, FEW_SAMPLES, UNIT_OF_TIME, list_clear_channels

Array = np.ndarray[Any, Any]

OTHER_PACE = 10.0
"""Ratio of the times in which the recording, and the motion from the start, change, beyond which units may differ."""
OTHER_SIZE = 20.0
"""Ratio of the scatters of a recording and of the motion from the start, beyond which units may differ."""
RESTING_SAMPLES = 5
"""Least number of samples at the beginning that show a body at rest."""
MOVING = 20.0
"""Distance, in standard deviations of the noise, by which the motion from the start must move in that time."""
GAINS = {"rad": ("degrees", 57.29578), "deg": ("degrees", 57.29578), "m": ("mm", 1000), "mm": ("mm", 1000)}
"""Another unit that a column may have, and its gain, by the unit that its channel states."""
SCALES = {"channel_gain", "camera_scale", "camera_focal"}
"""Numbers of sensors whose start need not be near."""
BEGIN = "If the recording began before the motion, set observations.begin to the time when this began."


def judge_pace(objective: SceneObjective[Any]) -> Iterator[Criterion]:
    """Judge whether the motion from the start changes much faster than the recording, or before it; simulates it.

    It is faster, whatever the time step, if the times of the recording are in milliseconds, and before it if the
    recording began before the motion. Much smaller or larger changes than in the recording, as of a column in degrees,
    are doubted, too. Yields nothing if no channel stands out of its noise, or none moves.
    Errors: optimize.FailedTrial for a start that blows up.
    """
    found = [pace for part in objective.scene_at(objective.start).parts for pace in _compare_paces(part)]
    if not found:
        return
    sought = {each.parameter for each in objective.scene.config.unknowns.values()}
    if sought.isdisjoint(SCALES):
        yield from [each.size for each in found if each.size][:1]
    words, ratio, _, _ = max(found, key=lambda each: each.ratio)
    rests = [each.rest for each in found if each.rest]
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
    return _describe_doubt(objective, lambda each: each.remedy == BEGIN)


def describe_size(objective: SceneObjective[Any]) -> str:
    """Describe a recording that changes much more, or less, than the motion from the start, likewise."""
    return _describe_doubt(objective, lambda each: each.name == "size")


def _describe_doubt(objective: SceneObjective[Any], chosen: Callable[[Criterion], bool]) -> str:
    try:
        doubts = [each for each in judge_pace(objective) if chosen(each)]
    except optimize.FailedTrial:
        return ""
    return f"{doubts[0].found}. {doubts[0].remedy}" if doubts else ""


class _Pace(NamedTuple):
    """A channel beside the motion from the start."""

    words: str
    ratio: float
    """Time in which the channel changes by its scatter over that of the motion."""
    rest: str
    """Words about a channel that rests at the beginning, while the motion does not, or ""."""
    size: Criterion | None
    """Doubt about its scatter, if that of the motion is another one."""


def _compare_paces(scene: Setup) -> Iterator[_Pace]:
    """Compare each channel with the motion from the start.

    Noise makes the first time shorter, so that it hides a difference, and feigns none. Periodic angles are left out.
    """
    seen = scene.observations
    clear = [each for each in list_clear_channels(scene) if len(each[1]) >= FEW_SAMPLES]
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
            doubt = _judge_size(seen.channels[c], name, float(values.std() / size))
            yield _Pace(words, float(own * rate / size), still, doubt)


def _judge_size(channel: Channel, name: str, ratio: float) -> Criterion | None:
    """Doubt a channel that scatters by another multiple of the motion from the start than wrong starts explain."""
    if 1 / OTHER_SIZE < ratio < OTHER_SIZE:
        return None
    words = f"{name} changes {ratio:.3g} times as much as in the motion from the start"
    remedy = "Has the column another unit than the field? Then set the gain of the channel."
    if ratio > 1 and (other := GAINS.get(channel.unit)):
        remedy = "Is the column in {}? Then set the gain of the channel to {:.7g}.".format(*other)
    return Criterion("size", ratio, "doubtful", words, f"{remedy} Otherwise give unknowns.NAME.start other values.")


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
