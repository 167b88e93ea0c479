"""Samples that a fit does not see: chosen, predicted, judged, recorded."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.assess import holdout
from simphys.assess.holdout import Holdout, judge_holdout, predict_holdout
from simphys.autograd.errors import InputError
from simphys.experiment.hold_out import choose_samples
from simphys.scenefile import ConfigError, ValidationSection

from ..helpers.small_scenes import oscillator


def test_the_last_part_or_blocks_all_over_are_chosen() -> None:
    assert np.flatnonzero(choose_samples(8, ValidationSection(part=0.25))).tolist() == [6, 7]
    blocks = choose_samples(100, ValidationSection(kind="blocks", part=0.2, blocks=5))
    assert blocks.sum() == 20 and np.count_nonzero(np.diff(blocks.astype(int)) == 1) == 5


@pytest.mark.parametrize("kind", ["time", "blocks"])
def test_the_fit_does_not_see_them_and_predicts_them(kind: str, tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", observations={"validation": {"kind": kind}})
    seen = scene.observations
    assert seen is not None and seen.validation is not None
    assert not np.any((seen.weights > 0) & (seen.validation > 0))
    assert np.all((seen.weights > 0) | (seen.validation > 0))
    fit = simphys.identify(scene)
    assert fit.verdict == "passed" and fit.uncertainty is not None and fit.uncertainty.holdout is not None
    assert fit.uncertainty.holdout.samples == np.count_nonzero(seen.validation)
    assert fit.uncertainty.holdout.misfit == pytest.approx(1, abs=0.4)
    assert fit.rmse["position of node 0, held out"] == pytest.approx(0.01, rel=0.4)
    assert fit.recording.attrs("residual_tests")["holdout_misfit"] == pytest.approx(fit.uncertainty.holdout.misfit)
    simphys.plot.fit(fit.recording, tmp_path / "fit.png")


def test_their_values_change_nothing_about_the_fit(tmp_path: Path) -> None:
    validation: Any = {"kind": "time", "part": 0.3}
    one = simphys.identify(oscillator(tmp_path / "seen.txt", observations={"validation": validation}))
    rows = np.loadtxt(tmp_path / "seen.txt")
    rows[-30:, 1] += 0.5
    np.savetxt(tmp_path / "spoilt.txt", rows)
    spoilt = {"file": str(tmp_path / "spoilt.txt"), "validation": validation}
    other = simphys.identify(oscillator(tmp_path / "seen.txt", observations=spoilt))
    assert [row.value for row in one.unknowns] == [row.value for row in other.unknowns]
    assert (one.verdict, other.verdict) == ("passed", "failed")
    assert next(each for each in other.criteria if each.name == "holdout").verdict == "failed"


def test_a_part_that_leaves_nothing_to_fit_is_refused_by_its_key(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"observations\.validation of .*seen\.txt: must leave samples on both sides"):
        oscillator(tmp_path / "seen.txt", observations={"validation": {"part": 0.999}})
    with pytest.raises(ConfigError, match=r"observations\.validation\.part"):
        oscillator(tmp_path / "seen.txt", observations={"validation": {"part": 1.5}})


@pytest.mark.parametrize(
    ("freedom", "misfit", "verdict"),
    [
        (1.0, 1.6, "passed"),
        (1.0, 3.4, "doubtful"),
        (100.0, 1.6, "doubtful"),
        (100.0, 1.4, "passed"),
        (1.0, 5.5, "failed"),
    ],
)
def test_a_factor_counts_unless_it_is_chance(freedom: float, misfit: float, verdict: str) -> None:
    """The error of a single value moves all held-out samples: 1.6 times as expected is nothing unusual."""
    assert judge_holdout(Holdout(100, misfit, 1.0, freedom)).verdict == verdict


def test_a_noise_that_few_residuals_tell_makes_more_misfits_chance() -> None:
    """The RMSE of 100 samples over that of one residual is beyond 30 once in 38 draws, over that of 100 never."""
    random = np.random.default_rng(0).standard_normal((20_000, 101))
    ratios = np.sqrt(np.mean(random[:, 1:] ** 2, axis=1)) / np.abs(random[:, 0])
    assert np.mean(ratios > 30) == pytest.approx(0.0266, abs=0.005)
    verdicts = [judge_holdout(Holdout(100, 30.0, 1.0, 100.0, freedom)).verdict for freedom in (1, 100, np.inf)]
    assert verdicts == ["passed", "failed", "failed"]


@pytest.mark.parametrize(("noise", "size"), [(1.0, 0.0), (0.01, 1.0), (0.5, 0.3)])
def test_misfits_are_distributed_as_their_degrees_of_freedom_say(
    noise: float, size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mean and variance of misfit^2 over 4,000 draws of noise and of the errors of two values."""
    random = np.random.default_rng(0)
    jacobian, covariance = random.standard_normal((30, 2)), size**2 * np.array([[1.0, 0.6], [0.6, 1.0]])
    found = predict_for(jacobian, covariance, noise, monkeypatch)
    errors = random.multivariate_normal(np.zeros(2), covariance, 4000)
    squares = np.mean((errors @ jacobian.T + noise * random.standard_normal((4000, 30))) ** 2, axis=1)
    assert found.expected**2 == pytest.approx(squares.mean(), rel=0.1)
    assert found.freedom == pytest.approx(2 * squares.mean() ** 2 / squares.var(), rel=0.15)


def predict_for(jacobian: Any, covariance: Any, noise: float, monkeypatch: pytest.MonkeyPatch) -> Holdout:
    """The judgement of held-out samples with these derivatives."""
    seen = SimpleNamespace(residuals=np.ones(30), there=np.ones(30, bool), jacobian=jacobian)
    part = SimpleNamespace(observations=SimpleNamespace(validation=np.ones(30)))
    objective: Any = SimpleNamespace(scene=SimpleNamespace(parts=[part]), unknowns=None)
    unseen = SimpleNamespace(scene=None, residuals=lambda theta: None, jacobian=lambda theta: None)
    monkeypatch.setattr(holdout, "map_measurements", lambda *given: None)
    monkeypatch.setattr(holdout, "SceneObjective", lambda *given: unseen)
    monkeypatch.setattr(holdout, "split_residuals", lambda *given: SimpleNamespace(series=[seen]))
    found = predict_holdout(objective, np.zeros(2), covariance, (noise, 1000))
    assert predict_holdout(objective, np.zeros(2), covariance, (np.nan, 0)) is None  # no more samples than unknowns
    assert found is not None
    return found
