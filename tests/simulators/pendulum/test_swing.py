"""A filmed pendulum: the fit recovers the values behind the shipped recording, and identifies the real pendulum."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import optimize
from simphys.app.identification import Identification
from simphys.experiment.scene import Scene

from .recordings import DATA, FOLDER, load, rmse, script

REAL = DATA / "real_pend_h_1.txt"
needs_data = pytest.mark.skipif(not REAL.is_file(), reason=f"the real recording is not at {REAL} (SIMPHYS_DATA)")
NOISE = 0.011
COARSE = "time.dt=0.083333333333333333"
"""Override that reduces the steps to a fifth, two from picture to picture."""


def test_the_shipped_recordings_are_those_that_the_script_makes(tmp_path: Path) -> None:
    """They agree except for the last digit, which chaos may change on another machine."""
    subprocess.run([sys.executable, str(FOLDER / "make_recordings.py"), str(tmp_path)], check=True)
    logs = {"motor.csv", "friction.csv"}
    assert {path.name for path in tmp_path.iterdir()} == {"swing.txt", "double.txt", "four_angles.txt", *logs}
    for log in logs:
        made, shipped = (np.genfromtxt(path / log, delimiter=",", skip_header=1) for path in (tmp_path, FOLDER))
        np.testing.assert_allclose(made, shipped, rtol=0, atol=1.1e-4)  # rows without an angle have NaN there
    for path in tmp_path.glob("*.txt"):
        columns = [np.loadtxt(each, comments="%") for each in (path, FOLDER / path.name)]
        np.testing.assert_allclose(columns[0][:, :-2], columns[1][:, :-2], rtol=0, atol=1.1e-4)


def values(fit: Identification) -> dict[str, float]:
    return {row.label: row.value for row in fit.unknowns}


def test_the_fit_recovers_the_values_behind_the_recording(tmp_path: Path) -> None:
    fit = simphys.identify(load("swing"), folder=tmp_path / "run")
    true = script().SWING
    assert fit.result.success and set(values(fit)) == set(true)
    for row in fit.unknowns:
        assert abs(row.value - true[row.label]) < 3 * row.standard_error and row.note == "", row
    assert list(fit.rmse.values())[-1] == pytest.approx(NOISE, rel=0.05)


@needs_data
def test_the_real_pendulum_is_fitted_by_the_scene_as_it_is(tmp_path: Path) -> None:
    fit = simphys.identify(load("swing", f"observations.file={REAL}"), folder=tmp_path / "run")
    found = values(fit)
    assert fit.result.success
    assert list(fit.rmse.values())[-1] < 0.0110  # rad; the motion spans 2.9
    assert found["gravity"] == pytest.approx(1.3560, abs=1e-4)
    assert found["damping"] == pytest.approx(0.01208, abs=1e-5)


def fit_from(scene: Scene, signs: tuple[int, ...]) -> optimize.Result:
    """Fit from values that are 30 % off, with the given signs; the tilt, which is nearly 0, is off by 0.1 rad."""
    middle = {"gravity": 1.356, "damping": 0.01208, "tilt": 0.0116, "angle": 1.342, "rate": -0.702}
    off = {name: 0.1 if name == "tilt" else 0.3 * value for name, value in middle.items()}
    given = scene.config.unknowns
    starts = {
        name: given[name].model_copy(update={"start": value + sign * off[name]})
        for (name, value), sign in zip(middle.items(), signs, strict=True)
    }
    return optimize.minimize(scene.objective(starts), horizon="growing", iterations=scene.config.optimizer.iterations)


@needs_data
def test_starts_30_percent_off_on_either_side_lead_to_the_real_pendulum() -> None:
    """All unknowns are off at once; every third of the 32 combinations of signs is tried."""
    scene = load("swing", f"observations.file={REAL}", COARSE)
    for signs in itertools.islice(itertools.product([-1, 1], repeat=5), 0, None, 3):
        result = fit_from(scene, signs)
        assert result.success and rmse(scene, result.loss, NOISE) < 0.0111, signs


def descent(horizon: Any) -> float:
    """Root mean square error [rad] that L-BFGS reaches from the scene's start."""
    scene = load("swing", COARSE)
    return rmse(
        scene, optimize.minimize(scene.objective(), method="lbfgs", horizon=horizon, iterations=100).loss, NOISE
    )


def test_descent_needs_a_growing_horizon() -> None:
    """Descent is why swing.toml has a growing horizon: least squares on the full one succeeds from most starts."""
    assert descent("full") > 0.2
    assert descent("growing") < 0.0115
