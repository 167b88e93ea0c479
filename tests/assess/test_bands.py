"""Bands of the prediction: as wide as the scatter of the motions that other noise leads to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys import optimize
from simphys.assess.bands import predict_bands, sample_bands
from simphys.autograd import no_grad
from simphys.experiment import misfits
from simphys.experiment.objective import SceneObjective
from simphys.experiment.observe import Observations

from ..experiment.test_several import tables
from ..helpers.rounding import assert_equal_but_for_rounding
from ..helpers.small_scenes import build, oscillator


def test_a_band_is_the_scatter_of_predictions_also_where_samples_are_held_out(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", observations={"validation": {"kind": "time", "part": 0.3}})
    seen = scene.observations
    assert isinstance(seen, Observations) and seen.validation is not None
    fit = simphys.identify(scene)
    band = fit.recording["bands/standard_deviation"][:, 0]
    objective, random, made = scene.objective(), np.random.default_rng(0), []
    with no_grad():
        clean = misfits.predict(fit.scene, fit.scene.rollout()).data
    for _ in range(40):
        noisy = clean + 0.01 * random.standard_normal(clean.shape)
        again = replace(scene, observations=replace(seen, values=noisy))
        other = SceneObjective(again, objective.unknowns).with_start(fit.result.theta)
        end = other.scene_at(optimize.minimize(other, tolerance=1e-6).theta)
        with no_grad():
            made.append(misfits.predict(end, end.rollout()).data[:, 0])
    ratio = np.std(made, axis=0) / band
    assert np.median(ratio) == pytest.approx(1, abs=0.25)
    unseen = seen.validation[:, 0] > 0
    assert np.median(ratio[unseen]) == pytest.approx(1, abs=0.3)
    assert band[unseen].mean() > 1.5 * band[~unseen].mean()


def test_a_band_of_samples_holds_95_percent_of_their_predictions(tmp_path: Path) -> None:
    objective = build(tables(tmp_path)).objective()
    samples = objective.start * (1 + 0.02 * np.random.default_rng(0).standard_normal((100, objective.start.size)))
    found = sample_bands(objective, samples)
    assert list(found) == [part.name for part in objective.scene.parts]
    with no_grad():
        made = []
        for theta in samples:
            scene = objective.scene_at(theta)
            pairs = zip(scene.experiments, scene.rollout(), strict=True)
            made.append(np.concatenate([misfits.predict(*pair).data.reshape(-1) for pair in pairs]))
    expected = np.percentile(made, (2.5, 97.5), axis=0)
    joined = np.concatenate([each.reshape(2, -1) for each in found.values()], axis=1)
    assert_equal_but_for_rounding(joined, expected, ulps=2000)  # through 300 steps


def test_each_experiment_has_a_band(tmp_path: Path) -> None:
    scene = build(tables(tmp_path))
    fit = simphys.identify(scene)
    assert fit.uncertainty is not None
    found = predict_bands(scene.objective(), fit.uncertainty)
    assert list(found) == [part.name for part in scene.experiments]
    for part in scene.experiments:
        assert found[part.name].shape == part.observations.values.shape and (found[part.name] < 0.01).all()
        np.testing.assert_allclose(fit.recording[f"experiments/{part.name}/bands/standard_deviation"], found[part.name])
