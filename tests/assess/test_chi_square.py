"""Verdicts without a stated noise do not depend on the unit of the recording, and are those that the noise gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.assessment import search_again
from simphys.app.fit_check import check_fit
from simphys.assess.chi_square import LEAST_NOISE, compare_neighbours, unit_of_chi_square
from simphys.assess.clusters import judge_clusters, sort_ends
from simphys.assess.criteria import Criterion
from simphys.assess.starts import Starts, judge_starts, try_starts
from simphys.assess.uncertainty import estimate_uncertainty
from simphys.experiment.scene import Scene

from ..helpers.small_scenes import merged, oscillator

UNITS = pytest.mark.parametrize("unit", [1.0, 1000.0])


def without_noise(tmp_path: Path, unit: float, **changes: Any) -> Scene:
    """The oscillator, which is linear, with lengths in another unit, and no sigma."""
    oscillator(tmp_path / "seen.txt")
    np.savetxt(tmp_path / "other.txt", np.loadtxt(tmp_path / "seen.txt") * [1.0, unit])
    base = {
        "geometry": {"position": [[unit]]},
        "unknowns": {"start": {"start": 0.8 * unit}},
        "observations": {
            "file": str(tmp_path / "other.txt"),
            "channels": [{"column": 1, "field": "position", "node": 0, "unit": "m"}],
        },
    }
    return oscillator(tmp_path / "seen.txt", **merged(base, changes))


def named(criteria: Any, name: str) -> Criterion:
    (found,) = [each for each in criteria if each.name == name]
    assert isinstance(found, Criterion)
    return found


@UNITS
def test_a_bound_that_excludes_the_truth_is_seen_without_a_stated_noise(unit: float, tmp_path: Path) -> None:
    fit = simphys.identify(without_noise(tmp_path, unit, unknowns={"stiffness": {"bounds": [5.0, 8.7]}}))
    found = named(fit.criteria, "bounds")
    assert found.verdict == "doubtful" and found.value > 1000
    assert "stiffness at its upper bound" in found.found


@UNITS
def test_a_fit_that_is_stuck_fails_without_a_stated_noise(unit: float, tmp_path: Path) -> None:
    caught = {"stiffness": {"start": 60.0, "bounds": [1.0, 100.0]}}
    objective = without_noise(tmp_path, unit, unknowns=caught).objective()
    result = search_again(objective)
    tried = try_starts(objective, result, np.full(3, np.inf), search_again, until=0)
    found = judge_starts(tried, result, estimate_uncertainty(objective, result.theta))
    assert found.verdict == "failed" and "one ends better" in found.found
    assert not tried.same.any()


@UNITS
def test_expected_errors_without_a_stated_noise_are_those_that_the_fit_gets(unit: float, tmp_path: Path) -> None:
    scene = without_noise(tmp_path, unit)
    checked, fit = check_fit(scene), simphys.identify(scene)
    assert named(checked.criteria, "expected errors").verdict == "passed"
    assert "shortest period about 2.0" in named(checked.criteria, "resolution").found
    for row, expected in zip(fit.unknowns, checked.expectations, strict=True):
        assert row.standard_error == pytest.approx(expected.error, rel=0.5)  # at the start, not at the end


def test_starts_and_clusters_are_compared_in_the_unit(tmp_path: Path) -> None:
    ends, loss = np.array([[1.0] * 3, [2.0] * 3]), np.array([50e-6, 49e-6])
    objective = oscillator(tmp_path / "seen.txt").objective()
    result = replace(search_again(objective), loss=50e-6)
    uncertainty = estimate_uncertainty(objective, result.theta)
    same = np.array([True, False])
    assert judge_starts(Starts(ends, ends, loss, same), result, uncertainty).verdict == "doubtful"
    better = judge_starts(Starts(ends, ends, loss, same, 1e-6), result, uncertainty)
    assert better.verdict == "failed" and "better, by 2 in chi^2" in better.found
    errors, four, losses = np.full(3, 0.1), np.repeat(ends, 2, axis=0), np.repeat([50e-6, 49e-6], 2)
    assert "1 more fit as well" in judge_clusters(sort_ends(four, four, losses, errors)).found
    assert judge_clusters(sort_ends(four, four, losses, errors, 1e-6)).verdict == "passed"


def test_the_unit_is_one_with_a_stated_noise_and_never_less_than_rounding(tmp_path: Path) -> None:
    assert unit_of_chi_square(oscillator(tmp_path / "seen.txt"), 1e9, 3) == 1
    scene = without_noise(tmp_path, 1.0)
    assert unit_of_chi_square(scene, 97.0, 3) == pytest.approx(2.0)  # of 100 samples
    scatter = np.loadtxt(tmp_path / "other.txt")[:, 1].std()
    for few in (3, 100):
        assert unit_of_chi_square(scene, 0.0, few) == pytest.approx((LEAST_NOISE * scatter) ** 2)


@pytest.mark.parametrize("samples_in_a_period", [60, 8, 3])
@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_neighbours_tell_the_noise_of_an_oscillation(samples_in_a_period: int, weight: float) -> None:
    random = np.random.default_rng(0)
    times = np.arange(400.0)
    noise = 0.01 * random.standard_normal(400) / np.sqrt(weight)
    values = 3 + np.cos(2 * np.pi * times / samples_in_a_period + 0.3) + noise
    squares, freedom = compare_neighbours(times, values[:, None], np.full((400, 1), weight))
    assert np.sqrt(squares / freedom) == pytest.approx(0.01, rel=0.15)


def test_neighbours_pass_over_gaps_uneven_times_and_curves() -> None:
    random = np.random.default_rng(0)
    times = np.sort(random.uniform(0, 3, 300))
    values = np.stack([5 * times - 4.9 * times**2, np.sin(2 * times)], axis=1) + 0.02 * random.standard_normal((300, 2))
    weights = np.ones((300, 2))
    gaps = random.uniform(size=(300, 2)) < 0.1
    values[gaps] = weights[gaps] = 0.0
    squares, freedom = compare_neighbours(times, values, weights)
    assert np.sqrt(squares / freedom) == pytest.approx(0.02, rel=0.15)
    assert compare_neighbours(times[:4], values[:4], weights[:4])[1] == 0
    assert compare_neighbours(times[:2], values[:2], weights[:2]) == (0.0, 0)
