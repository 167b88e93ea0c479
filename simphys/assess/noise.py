"""Noise of channels whose sigma or correlation time is unknown, estimated from the residuals of fits.

The likelihood of Gaussian noise is maximal where sigma_c^2 is the mean square of the residuals of channel c, and theta
minimizes the sum of squares with these sigmas. Both are found in turn (iterated generalized least squares). Of N
samples, p degrees of freedom go to the unknowns, evenly from all channels:

    sigma_c^2 = sum_i w_ci r_ci^2 / (n_c (1 - p / N))

A correlation time is that of the largest restricted likelihood, see memory.py; r are then the whitened residuals. The
data tell of values and of their noise independently of each other, so that the errors of values are those for a noise
that is known. Experiments share the noise of a channel. Source: Seber and Wild 2003, Nonlinear Regression, sections 2.8
and 6.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.experiment.memory_noise import colour
from simphys.experiment.misfits import memories_of
from simphys.experiment.objective import SceneObjective
from simphys.experiment.observe import Observations
from simphys.experiment.scene import Scene
from simphys.experiment.setup import Setup
from simphys.experiment.shooting import close_gaps

from .criteria import Criterion
from .memory import Residuals, find_memory
from .uncertainty import LARGEST

Key = tuple[int, str]
"""Number and label of a channel."""

ROUNDS = 20
SETTLED = 1e-3
"""Relative change of all sigmas and correlation times below which they are found."""
FEWEST = 10
"""Samples of which a correlation time can be estimated."""
LEAST = 1e-9
"""Noise, relative to the scatter of the values, below which the model passes through all samples."""


@dataclass(frozen=True)
class Noise:
    """Noise of a channel, as far as it is unknown."""

    sigma: float | None
    """Standard deviation in the unit of the channel; None: it is stated."""
    tau: float | None = None
    """Correlation time [s]; None: it is stated, not found yet, or neighbours are independent."""
    error: float | None = None
    """Standard error of the logarithm of an unknown correlation time: inf before it is found, 0 if there is none."""
    at_longest: bool = False
    """True if the correlation time is as long as the recording."""

    def is_near(self, other: Noise) -> bool:
        """Return True if both are the same, as far as it matters."""
        pairs = [(self.sigma, other.sigma), (self.tau, other.tau)]
        return all(one is two is None or (one and two and abs(np.log(one / two)) < SETTLED) for one, two in pairs)

    def describe(self, time: str, unit: str = "") -> str:
        """Describe what was found; `time`: the unit of times, `unit`: that of the channel."""
        words = [] if self.sigma is None else [f"{self.sigma:.3g} {unit}".rstrip()]
        if self.tau is not None:
            ends = [f"{self.tau * np.exp(sign * self.error):.2g}" for sign in (-1, 1)] if self.error else []
            words.append(f"correlation time {self.tau:.2g} {time} (68 %: {' to '.join(ends)})")
        elif self.error is not None:
            words.append("without a memory")
        return ", ".join(words)


def estimate_noise(scene: Scene) -> Scene:
    """Estimate the noise that a scene leaves unknown, and weight its measurements by it; others stay as they are.

    Errors: InputError for a model that passes through all samples of a channel, for noise that does not settle, and for
    a memory as long as the recording.
    """
    unknown = [seen for seen in _list_measurements(scene) if _list_unknown(seen) and not seen.is_estimated]
    if not unknown:
        return scene
    _require_residuals(scene)
    first = _share_noise(unknown)
    scene, theta, now = _with_noise(scene, first), None, first
    for trial in range(ROUNDS):
        objective = scene.objective() if theta is None else scene.objective().with_start(theta)
        result = _search(objective, near=theta is not None)
        if result.status == "failed":  # the fit itself will say why
            break
        theta, last = result.theta, now
        now = _measure_noise(objective, theta, last)
        _require_noise(now, first)
        scene = _with_noise(scene, now)
        if trial and all(now[key].is_near(last[key]) for key in now):
            _require_shorter_memories(now)
            return scene
    else:
        found = ", ".join([f"{noise.describe(scene.units.time)} ({label})" for (_, label), noise in now.items()])
        constraint = f"must be stated, as {ROUNDS} fits in turn did not find it"
        raise InputError("observations.channels, noise", constraint, found, "State the noise of the sensor.")
    return scene


def judge_noise(scene: Setup) -> Criterion | None:
    """Tell the noise that was estimated; None if none was unknown."""
    found: dict[Key, str] = {}
    for seen in _list_measurements(scene):
        if seen.is_estimated:
            for key, noise in _noise_of(seen).items():
                found[key] = f"{noise.describe(scene.units.time, seen.channels[key[0]].unit)} ({key[1]})"
    if not found:
        return None
    return Criterion("noise", len(found), "passed", f"estimated: {', '.join(found.values())}")


def _list_unknown(seen: Observations) -> list[int]:
    """List the channels whose noise, or its correlation time, is unknown."""
    sigmas = seen.noise or [None] * len(seen.channels)
    return [c for c, each in enumerate(seen.channels) if sigmas[c] is not None or each.correlation_error is not None]


def _list_measurements(scene: Setup) -> list[Observations]:
    return [part.observations for part in scene.parts if isinstance(part.observations, Observations)]


def _noise_of(seen: Observations) -> dict[Key, Noise]:
    """Return the unknown noise of the channels of a measurement, as it takes it now."""
    found = {}
    for c in _list_unknown(seen):
        each = seen.channels[c]
        tau = None if each.correlation_error is None else each.correlation_time
        found[c, each.label] = Noise(seen.noise[c] if seen.noise else None, tau, each.correlation_error)
    return found


def _share_noise(measurements: list[Observations]) -> dict[Key, Noise]:
    """Return one first guess for the channels that experiments share."""
    found: dict[Key, Noise] = {}
    for seen in measurements:
        for key, noise in _noise_of(seen).items():
            if key not in found or (noise.sigma or 0.0) > (found[key].sigma or 0.0):
                found[key] = noise
    return found


def _with_noise(scene: Scene, now: dict[Key, Noise]) -> Scene:
    """Weight the measurements of a scene by the noise of their channels."""

    def weigh(part: Any) -> Any:
        seen = part.observations
        if not isinstance(seen, Observations) or not _list_unknown(seen):
            return part
        sigmas, channels, factors = list(seen.noise), list(seen.channels), np.ones(len(seen.channels))
        for (c, label), before in _noise_of(seen).items():
            noise = now[c, label]
            if before.sigma is not None and noise.sigma is not None:
                factors[c], sigmas[c] = (before.sigma / noise.sigma) ** 2, noise.sigma
            if noise.error is not None:
                channels[c] = replace(channels[c], correlation_time=noise.tau, correlation_error=noise.error)
        unseen = None if seen.validation is None else seen.validation * factors
        weighted = replace(
            seen,
            weights=seen.weights * factors,
            validation=unseen,
            noise=tuple(sigmas),
            channels=tuple(channels),
            is_estimated=True,
        )
        return replace(part, observations=weighted)

    if scene.experiments:
        return replace(scene, experiments=tuple([weigh(part) for part in scene.experiments]))
    found: Scene = weigh(scene)
    return found


def _measure_noise(objective: SceneObjective[Any], theta: np.ndarray, last: dict[Key, Noise]) -> dict[Key, Noise]:
    """Return the noise of which the residuals at theta tell."""
    residuals = objective.residuals(theta)
    jacobian = np.zeros((residuals.size, 0))
    if theta.size <= LARGEST and any(noise.error is not None for noise in last.values()):
        jacobian = objective.jacobian(theta)
    whole = jacobian.T @ jacobian
    begin, count = 0, 0
    whitened: dict[Key, list[Residuals]] = {key: [] for key in last}
    raw: dict[Key, list[Residuals]] = {key: [] for key in last}
    for part in objective.scene.parts:
        if (seen := part.observations) is None:
            continue
        rows = slice(begin, begin + seen.values.size)
        begin = rows.stop
        count += int(np.count_nonzero(seen.weights))
        own, slopes = residuals[rows].reshape(seen.values.shape), jacobian[rows].reshape(*seen.values.shape, -1)
        memories = memories_of(seen)
        coloured = (own, slopes) if memories is None else (colour(memories, own), colour(memories, slopes))
        for key in _noise_of(seen):
            place = np.flatnonzero(seen.weights[:, key[0]] > 0), key[0]
            whitened[key].append(Residuals(seen.times[place[0]], own[place], slopes[place]))
            raw[key].append(Residuals(seen.times[place[0]], *[each[place] for each in coloured]))
    left = max(1 - theta.size / count, 1 / count)
    found = {}
    for key, noise in last.items():
        if noise.error is None:
            variance = float(np.mean(np.concatenate([each.values for each in whitened[key]]) ** 2)) / left
            found[key] = replace(noise, sigma=_scaled(noise.sigma, variance))
        else:
            others = whole - sum([each.jacobian.T @ each.jacobian for each in whitened[key]])
            found[key] = _measure_memory(key, noise, raw[key], others, left)
    return found


def _measure_memory(key: Key, noise: Noise, raw: list[Residuals], others: np.ndarray, left: float) -> Noise:
    """Return the noise of a channel with an unknown correlation time; see `find_memory`."""
    source = f"observations.channels.{key[0]}.correlation_time"
    recordings = [each for each in raw if len(each.times) > 1]
    if (count := sum([len(each.times) for each in recordings])) < FEWEST:
        constraint = f'"unknown" needs {FEWEST} samples of {key[1]} or more'
        raise InputError(source, constraint, count, "State it, or drop it.")
    if not any(each.values.any() for each in recordings):
        constraint = f"must be stated, as the model passes through all samples of {key[1]}"
        raise InputError(source, constraint, '"unknown"', "Drop it.")
    found = find_memory(recordings, others, left)
    return Noise(_scaled(noise.sigma, found.variance), found.tau, found.error, found.at_longest)


def _scaled(sigma: float | None, variance: float) -> float | None:
    return None if sigma is None else sigma * float(np.sqrt(variance))


def _require_residuals(scene: Scene) -> None:
    """Raise InputError for a scene whose fits leave no residuals that tell the noise."""
    if scene.config.optimizer.smoothing is not None or not scene.objective().has_residuals:
        remedy = "State the noise of the sensor, or drop optimizer.smoothing and a limit of runtime.memory."
        found = "a smoothed loss, or sums along time within a limit of memory"
        raise InputError("observations.channels, sigma", "an unknown one needs residuals", found, remedy)


def _require_noise(now: dict[Key, Noise], first: dict[Key, Noise]) -> None:
    """Raise InputError for a channel without any noise."""
    for (c, label), noise in now.items():
        if noise.sigma is not None and not noise.sigma > LEAST * (first[c, label].sigma or 0.0):
            constraint = f"must be stated, as the model passes through all samples of {label}"
            remedy = "State the noise of the sensor, or use fewer unknowns."
            raise InputError(f"observations.channels.{c}.sigma", constraint, '"unknown"', remedy)


def _require_shorter_memories(now: dict[Key, Noise]) -> None:
    """Raise InputError for residuals that drift over a whole recording: that is no noise that forgets."""
    for (c, label), noise in now.items():
        if noise.at_longest:
            constraint = f"must be stated, as the residuals of {label} drift over the whole recording"
            remedy = "State it, record longer, or look for what the model lacks."
            raise InputError(f"observations.channels.{c}.correlation_time", constraint, '"unknown"', remedy)


def _search(objective: SceneObjective[Any], *, near: bool) -> optimize.Result:
    """Search as the scene says, from near the optimum over the full horizon at once."""
    chosen, horizon = objective.scene.config.optimizer, "full"
    if not near and chosen.horizon == "shooting":
        objective = objective.with_start(close_gaps(objective))
    elif not near:
        horizon = chosen.horizon
    return optimize.minimize(
        objective,
        method=chosen.method,
        iterations=chosen.iterations,
        tolerance=chosen.tolerance,
        learning_rate=chosen.learning_rate if chosen.method in ("adam", "gradient_descent") else None,
        horizon="growing" if horizon == "growing" else "full",
    )
