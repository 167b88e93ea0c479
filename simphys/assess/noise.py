"""Noise of channels whose sigma is unknown, estimated from the residuals of fits.

The likelihood of Gaussian noise is maximal where sigma_c^2 is the mean square of the residuals of channel c, and theta
minimizes the sum of squares with these sigmas. Both are found in turn (iterated generalized least squares). Of N
samples, p degrees of freedom go to the unknowns, evenly from all channels:

    sigma_c^2 = sum_i w_ci r_ci^2 / (n_c (1 - p / N))

Experiments share the noise of a channel. Source: Seber and Wild 2003, Nonlinear Regression, section 2.8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from simphys import optimize
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective
from simphys.experiment.observe import Observations
from simphys.experiment.scene import Scene
from simphys.experiment.setup import Setup
from simphys.experiment.shooting import close_gaps

from .criteria import Criterion

Key = tuple[int, str]
"""Number and label of a channel."""

ROUNDS = 20
SETTLED = 1e-3
"""Relative change of all sigmas below which they are found."""
LEAST = 1e-9
"""Noise, relative to the scatter of the values, below which the model passes through all samples."""


def estimate_noise(scene: Scene) -> Scene:
    """Estimate the noise that a scene leaves unknown, and weight its measurements by it; others stay as they are.

    Errors: InputError for a model that passes through all samples of a channel, or noise that does not settle.
    """
    unknown = [seen for seen in _list_measurements(scene) if seen.noise and not seen.is_estimated]
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
        if trial and all(abs(np.log(now[key] / last[key])) < SETTLED for key in now):
            return scene
    else:
        found = ", ".join([f"{sigma:.3g} ({label})" for (_, label), sigma in now.items()])
        constraint = f"must be stated, as {ROUNDS} fits in turn did not find it"
        raise InputError("observations.channels, sigma", constraint, found, "State the noise of the sensor.")
    return scene


def judge_noise(scene: Setup) -> Criterion | None:
    """Tell the noise that was estimated; None if none was unknown."""
    found: dict[Key, str] = {}
    for seen in _list_measurements(scene):
        if seen.is_estimated:
            for key, sigma in _noise_of(seen).items():
                found[key] = f"{sigma:.3g} {seen.channels[key[0]].unit}".rstrip() + f" ({key[1]})"
    if not found:
        return None
    return Criterion("noise", len(found), "passed", f"estimated: {', '.join(found.values())}")


def _list_measurements(scene: Setup) -> list[Observations]:
    return [part.observations for part in scene.parts if isinstance(part.observations, Observations)]


def _noise_of(seen: Observations) -> dict[Key, float]:
    """Return the unknown noise of the channels of a measurement."""
    return {(c, seen.channels[c].label): sigma for c, sigma in enumerate(seen.noise) if sigma is not None}


def _share_noise(measurements: list[Observations]) -> dict[Key, float]:
    """Return one first guess for the channels that experiments share."""
    found: dict[Key, float] = {}
    for seen in measurements:
        for key, sigma in _noise_of(seen).items():
            found[key] = max(sigma, found.get(key, 0.0))
    return found


def _with_noise(scene: Scene, sigmas: dict[Key, float]) -> Scene:
    """Weight the measurements of a scene by the noise of their channels."""

    def weigh(part: Any) -> Any:
        seen = part.observations
        if not isinstance(seen, Observations) or not seen.noise:
            return part
        noise = list(seen.noise)
        factors = np.ones(len(noise))
        for (c, label), sigma in _noise_of(seen).items():
            factors[c], noise[c] = (sigma / sigmas[c, label]) ** 2, sigmas[c, label]
        unseen = None if seen.validation is None else seen.validation * factors
        weighted = replace(
            seen, weights=seen.weights * factors, validation=unseen, noise=tuple(noise), is_estimated=True
        )
        return replace(part, observations=weighted)

    if scene.experiments:
        return replace(scene, experiments=tuple([weigh(part) for part in scene.experiments]))
    found: Scene = weigh(scene)
    return found


def _measure_noise(objective: SceneObjective[Any], theta: np.ndarray, sigmas: dict[Key, float]) -> dict[Key, float]:
    """Return the noise of which the residuals at theta tell."""
    residuals, begin, count = objective.residuals(theta), 0, 0
    squares, samples = dict.fromkeys(sigmas, 0.0), dict.fromkeys(sigmas, 0)
    for part in objective.scene.parts:
        if (seen := part.observations) is None:
            continue
        own = residuals[begin : begin + seen.values.size].reshape(seen.values.shape)
        begin += seen.values.size
        count += int(np.count_nonzero(seen.weights))
        for key in _noise_of(seen):
            squares[key] += float(np.sum(own[:, key[0]] ** 2))
            samples[key] += int(np.count_nonzero(seen.weights[:, key[0]]))
    left = max(1 - theta.size / count, 1 / count)
    return {key: sigma * float(np.sqrt(squares[key] / (samples[key] * left))) for key, sigma in sigmas.items()}


def _require_residuals(scene: Scene) -> None:
    """Raise InputError for a scene whose fits leave no residuals that tell the noise."""
    if scene.config.optimizer.smoothing is not None or not scene.objective().has_residuals:
        remedy = "State the noise of the sensor, or drop optimizer.smoothing and a limit of runtime.memory."
        found = "a smoothed loss, or sums along time within a limit of memory"
        raise InputError("observations.channels, sigma", "an unknown one needs residuals", found, remedy)


def _require_noise(sigmas: dict[Key, float], first: dict[Key, float]) -> None:
    """Raise InputError for a channel without any noise."""
    for (c, label), sigma in sigmas.items():
        if not sigma > LEAST * first[c, label]:
            constraint = f"must be stated, as the model passes through all samples of {label}"
            remedy = "State the noise of the sensor, or use fewer unknowns."
            raise InputError(f"observations.channels.{c}.sigma", constraint, '"unknown"', remedy)


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
