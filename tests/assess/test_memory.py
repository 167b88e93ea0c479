"""Noise whose correlation time is unknown: found with the fit, by the whole likelihood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import simphys
from simphys.assess.memory import FoundMemory, Residuals, disbelieve, find_memory
from simphys.assess.noise import estimate_noise
from simphys.autograd.errors import InputError
from simphys.experiment.memory_noise import colour, make_memories
from simphys.experiment.scene import Scene
from simphys.scenefile import ConfigError

from ..helpers.small_scenes import TRUTH, oscillator

TAU, SIGMA = 0.3, 0.01


def draw_noise(times: np.ndarray, seed: int, tau: float = TAU) -> np.ndarray:
    memories = make_memories(times, np.ones((len(times), 1)), [tau])
    return SIGMA * colour(memories, np.random.default_rng(seed).standard_normal((len(times), 1)))[:, 0]


def record(times: np.ndarray, residuals: np.ndarray, *columns: np.ndarray) -> Residuals:
    """Residuals of a fit of so many columns; none: the noise itself."""
    return Residuals(times, residuals, np.column_stack([np.zeros((len(times), 0)), *columns]))


def errors_in_errors(found: list[FoundMemory]) -> np.ndarray:
    """Errors of the logarithms of the correlation times, in units of their standard errors."""
    return np.array([np.log((each.tau or 1e-3) / TAU) / each.error for each in found])


def glider(folder: Path, tau: float | None = TAU, seed: int = 0, **channel: Any) -> Scene:
    """The oscillator for 8 s, seen 25 times a second with noise of a memory; None: with a drift in its place."""
    times = np.arange(1, 200) * 0.04
    rate = np.sqrt(TRUTH["stiffness"] - TRUTH["drag"] ** 2 / 4)
    motion = np.cos(rate * times) + TRUTH["drag"] / (2 * rate) * np.sin(rate * times)
    noise = 0.05 * times**2 if tau is None else draw_noise(times, seed, tau)
    oscillator(folder / "seen.txt")
    np.savetxt(folder / "own.txt", np.column_stack([times, np.exp(-TRUTH["drag"] / 2 * times) * motion + noise]))
    sees = {"column": 1, "field": "position", "node": 0, "unit": "m", "sigma": SIGMA, "correlation_time": "unknown"}
    seen = {"file": str(folder / "own.txt"), "channels": [sees | channel]}
    return oscillator(folder / "seen.txt", time={"duration": 8.0}, observations=seen)


def test_the_likelihood_is_that_of_a_normal_with_its_whole_covariance() -> None:
    """At uneven times; s^2 is at its optimum, so that the quadratic form is the number of samples."""
    times = np.sort(np.random.default_rng(0).uniform(0, 3, 15))
    residuals = draw_noise(times, 1)
    found = []
    for tau in (0.05, 0.3, 2.0):
        value, variance = disbelieve(tau, [record(times, residuals)])
        covariance = variance * np.exp(-np.abs(np.subtract.outer(times, times)) / tau)
        found.append(value + multivariate_normal(cov=covariance).logpdf(residuals))
    assert np.ptp(found) < 1e-10


def test_correlation_times_are_recovered_with_the_errors_that_the_curvature_says() -> None:
    times = np.sort(np.random.default_rng(3).uniform(0, 24, 300))
    found = [find_memory([record(times, draw_noise(times, seed))]) for seed in range(40)]
    missed = errors_in_errors(found)
    assert abs(missed.mean()) < 0.5 and 0.75 < missed.std() < 1.25
    assert np.mean([each.variance for each in found]) == pytest.approx(SIGMA**2, rel=0.1)


def test_a_fit_that_takes_slow_noise_for_its_values_does_not_shorten_the_correlation_time() -> None:
    """Three trends over 27 correlation times: the restricted likelihood allows for them, the plain one does not."""
    times = np.arange(1, 200) * 0.04
    trends = np.column_stack([np.cos(3 * times), times * np.sin(3 * times), times * np.cos(3 * times)])
    weights = np.linalg.inv(np.exp(-np.abs(np.subtract.outer(times, times)) / TAU))
    spread = np.linalg.inv(trends.T @ weights @ trends)
    restricted, plain, whole = [], [], []
    for seed in range(20):
        noise = draw_noise(times, seed)
        left = noise - trends @ (spread @ (trends.T @ weights @ noise))
        restricted.append(find_memory([record(times, left, trends)], np.zeros((3, 3)), 1 - 3 / 199))
        plain.append(find_memory([record(times, left)]))
        whole.append(find_memory([record(times, noise)]))
    allowed, shortened, known = (errors_in_errors(each).mean() for each in (restricted, plain, whole))
    assert abs(allowed - known) < 0.2 < 0.4 < known - shortened


def test_recordings_that_share_a_noise_tell_it_together() -> None:
    """Four recordings give half the error of one, and time does not run from one to the next."""
    times = np.arange(300) * 0.05
    recordings = [record(times, draw_noise(times, seed)) for seed in range(4)]
    alone, together = find_memory(recordings[:1]), find_memory(recordings)
    assert together.error == pytest.approx(alone.error / 2, rel=0.3)
    assert abs(errors_in_errors([together])[0]) < 2


def test_independent_noise_has_no_memory() -> None:
    times, random = np.arange(400) * 0.05, np.random.default_rng(0)
    found = [find_memory([record(times, random.standard_normal(400))]) for _ in range(10)]
    assert sum(each.tau is None for each in found) >= 3  # half of all, as their correlations are as often negative
    assert all(each.tau is None or np.exp(-0.05 / each.tau) < 0.2 for each in found)


def test_a_fit_finds_values_and_noise_together(tmp_path: Path) -> None:
    fit = simphys.identify(glider(tmp_path, sigma="unknown"))
    seen: Any = fit.scene.observations
    (channel,) = seen.channels
    assert abs(np.log(channel.correlation_time / TAU)) < 2 * channel.correlation_error < 1
    assert seen.noise[0] == pytest.approx(SIGMA, rel=0.25)
    for row in fit.unknowns:
        assert abs(row.value - TRUTH[row.label]) < 3 * row.standard_error
    verdicts = {each.name: each for each in fit.criteria}
    assert verdicts["white residuals"].verdict == "passed"
    assert f"correlation time {channel.correlation_time:.2g} s (68 %: " in verdicts["noise"].found
    assert estimate_noise(fit.scene) is fit.scene


def test_errors_are_those_of_a_fit_that_is_told_the_correlation_time(tmp_path: Path) -> None:
    found: Any = estimate_noise(glider(tmp_path))
    tau = found.observations.channels[0].correlation_time
    other: Any = estimate_noise(glider(tmp_path, sigma=10 * SIGMA)).observations
    assert other.channels[0].correlation_time == pytest.approx(tau, rel=1e-3)  # the unit of sigma plays no part
    asked, told = (simphys.identify(scene) for scene in (found, glider(tmp_path, correlation_time=tau)))
    for mine, theirs in zip(asked.unknowns, told.unknowns, strict=True):
        assert mine.value == pytest.approx(theirs.value, abs=1e-2 * theirs.standard_error)
        assert mine.standard_error == pytest.approx(theirs.standard_error, rel=1e-3)


def test_a_drift_is_no_noise_that_forgets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"channels.0.correlation_time: must be stated, as the residuals of .* drift"):
        estimate_noise(glider(tmp_path, tau=None))


def test_few_samples_tell_no_correlation_time(tmp_path: Path) -> None:
    scene = glider(tmp_path)
    rows = np.loadtxt(tmp_path / "own.txt")[:9]
    np.savetxt(tmp_path / "few.txt", rows)
    section = scene.config.observations.model_dump() | {"file": str(tmp_path / "few.txt")}
    with pytest.raises(InputError, match=r'"unknown" needs 10 samples of .* or more; found 9'):
        estimate_noise(oscillator(tmp_path / "seen.txt", time={"duration": 8.0}, observations=section))


def test_a_robust_loss_and_a_word_that_is_not_unknown_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match='correlation_time: must be a number, or "unknown"; found "unkown"'):
        glider(tmp_path, correlation_time="unkown")
    section = glider(tmp_path).config.observations.model_dump()
    with pytest.raises(ConfigError, match=r'correlation_time: must be a number unless loss.kind is "squares"'):
        oscillator(tmp_path / "seen.txt", observations=section, loss={"kind": "cauchy", "delta": 2.0})
