"""The next experiment: how much sensors, recordings and sample times would tell about the unknowns.

By linearization, errors are those of F^-1 with F = J^T J, J the derivatives of the whitened residuals. A change of the
experiment adds rows to J or takes some away. It is ranked by the change of log det F: with p unknowns, the volume of
the errors changes by exp(-gain / 2), and an error on average by the factor exp(-gain / (2 p)) (D-optimality).
Source: Atkinson, Donev and Tobias 2007, Optimum Experimental Designs, with SAS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.experiment import sensors
from simphys.experiment.channels import Channel, component_name
from simphys.experiment.objective import SceneObjective
from simphys.experiment.observe import Observations
from simphys.experiment.several import map_measurements
from simphys.experiment.trajectory import with_horizon

from .series import SplitResiduals, list_channels, split_residuals

Array = np.ndarray[Any, Any]

PARTS = 10
"""Number of parts of the time of each recording."""
LONGER = 1.5
"""Factor of a longer recording."""
RECORDING = "recording "
MOST_CANDIDATES = 24
"""Largest number of components of the state that are considered as further sensors; of more, as many are drawn."""


@dataclass(frozen=True)
class Option:
    """A change of the experiment."""

    kind: str
    """"now", "without", "twice", "further sensor" or "longer"."""
    name: str
    gain: float
    """Change of log det F; minus infinity if the data then no longer determine the unknowns."""
    errors: Array
    """Standard errors of the values [p] in their units: infinite where they are not determined, NaN where they are not
    needed, such as the start of a recording that is left out."""

    @property
    def factor(self) -> float:
        """Factor of an error, on average over the unknowns."""
        return float(np.exp(-self.gain / (2 * np.count_nonzero(~np.isnan(self.errors)))))


@dataclass(frozen=True)
class Design:
    """Information of an experiment about its unknowns, and of changes of it."""

    labels: tuple[str, ...]
    units: tuple[str, ...]
    now: Option
    options: tuple[Option, ...]
    """The best first."""
    times: dict[str, Array]
    """Ends of parts of the time of each experiment [s], [PARTS + 1]."""
    lost: dict[str, Array]
    """Fall of log det F without each part, [PARTS]."""


def design(objective: SceneObjective[Any], theta: Array) -> Design:
    """Rank changes of an experiment by what they tell about the unknowns at theta [p].

    Errors: InputError for a scene without a measurement by channels, or data that do not determine the unknowns;
    optimize.FailedTrial.
    """
    parts = [part for part in objective.scene.parts if part.observations is not None]
    if not parts or not all(isinstance(part.observations, Observations) for part in parts):
        remedy = "Add [observations] with channels; values may be zero, as only times and sigmas count."
        raise InputError("design", "needs a measurement by channels", "none", remedy)
    objective = objective.with_squares()
    jacobian = objective.jacobian(theta)
    optimize.rank_report(jacobian, objective.labels).require_full()
    rank = _Ranking(objective, theta, jacobian.T @ jacobian)
    split = split_residuals(objective.scene, objective.residuals(theta), jacobian)
    options = [*_sensors(rank, split), *_further_sensors(rank), *_longer(rank)]
    times, lost = _parts_of_time(rank, split)
    order = sorted(options, key=lambda each: -each.gain)
    labels, units = tuple(objective.labels), tuple(objective.unknowns.units)
    return Design(labels, units, rank.option("now", "", rank.now), tuple(order), times, lost)


class _Ranking:
    """Options by their information F."""

    def __init__(self, objective: SceneObjective[Any], theta: Array, now: Array) -> None:
        self.objective, self.theta, self.now = objective, theta, now
        self._derivative = np.abs(objective.unknowns.natural_derivative(theta))

    def option(self, kind: str, name: str, information: Array) -> Option:
        return _compare(kind, name, self.now, information, self._derivative)

    def option_without(self, name: str, recording: str, information: Array) -> Option:
        """The option without a recording: F of the other unknowns, once those of its own are eliminated."""
        parts = [part.name for part in self.objective.scene.parts]
        own = np.zeros(len(self.theta), bool)
        for block in self.objective.unknowns.blocks:
            own[block.where] = block.experiment is not None and parts[block.experiment] == recording
        if not own.any():
            return self.option("without", name, information)
        mixed, inside = self.now[np.ix_(~own, own)], self.now[np.ix_(own, own)]
        before = self.now[np.ix_(~own, ~own)] - mixed @ np.linalg.solve(inside, mixed.T)
        found = _compare("without", name, before, information[np.ix_(~own, ~own)], self._derivative[~own])
        errors = np.full(len(own), np.nan)
        errors[~own] = found.errors
        return replace(found, errors=errors)

    def information(self, scene: Any) -> Array:
        """Compute F of another scene with the same unknowns."""
        jacobian = SceneObjective(scene, self.objective.unknowns).jacobian(self.theta)
        return np.asarray(jacobian.T @ jacobian)


def _compare(kind: str, name: str, before: Array, after: Array, derivative: Array) -> Option:
    """Make the option of a change of F; derivative [p]: of the values by theta."""
    unit = np.sqrt(np.diag(before))
    (_, first), (sign, second) = (np.linalg.slogdet(each / np.outer(unit, unit)) for each in (before, after))
    scaled = after / np.outer(unit, unit)
    if sign <= 0 or np.linalg.cond(scaled) * np.finfo(float).eps > 1:
        return Option(kind, name, -np.inf, np.full(len(unit), np.inf))
    errors = np.sqrt(np.maximum(np.diag(np.linalg.inv(scaled)), 0.0)) / unit * derivative
    return Option(kind, name, float(second - first), errors)


def _sensors(rank: _Ranking, split: SplitResiduals) -> Iterator[Option]:
    """What the experiment would tell without each channel or recording, and with each of them twice.

    The only channel of one of several recordings is that recording, which takes its own unknowns along.
    """
    pieces: list[tuple[str, Array]] = []
    channels = list(list_channels(split.series))
    several = len(split.series) > 1
    for label, series, columns in channels:
        if several and sum([other is series for _, other, _ in channels]) == 1:
            continue
        rows = series.jacobian[:, columns].reshape(-1, len(rank.theta))
        pieces.append((label, rows.T @ rows))
    for series in split.series if several else ():
        rows = series.jacobian.reshape(-1, len(rank.theta))
        pieces.append((RECORDING + series.name, rows.T @ rows))
    for name, piece in pieces:
        yield rank.option("twice", name, rank.now + piece)
        if len(channels) > 1:
            yield rank.option_without(name, name.removeprefix(RECORDING), rank.now - piece)


def _further_sensors(rank: _Ranking) -> Iterator[Option]:
    """What a further component of a measured field would tell, with the same times and the same noise."""
    scene = rank.objective.scene
    first = next(part for part in scene.parts if part.observations is not None)
    if not all(sensors.is_plain(part.config) for part in scene.parts) or first.members is not None:
        return
    candidates = _list_candidates(first)
    drawn = np.random.default_rng(0).permutation(len(candidates))[:MOST_CANDIDATES]  # the first lie side by side
    for channel, sigma in [candidates[place] for place in np.sort(drawn)]:

        def see(seen: Observations, channel: Channel = channel, sigma: float = sigma) -> Observations:
            there = np.any(seen.weights > 0, axis=1, keepdims=True)
            return replace(
                seen, channels=(channel,), values=np.zeros(there.shape), weights=there / sigma**2, validation=None
            )

        added = rank.information(map_measurements(scene, see))
        yield rank.option("further sensor", channel.label, rank.now + added)


def _list_candidates(part: Any) -> list[tuple[Channel, float]]:
    """List the components of measured fields that no channel sees, with the median noise of those that are seen."""
    seen, found = part.observations, []
    taken = {(channel.field, channel.component) for channel in seen.channels}
    fixed: Any = getattr(part.model, "pinned", None)
    for field in dict.fromkeys(channel.field for channel in seen.channels if not channel.is_derived):
        alike = [place for place, channel in enumerate(seen.channels) if channel.field == field]
        weights = seen.weights[:, alike]
        sigma = float(np.median(weights[weights > 0] ** -0.5)) if (weights > 0).any() else 1.0
        unit = seen.channels[alike[0]].unit
        shape = part.model.state_shapes()[field]
        for index in np.ndindex(*shape):
            held = fixed is not None and len(fixed) == shape[0] and bool(fixed[index[0]])
            if (field, index) not in taken and not held:
                found.append((Channel(component_name(field, index, shape), field, index, unit), sigma))
    return found


def _longer(rank: _Ranking) -> Iterator[Option]:
    """What recordings half as long again would tell, with samples as close as now."""
    scene = rank.objective.scene

    def extend(part: Any) -> Any:
        seen = part.observations
        if seen is None:
            return part
        apart = float(np.median(np.diff(seen.times))) if len(seen.times) > 1 else part.dt
        steps = int(LONGER * part.steps)
        more = np.arange(seen.times[-1] + apart, steps * part.dt, apart)
        weights = seen.weights.mean(axis=0)  # of a channel with gaps, as much in all as with gaps
        longer = replace(
            seen,
            times=np.concatenate([seen.times, more]),
            values=np.concatenate([seen.values, np.zeros((len(more), seen.values.shape[1]))]),
            weights=np.concatenate([seen.weights, np.broadcast_to(weights, (len(more), len(weights)))]),
            validation=None,
        )
        return replace(with_horizon(part, steps), observations=longer)

    if scene.experiments:
        whole = replace(scene, experiments=tuple([extend(part) for part in scene.experiments]))
    else:
        whole = extend(scene)
    try:
        yield rank.option("longer", f"all recordings {LONGER:g} times as long", rank.information(whole))
    except optimize.FailedTrial:
        return


def _parts_of_time(rank: _Ranking, split: SplitResiduals) -> tuple[dict[str, Array], dict[str, Array]]:
    """Compute the fall of log det F without each part of the time."""
    times: dict[str, Array] = {}
    lost: dict[str, Array] = {}
    for series in split.series:
        ends = np.linspace(0, series.seen.times[-1], PARTS + 1)
        place = np.clip(np.searchsorted(ends, series.seen.times, side="left") - 1, 0, PARTS - 1)
        falls = []
        for part in range(PARTS):
            rows = series.jacobian[place == part].reshape(-1, len(rank.theta))
            falls.append(-rank.option("without", "", rank.now - rows.T @ rows).gain)
        times[series.name], lost[series.name] = ends, np.array(falls)
    return times, lost


def worst_error(option: Option, now: Option, labels: Sequence[str]) -> tuple[str, float]:
    """Return the unknown whose error shrinks least, or grows most, and the factor of its error."""
    with np.errstate(invalid="ignore", divide="ignore"):
        factors = option.errors / now.errors
    place = int(np.nanargmax(np.where(np.isnan(factors), -np.inf, factors)))
    return labels[place], float(factors[place])
