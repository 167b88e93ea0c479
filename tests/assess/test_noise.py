"""Noise of channels whose sigma is unknown: estimated with the fit, and weighted by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.assess.noise import estimate_noise
from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene
from simphys.scenefile import ConfigError

from ..helpers.small_scenes import oscillator

TIMES = np.linspace(0.04, 3.96, 150)
TRUE = (0.01, 0.08)
"""Noise of two sensors of one glider."""


def exact(time: np.ndarray) -> np.ndarray:
    """The damped oscillation from rest at 1 m."""
    rate = np.sqrt(9 - 0.05**2)
    return np.asarray(np.exp(-0.05 * time) * (np.cos(rate * time) + 0.05 / rate * np.sin(rate * time)))


def write(file: Path, factor: float = 1.0) -> None:
    random = np.random.default_rng(3)
    first, second = (exact(TIMES) + sigma * random.standard_normal(len(TIMES)) for sigma in TRUE)
    np.savetxt(file, np.column_stack([TIMES, first, factor * second]))


def glider(file: Path, first: Any = "unknown", second: Any = "unknown", gain: float = 1.0, **changes: Any) -> Scene:
    channels = [
        {"column": column, "field": "position", "node": 0, "unit": "m", "sigma": sigma, "gain": factor}
        for column, sigma, factor in ((1, first, 1.0), (2, second, gain))
    ]
    return oscillator(file, observations={"channels": channels}, **changes)


def test_the_noise_of_each_sensor_is_found_and_its_samples_weigh_by_it(tmp_path: Path) -> None:
    file = tmp_path / "seen.txt"
    write(file)
    fit = simphys.identify(glider(file))
    seen: Any = fit.scene.observations
    assert seen.is_estimated
    np.testing.assert_allclose(seen.noise, TRUE, rtol=0.2)
    np.testing.assert_allclose(seen.weights, np.broadcast_to(np.array(seen.noise) ** -2.0, (150, 2)))
    assert fit.verdict == "passed", fit.criteria
    (told,) = [each for each in fit.criteria if each.name == "noise"]
    assert told.found.startswith("estimated: 0.0") and fit.uncertainty is not None
    assert fit.uncertainty.standard.sigma == pytest.approx(1, abs=1e-3)
    stated = simphys.identify(glider(file, *seen.noise))
    for mine, theirs in zip(fit.unknowns, stated.unknowns, strict=True):
        assert mine.value == pytest.approx(theirs.value, abs=1e-3 * theirs.standard_error)
        assert mine.standard_error == pytest.approx(theirs.standard_error, rel=1e-3)
    assert estimate_noise(fit.scene) is fit.scene and estimate_noise(stated.scene) is stated.scene


def test_the_noise_has_the_unit_of_its_column(tmp_path: Path) -> None:
    """The second column is in mm: the fit is the same."""
    meters, millimeters = tmp_path / "m.txt", tmp_path / "mm.txt"
    write(meters)
    write(millimeters, factor=1000.0)
    one: Any = estimate_noise(glider(meters)).observations
    other: Any = estimate_noise(glider(millimeters, gain=1000.0)).observations
    np.testing.assert_allclose(other.noise, np.array(one.noise) * [1, 1000], rtol=1e-3)


def test_a_stated_noise_stays(tmp_path: Path) -> None:
    file = tmp_path / "seen.txt"
    write(file)
    seen: Any = estimate_noise(glider(file, first=0.03)).observations
    assert seen.noise[0] is None and seen.noise[1] == pytest.approx(TRUE[1], rel=0.2)
    np.testing.assert_allclose(seen.weights[:, 0], 0.03**-2)


def test_a_channel_without_any_noise_is_told(tmp_path: Path) -> None:
    """Both channels show the prediction itself."""
    file = tmp_path / "seen.txt"
    write(file)
    scene = glider(file)
    shown = scene.predict(scene.rollout()).data
    np.savetxt(file, np.column_stack([TIMES, shown]), fmt="%.18g")
    with pytest.raises(InputError, match="the model passes through all samples"):
        estimate_noise(glider(file))


def test_a_robust_loss_needs_the_noise(tmp_path: Path) -> None:
    file = tmp_path / "seen.txt"
    write(file)
    with pytest.raises(ConfigError, match="sigma: must be a number unless loss"):
        glider(file, loss={"kind": "cauchy", "delta": 2.0})
