"""The result of a fit as files: a scene that runs by itself, tables, and no matrices unless asked."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.app import fit_check
from simphys.assess import Criterion
from simphys.experiment.scene import Scene, build_scene, load_scene
from simphys.experiment.unknowns import Unknowns
from simphys.scenefile import ConfigError, from_dict, to_dict

from ..helpers.rounding import assert_equal_but_for_rounding
from ..helpers.small_scenes import merged, oscillator


def fitted_motion(scene: Scene, folder: Path) -> None:
    """The fitted scene moves as the fit did, and is named by its source."""
    fit = simphys.identify(scene, folder=folder)
    again = load_scene(folder / "fitted.toml")
    for part in ("params", "state"):
        for name, values in getattr(fit.scene, part).arrays().items():
            np.testing.assert_allclose(getattr(again, part).arrays()[name], values, rtol=1e-13, err_msg=name)
    one, other = fit.scene.rollout().states.tensors(), again.rollout().states.tensors()
    for values, others in zip(one, other, strict=True):
        assert_equal_but_for_rounding(values.data, others.data, ulps=10_000)  # as the values' rounding grows
    head = (folder / "fitted.toml").read_text()
    assert str(folder) in head and f"its verdict: {fit.verdict}" in head
    starts = again.objective().unknowns.natural(again.objective().start)
    np.testing.assert_allclose(starts, [row.value for row in fit.unknowns], rtol=1e-13)


def test_the_fitted_scene_runs_by_itself_as_the_fit_did(tmp_path: Path) -> None:
    fitted_motion(oscillator(tmp_path / "seen.txt"), tmp_path / "run")
    assert str(tmp_path / "seen.txt") in (tmp_path / "run/fitted.toml").read_text()


@pytest.mark.parametrize("name", ["pendulum/swing", "charges/find_charges", "heat/conductivity"])
def test_it_does_so_for_other_simulators(name: str, tmp_path: Path) -> None:
    fitted_motion(load_scene(f"scenes/{name}.toml", ["optimizer.iterations=2"]), tmp_path / "run")


def test_many_values_go_to_a_file_beside_it(tmp_path: Path) -> None:
    scene = load_scene("scenes/heat/source.toml", ["optimizer.iterations=1"])
    fitted_motion(scene, tmp_path / "run")
    assert list((tmp_path / "run").glob("fitted_*.npy"))


def test_tables_hold_the_values_their_errors_and_the_covariance(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt"), folder=tmp_path / "run")
    rows = list(csv.DictReader((tmp_path / "run/values.csv").open()))
    assert [float(row["value"]) for row in rows] == [row.value for row in fit.unknowns]
    assert [row["label"] for row in rows] == ["stiffness", "drag", "start"]
    table = list(csv.reader((tmp_path / "run/covariance.csv").open()))
    covariance = np.array([[float(cell) for cell in row[1:]] for row in table[1:]])
    assert table[0] == ["", "stiffness", "drag", "start"]
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), [row.standard_error for row in fit.unknowns])
    found = json.loads((tmp_path / "run/fitted.json").read_text())
    assert found["verdict"] == "passed"
    np.testing.assert_allclose(found["covariance"], fit.recording["covariance/standard"])
    assert {"robust_covariance", "correlation", "criteria", "values"} <= found.keys()


def test_files_tell_the_verdict_of_what_follows_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubt = Criterion("recovery", 0.0, "doubtful", "none", "Try again.")
    monkeypatch.setattr(fit_check, "judge_recovery", lambda *_: doubt)
    fit, _ = fit_check.recover_scene(oscillator(tmp_path / "seen.txt"), folder=tmp_path / "run", times=5)
    found = json.loads((tmp_path / "run/fitted.json").read_text())
    assert fit.verdict == found["verdict"] == "doubtful" and found["criteria"][-1]["name"] == "recovery"
    assert "its verdict: doubtful." in (tmp_path / "run/fitted.toml").read_text()
    np.testing.assert_allclose(found["covariance"], fit.recording["covariance/standard"])


def test_matrices_of_evaluations_stay_only_when_asked(tmp_path: Path) -> None:
    plain = simphys.identify(oscillator(tmp_path / "seen.txt"), folder=tmp_path / "plain")
    assert "evaluations" not in plain.recording
    asked = simphys.identify(oscillator(tmp_path / "seen.txt", output={"matrices": True}), folder=tmp_path / "asked")
    assert "evaluations/horizon_1/jacobian/jacobian" in asked.recording
    assert plain.unknowns == asked.unknowns


def test_a_value_that_does_not_fit_is_refused_by_its_key(tmp_path: Path) -> None:
    base = to_dict(oscillator(tmp_path / "seen.txt").config)

    def build(section: dict[str, object]) -> Unknowns | Scene:
        return build_scene(from_dict(merged(base, {"values": {"one": section}})))

    with pytest.raises(ConfigError, match=r"values\.one\.parameter: must name a parameter.*stifness.*stiffness"):
        build({"parameter": "stifness", "value": 1.0})
    with pytest.raises(ConfigError, match=r"values\.one\.value: must be one number"):
        build({"parameter": "position", "value": [1.0, 2.0, 3.0]})
    with pytest.raises(ConfigError, match=r"values\.one\.entries"):
        build({"parameter": "drag", "entries": [7], "value": 1.0})
