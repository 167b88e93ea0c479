"""Every scene that ships gives the results that it promises.

The agreement of its nested and fused rollouts is part of its certificate (test_certificates.py), and to rounding of the
test_contract.py of its simulator.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import optimize
from simphys.app.identification import Identification
from simphys.experiment.scene import Scene

ROOT = Path(__file__).parents[1]
SCENES = sorted((ROOT / "scenes").rglob("*.toml"))
SCRIPTS = sorted(path for path in (ROOT / "scenes").rglob("*.py") if path.name != "make_recordings.py")
FOLDER = ROOT / "scenes" / "mass_spring"
DATA = Path(os.environ.get("SIMPHYS_DATA", ROOT.parent / "shared" / "data")) / "air_track_and_pendulum"
REAL = {"air_track": DATA / "real_linear_h_1.txt", "two_gliders": DATA / "real_double_linear_h_1.txt"}


def load(path: Path, *overrides: str) -> Scene:
    """Load a scene in the precision of this process."""
    return simphys.load_scene(path, ['runtime.precision="f64"', *overrides])


def scene_name(path: Path) -> str:
    return path.stem


OF_MATERIAL_POINTS = ROOT / "scenes" / "mpm"


@pytest.mark.parametrize("path", SCENES, ids=scene_name)
def test_a_scene_has_a_title_and_an_output_folder(path: Path) -> None:
    written = tomllib.loads(path.read_text())
    assert written["title"] and written["output"]["folder"] == f"runs/{path.stem}"


@pytest.mark.parametrize("script", SCRIPTS, ids=scene_name)
def test_a_script_runs_and_leaves_its_run_and_pictures(script: Path, tmp_path: Path) -> None:
    """Run a copy of a script whose fit ends after one iteration per horizon: results of fits are tested elsewhere."""
    there = shutil.copytree(script.parent, tmp_path / "scenes")
    scene = (there / script.name).with_suffix(".toml")
    scene.write_text(scene.read_text().replace('horizon = "growing"', 'horizon = "growing"\niterations = 1'))
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(there / script.name), "run"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "run.h5").exists()
    assert "run/trajectory.png" in done.stdout and (tmp_path / "run" / "trajectory.png").exists()


def test_the_shipped_recordings_are_those_that_the_script_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(FOLDER / "make_recordings.py"), str(tmp_path)], check=True)
    for made in sorted(tmp_path.glob("*.txt")):
        found, shipped = (np.loadtxt(path, comments="%") for path in (made, FOLDER / made.name))
        np.testing.assert_allclose(found, shipped, rtol=0, atol=0.011)  # a last digit
    assert {made.stem for made in tmp_path.glob("*.txt")} == {"air_track", "two_gliders", "two_gliders_trials"}


def truth(name: str) -> dict[str, float]:
    """True values of the unknowns by label, from the script that made the recordings."""
    spec = importlib.util.spec_from_file_location("make_recordings", FOLDER / "make_recordings.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    if name == "air_track":
        return dict(made.AIR_TRACK)
    p = made.TWO_GLIDERS
    values = {f"{key}[{i}]": p[key][i] for key in ("drag", "rest_point", "start", "velocity") for i in (0, 1)}
    values |= {"stiffness_1": p["stiffness"][0], "stiffness_2": p["stiffness"][1], "mass_2": p["mass"][1]}
    return {**values, "stiffness_between": p["stiffness_between"]}


def fitted(name: str, folder: Path, *overrides: str) -> Identification:
    return simphys.identify(load(FOLDER / f"{name}.toml", *overrides), folder=folder)


def total_rmse(fit: Identification) -> float:
    """RMSE of the only channel, or of all channels."""
    return list(fit.rmse.values())[-1]


@pytest.mark.parametrize("name", ["air_track", "two_gliders"])
def test_a_fit_recovers_what_the_shipped_recording_was_made_with(name: str, tmp_path: Path) -> None:
    fit = fitted(name, tmp_path / "run")
    expected = truth(name)
    assert fit.result.success
    assert {row.label for row in fit.unknowns} == set(expected)
    for row in fit.unknowns:
        assert abs(row.value - expected[row.label]) < 3 * row.standard_error, row
        assert row.note == ""
    assert total_rmse(fit) == pytest.approx(0.4, rel=0.05)  # noise of the recording


needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real recordings are not at {DATA} (SIMPHYS_DATA)")


@needs_data
def test_one_real_glider_is_fitted_by_the_scene_as_it_is(tmp_path: Path) -> None:
    fit = fitted("air_track", tmp_path / "run", f"observations.file={REAL['air_track']}")
    values = {row.label: row.value for row in fit.unknowns}
    assert fit.result.success and total_rmse(fit) < 0.415  # px; the motion spans 204
    assert values["stiffness"] == pytest.approx(6.220, rel=1e-3)
    assert values["drag"] == pytest.approx(0.01368, rel=0.01)


@needs_data
def test_two_real_gliders_are_fitted_by_the_scene_as_it_is(tmp_path: Path) -> None:
    fit = fitted("two_gliders", tmp_path / "run", f"observations.file={REAL['two_gliders']}")
    values = {row.label: row.value for row in fit.unknowns}
    assert fit.result.success and total_rmse(fit) < 0.62  # px; the motion spans 161
    assert values["stiffness_1"] == pytest.approx(7.78, rel=3e-3)
    assert values["stiffness_between"] == pytest.approx(78.0, rel=3e-3)
    assert values["stiffness_2"] / values["mass_2"] == pytest.approx(3.12, rel=3e-3)
    assert values["stiffness_between"] / values["mass_2"] == pytest.approx(31.5, rel=3e-3)


@needs_data
@pytest.mark.parametrize("signs", [1, 2, 3])
@pytest.mark.parametrize("name", ["air_track", "two_gliders"])
def test_other_starts_30_percent_off_lead_to_the_same_fit(name: str, signs: int) -> None:
    """Perturb the unknowns by 30 % with random signs; a value near 0, by a third of 33 px or px/s."""
    size = {
        "air_track": [6.22, 0.0137, 33, -103.7, 17.9],
        "two_gliders": [7.78, 78, 7.73, 2.48, 0.0324, 0.0038, 63.5, -62.4, 33, -142.8, -8.1, -26.5],
    }[name]
    middle = np.array(size) * ~np.isin(size, 33)
    scene = load(FOLDER / f"{name}.toml", f"observations.file={REAL[name]}")
    natural = middle + 0.3 * np.array(size) * np.random.default_rng(signs).choice([-1, 1], len(size))
    labels, count, unknowns = scene.config.unknowns, 0, {}
    for label in labels:
        width = 2 if label in ("drag", "rest_point", "start", "velocity") and name == "two_gliders" else 1
        start = natural[count : count + width].tolist()
        unknowns[label] = labels[label].model_copy(update={"start": start if width > 1 else start[0]})
        count += width
    result = optimize.minimize(scene.objective(unknowns), horizon="growing")
    assert scene.observations is not None
    rmse = 0.4 * np.sqrt(2 * result.loss / scene.observations.values.size)
    assert result.success and rmse < {"air_track": 0.415, "two_gliders": 0.62}[name]


def full_horizon_rmse(name: str, **options: Any) -> float:
    """Fit all observations at once by a method, from the scene's start; return the RMSE in px."""
    scene = load(FOLDER / f"{name}.toml")
    result = optimize.minimize(scene.objective(), horizon="full", **options)
    assert scene.observations is not None
    return 0.4 * float(np.sqrt(2 * result.loss / np.count_nonzero(scene.observations.weights)))


def test_plain_least_squares_on_the_full_horizon_is_caught_in_a_local_minimum() -> None:
    """Show why the horizon of two_gliders.toml grows: from the same start, misfits stay ten times the noise."""
    assert full_horizon_rmse("two_gliders", method="least_squares", iterations=60) > 4


@pytest.mark.parametrize("method", ["lbfgs", "adam", "gradient_descent"])
def test_plain_descent_on_the_full_horizon_is_caught_where_nothing_oscillates(method: str) -> None:
    """Show why the horizon of air_track.toml grows. Least squares copes without: it raises the drag first, which damps
    out all but the first oscillations, and lowers it again."""
    assert full_horizon_rmse("air_track", method=method, iterations=100) > 60


def test_descent_on_a_growing_horizon_finds_the_glider() -> None:
    scene = load(FOLDER / "air_track.toml")
    result = optimize.minimize(scene.objective(), method="lbfgs", horizon="growing")
    assert scene.observations is not None
    assert 0.4 * np.sqrt(2 * result.loss / scene.observations.values.size) < 0.42


def test_the_throw_arrives_turned_by_a_quarter(tmp_path: Path) -> None:
    fit = simphys.identify(load(FOLDER / "throw.toml"), folder=tmp_path / "run")
    assert fit.result.success and fit.result.loss < 2e-5  # 34 at the start; the rest is the regularization
    target = fit.scene.config.loss.terms[0].target
    np.testing.assert_allclose(fit.scene.rollout().final.position.data, target, atol=1e-3)


def test_the_shipped_recordings_of_material_points_are_those_that_the_script_makes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(OF_MATERIAL_POINTS / "make_recordings.py"), str(tmp_path)], check=True)
    for name in ("squeeze.txt", "press.txt"):
        made, shipped = (np.loadtxt(folder / name, comments="%") for folder in (tmp_path, OF_MATERIAL_POINTS))
        np.testing.assert_allclose(made, shipped, rtol=0, atol=1e-5 if name == "squeeze.txt" else 0.1)  # a last digit


def test_the_squeeze_finds_how_stiff_the_gel_is(tmp_path: Path) -> None:
    scene = load(OF_MATERIAL_POINTS / "squeeze.toml", "optimizer.tolerance=1e-6")
    fit = simphys.identify(scene, folder=tmp_path / "run")
    assert fit.result.success
    for row, true in zip(fit.unknowns, (12000.0, 0.38), strict=True):
        assert abs(row.value - true) < 3 * row.standard_error and row.standard_error < 0.01 * true, row
    assert total_rmse(fit) == pytest.approx(2e-4, rel=0.05)  # noise of the recording


def test_the_press_gives_the_clay_its_shape(tmp_path: Path) -> None:
    scene = load(OF_MATERIAL_POINTS / "press.toml", "optimizer.iterations=2")
    fit = simphys.identify(scene, folder=tmp_path / "run")
    assert fit.result.loss < 0.45 * fit.result.history[0].loss  # a few iterations; the whole search ends far lower


def test_the_crawler_arrives_whole(tmp_path: Path) -> None:
    scene = load(FOLDER / "crawler.toml")
    assert scene.rollout().final.position.data[:, 0].mean() < 0.2  # still near its start
    early = simphys.identify(load(FOLDER / "crawler.toml", "optimizer.iterations=30"), folder=tmp_path / "early")
    assert early.result.loss < 0.1 * early.result.history[0].loss
    fit = simphys.identify(load(FOLDER / "crawler.toml", "optimizer.iterations=100"), folder=early.folder, resume=True)
    assert fit.result.success
    position = fit.scene.rollout().position.data
    assert position[-1, :, 0].mean() == pytest.approx(1.0, abs=0.02)
    assert position[:, :, 1].min() > -0.03  # m, into the ground
    ends = fit.scene.model.ends
    length = np.linalg.norm(position[:, ends[:, 1]] - position[:, ends[:, 0]], axis=2)
    assert np.abs(length / fit.scene.params.rest_length.data - 1).max() < 0.6


def test_the_jelly_falls_tumbles_and_stays_whole() -> None:
    scene = load(FOLDER / "jelly.toml")
    position = scene.rollout().position.data
    middle = position.mean(axis=1)
    assert middle[-1, 0] > 0.5 and 0.03 < middle[-1, 2] < 0.25  # down the slope, on the ground
    ends = scene.model.ends
    length = np.linalg.norm(position[-1][ends[:, 1]] - position[-1][ends[:, 0]], axis=1)
    np.testing.assert_allclose(length, scene.params.rest_length.data, rtol=0.25)


def test_the_cloth_hangs_by_its_edge() -> None:
    scene = load(FOLDER / "cloth.toml", "time.steps=100")
    drop = scene.rollout().final.position.data - scene.state.position.data
    assert scene.model.nodes == 128**2 and scene.model.springs == 64770
    assert not drop[scene.model.pinned].any()
    assert drop[:, 1].min() < -1e-3
