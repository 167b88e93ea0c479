"""Samples of the posterior: the widths and means of densities that are known, and chains that have not mixed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app.samples import sample_rows, sample_scene
from simphys.autograd.errors import InputError
from simphys.optimize.posterior import Posterior, diagnose, sample_posterior
from simphys.plot.fit.measurement import fit as draw_fit
from simphys.plot.fit.posterior import posterior

from ..helpers.small_scenes import oscillator, oscillator_with_memory


class Quadratic:
    """Loss s^2 (theta - m) C^-1 (theta - m) / 2, within bounds."""

    labels = ["a", "b"]
    mean, covariance = np.array([1.0, -2.0]), np.array([[0.04, 0.03], [0.03, 0.09]])
    start, lower, upper = mean, np.full(2, -np.inf), np.full(2, np.inf)
    sigma = 1.7

    def value_and_gradient(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        away = theta - self.mean
        force = self.sigma**2 * np.linalg.solve(self.covariance, away)
        return 0.5 * float(away @ force), force


def sample(objective: Quadratic, **options: int) -> np.ndarray:
    pytest.importorskip("pints", reason="needs the package pints (extra bayes)")
    found = sample_posterior(objective, objective.mean, objective.covariance, objective.sigma, **options)  # type: ignore[arg-type]
    assert (found.rhat < 1.05).all() and (found.effective > 100).all() and found.divergences == 0
    return found.flat


def test_a_normal_density_has_its_mean_and_covariance() -> None:
    state = np.random.get_state()[1].copy()  # type: ignore[index]
    drawn = sample(Quadratic(), draws=400)
    np.testing.assert_allclose(drawn.mean(axis=0), Quadratic.mean, atol=0.04)
    np.testing.assert_allclose(np.cov(drawn.T), Quadratic.covariance, rtol=0.2, atol=0.005)
    assert np.array_equal(np.random.get_state()[1], state)  # type: ignore[index]
    np.testing.assert_array_equal(sample(Quadratic(), draws=400), drawn)


def test_no_sample_lies_beyond_a_bound() -> None:
    bounded = Quadratic()
    bounded.lower = np.array([1.0, -np.inf])
    found = sample_posterior_of(bounded)
    assert (found[:, 0] >= 1).all()
    assert found[:, 0].mean() == pytest.approx(1 + 0.2 * np.sqrt(2 / np.pi), abs=0.03)  # half a normal distribution


def sample_posterior_of(objective: Quadratic) -> np.ndarray:
    pytest.importorskip("pints", reason="needs the package pints (extra bayes)")
    return sample_posterior(objective, objective.mean, objective.covariance, objective.sigma, draws=400).flat  # type: ignore[arg-type]


def test_chains_that_disagree_are_told_from_those_that_have_mixed() -> None:
    random = np.random.default_rng(0)
    mixed = random.standard_normal((4, 500, 1))
    rhat, effective = diagnose(mixed)
    assert rhat[0] < 1.01 and effective[0] > 1500
    rhat, effective = diagnose(mixed + 3 * np.arange(4)[:, None, None])
    assert rhat[0] > 2 and effective[0] < 20
    slow = np.empty((4, 500, 1))
    slow[:, 0] = mixed[:, 0]
    for draw in range(1, 500):
        slow[:, draw] = 0.9 * slow[:, draw - 1] + np.sqrt(1 - 0.81) * mixed[:, draw]
    assert diagnose(slow)[1][0] == pytest.approx(2000 * 0.1 / 1.9, rel=0.5)


def test_the_posterior_of_a_kind_fit_is_as_wide_as_its_standard_errors(tmp_path: Path) -> None:
    pytest.importorskip("pints", reason="needs the package pints (extra bayes)")
    fit, found = sample_scene(oscillator(tmp_path / "seen.txt"), folder=tmp_path / "run", draws=60)
    (line,) = [each for each in fit.criteria if each.name == "posterior"]
    assert line.verdict == "passed", line
    assert fit.uncertainty is not None
    np.testing.assert_allclose(found.flat.std(axis=0), fit.uncertainty.standard.values, rtol=0.35)
    assert "correlated" not in line.found
    rows = sample_rows(fit, found)
    assert [row[0] for row in rows] == [row.label for row in fit.unknowns] and all(row[3] == row[4] for row in rows)
    assert len(posterior(fit.recording).axes) == 6
    lower, upper = (fit.recording[f"sampled_bands/{name}"] for name in ("lower", "upper"))
    wide = (upper - lower) / (2 * 1.96 * fit.recording["bands/standard_deviation"])
    assert np.median(wide) == pytest.approx(1, abs=0.25)  # a kind fit: as by linearization
    beneath = draw_fit(fit.recording).axes[1]
    assert [line.get_label() for line in beneath.get_lines()].count("samples, 95 %") == 1


def test_widths_are_doubtful_where_residuals_are_correlated_and_those_that_allow_for_it_stand_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(objective: Any, theta: np.ndarray, covariance: np.ndarray, sigma: float, **options: Any) -> Posterior:
        drawn = np.random.default_rng(0).multivariate_normal(theta, covariance, (4, 60))
        return Posterior(drawn, np.ones(theta.size), np.full(theta.size, 240.0), 0, 0, 0.0)

    monkeypatch.setattr("simphys.app.samples.sample_posterior", draw)
    fit, found = sample_scene(oscillator_with_memory(tmp_path), folder=tmp_path / "run", draws=60)
    (line,) = [each for each in fit.criteria if each.name == "posterior"]
    factors = [max(row.robust_error / row.standard_error, 1.0) for row in fit.unknowns]
    assert line.verdict == "doubtful" and "if correlated" in line.remedy, line
    assert "residuals are correlated: these widths are for independent ones" in line.found
    assert f"{max(factors):.2g} times as large" in line.found
    np.testing.assert_allclose(fit.recording["posterior/factor_if_correlated"], factors)
    for row, factor in zip(sample_rows(fit, found), factors, strict=True):
        assert float(row[4]) / float(row[3]) == pytest.approx(factor, rel=0.02)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pints", None)
    with pytest.raises(InputError, match=r"needs the package pints; found not installed. Run pip install"):
        sample_posterior(Quadratic(), Quadratic.mean, Quadratic.covariance, 1.0)  # type: ignore[arg-type]
    monkeypatch.undo()
    pytest.importorskip("pints", reason="needs the package pints (extra bayes)")
    with pytest.raises(InputError, match="every unknown needs a standard error"):
        sample_posterior(Quadratic(), Quadratic.mean, np.full((2, 2), np.nan), 1.0)  # type: ignore[arg-type]
