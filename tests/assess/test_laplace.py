"""Standard deviations of many unknowns, by products with a Jacobian, are those of the dense posterior covariance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app import assessment
from simphys.assess.criteria import Criterion
from simphys.assess.laplace import Laplace, approximate_posterior, judge_laplace
from simphys.autograd.errors import InputError
from simphys.experiment.objective import SceneObjective
from simphys.experiment.scene import Scene
from simphys.plot import medium

from ..helpers.small_scenes import build

CELLS, COUNT = (6, 5), 30
SIGMA = 0.05
SMOOTH = {"smooth": 0.8, "scale": 3e5}
TIED = {"kind": "regularization", "unknown": "source", "weight": 0.3}


def board(folder: Path, **changes: Any) -> Scene:
    """A board of 6 x 5 cells whose sources are sought from a film of it, on which a corner is missing."""
    file = folder / "film.npz"
    tables: dict[str, Any] = {
        "title": "a board",
        "simulator": {"name": "heat", "scheme": "crank_nicolson"},
        "time": {"dt": 5.0, "steps": 6},
        "grid": {"cells": list(CELLS), "spacing": 5e-3, "sides": {"x-": 20.0}},
        "medium": {"conductivity": 20.0, "heat_capacity": 2e6},
        "state": {"temperature": 20.0},
        "unknowns": {"source": {"parameter": "source", "scale": 1e5, "unit": "W/m^3"}},
        "observations": {"file": str(file), "field": "temperature", "sigma": SIGMA, "missing": "skip"},
        "optimizer": {"method": "lbfgs", "iterations": 40},
    }
    if not file.exists():
        random = np.random.default_rng(1)
        true = build(tables, unknowns=None, observations=None)
        source = 1e5 * random.standard_normal(CELLS)
        params = true.params.replace(source=type(true.params.source)(source))
        film = np.array(true.rollout(params).temperature.data[3::3])
        film += SIGMA * random.standard_normal(film.shape)
        film[:, 4:, :2] = np.nan
        np.savez(file, time=[15.0, 30.0], values=film)
    return build(tables, **changes)


def dense(objective: SceneObjective[Any], theta: np.ndarray, prior: np.ndarray, sigma: float) -> np.ndarray:
    """Standard deviations of the values [p] by the whole covariance of theta."""
    motion = objective.jacobian(theta)[: objective.scene.observations.values.size]
    covariance = np.linalg.inv(motion.T @ motion / sigma**2 + np.diag(prior**-2.0))
    derivative = np.array([objective.unknowns.natural_change(theta, row) for row in np.eye(theta.size)]).T
    return np.sqrt(np.diag(derivative @ covariance @ derivative.T))


@pytest.mark.parametrize(
    ("unknown", "terms", "prior"),
    [
        pytest.param({}, [], 1.0, id="prior of the scale"),
        pytest.param({}, [TIED], 0.6**-0.5, id="prior of a term"),
        pytest.param(SMOOTH, [TIED], 0.6**-0.5, id="smooth"),
    ],
)
def test_deviations_are_those_of_the_dense_covariance(tmp_path: Path, unknown: Any, terms: Any, prior: float) -> None:
    objective = board(tmp_path, unknowns={"source": unknown}, loss={"terms": terms}).objective()
    found = approximate_posterior(objective, objective.start)
    expected = dense(objective, objective.start, np.full(COUNT, prior), found.sigma)
    np.testing.assert_allclose(found.deviation, expected, rtol=1e-6)
    assert found.products == COUNT and found.unfinished == 0
    assert (found.deviation < found.prior).all() and (found.deviation / found.prior).min() < 0.8


def test_the_prior_of_a_smooth_unknown_is_its_scale_on_average(tmp_path: Path) -> None:
    objective = board(tmp_path, unknowns={"source": SMOOTH}).objective()
    found = approximate_posterior(objective, objective.start)
    assert found.prior.mean() == pytest.approx(3e5, rel=1e-9) and np.ptp(found.prior) > 1e4  # larger at sides


def test_fewer_products_give_upper_bounds(tmp_path: Path) -> None:
    objective = board(tmp_path).objective()
    whole = approximate_posterior(objective, objective.start)
    part = approximate_posterior(objective, objective.start, until=0.0)
    assert part.products == 10 and part.unfinished > 0
    assert (part.deviation >= whole.deviation * (1 - 1e-9)).all()
    assert part.deviation.mean() > 1.01 * whole.deviation.mean()


def test_a_motion_multiplies_as_its_jacobian(tmp_path: Path) -> None:
    objective = board(tmp_path, unknowns={"source": SMOOTH}, loss={"terms": [TIED]}).objective()
    motion, jacobian = objective.linearize(objective.start), objective.jacobian(objective.start)[:-COUNT]
    np.testing.assert_allclose(motion.residuals, objective.residuals(objective.start)[:-COUNT], rtol=1e-13)
    direction = np.random.default_rng(0).standard_normal(COUNT)
    for _ in range(2):  # the graph stays
        np.testing.assert_allclose(motion.multiply(direction), jacobian.T @ (jacobian @ direction), rtol=1e-9)


def test_assess_maps_a_field_records_and_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("assessment", "before"):
        monkeypatch.setattr(f"simphys.{'app' if module == 'assessment' else 'assess'}.{module}.LARGEST", 20)
    monkeypatch.setattr("simphys.runs.estimates.RANK_CHECK_UNKNOWNS", 20)
    fit = assessment.assess(board(tmp_path, unknowns={"source": SMOOTH}), folder=tmp_path / "run", seconds=1e6)
    names = {each.name: each.verdict for each in fit.criteria}
    assert names["misfit"] == names["determined field"] == "passed"
    assert fit.recording["laplace/standard_deviation"].shape == (COUNT,)
    assert "determined field" in list(fit.recording["judgement/name"])
    titles = [axes.get_title(loc="left") for axes in medium(fit.recording).axes]
    assert any(title.startswith("standard deviation\n(prior: ") for title in titles)
    objective = board(tmp_path, unknowns={"source": SMOOTH}).objective()
    found = approximate_posterior(objective, fit.result.theta)
    np.testing.assert_allclose(fit.recording["laplace/standard_deviation"], found.deviation, rtol=1e-6)


def test_the_end_of_filtered_misfits_must_be_no_filter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simphys.app.assessment.LARGEST", 20)
    monkeypatch.setattr("simphys.assess.before.LARGEST", 20)
    scene = replace(board(tmp_path), lowpass=0.03)
    with pytest.raises(InputError, match="independent residuals at the end"):
        assessment.assess(scene, folder=tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, "passed", "in 50 % of 2 values, after 40 products"),
        ({"unfinished": 0.3}, "doubtful", "found 30 % of what is determined"),
        ({"deviation": np.array([0.9, 0.8])}, "doubtful", "in 0 % of 2 values"),
    ],
)
def test_a_map_is_judged(tmp_path: Path, changes: Any, verdict: str, words: str) -> None:
    found = Laplace(np.array([0.1, 0.9]), np.ones(2), np.array([9.0]), 1.1, 40, 0.01)
    misfit, field = judge_laplace(board(tmp_path), replace(found, **changes))
    assert misfit == Criterion("misfit", 1.1, "passed", misfit.found)
    assert field.verdict == verdict and words in field.found and bool(field.remedy) == (verdict == "doubtful")
