"""The misfit as an expert reads it: few samples, outliers, correlated residuals beyond the noise, angles that jump."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.identification import Identification
from simphys.assess.criteria import Criterion
from simphys.experiment.scene import Scene

from ..helpers.small_scenes import build, oscillator

CHANNEL = {"column": 1, "field": "position", "node": 0, "unit": "m", "sigma": 0.01}


def find(fit: Identification, name: str) -> Criterion:
    return next(each for each in fit.criteria if each.name == name)


def seen_as(folder: Path, change: Any, **changes: Any) -> Scene:
    """The oscillator with another recording: `change` makes rows of times and values."""
    oscillator(folder / "seen.txt")
    np.savetxt(folder / "other.txt", np.column_stack(change(*np.loadtxt(folder / "seen.txt").T)))
    observations = {"file": str(folder / "other.txt"), **changes.pop("observations", {})}
    return oscillator(folder / "seen.txt", observations=observations, **changes)


def spoil(time: Any, value: Any) -> Any:
    return time, np.where(np.isin(np.arange(time.size), [20, 41, 77]), value + 2.0, value)


def test_outliers_do_not_fail_a_robust_fit(tmp_path: Path) -> None:
    fit = simphys.identify(seen_as(tmp_path, spoil, loss={"kind": "huber", "delta": 2.0}))
    assert fit.verdict == "passed" and "3 of 100 samples beyond" in find(fit, "misfit").found
    assert find(fit, "misfit").value == pytest.approx(1, abs=0.2)


def test_outliers_are_named_where_squares_count(tmp_path: Path) -> None:
    fit = simphys.identify(seen_as(tmp_path, spoil))
    misfit = find(fit, "misfit")
    assert misfit.verdict == "failed" and misfit.remedy.startswith("3 of 100 samples make it, from ")
    assert 'loss.kind = "huber"' in misfit.remedy and "stated one" not in misfit.remedy


def test_a_robust_fit_of_a_model_that_explains_little_cannot_pass(tmp_path: Path) -> None:
    fit = simphys.identify(
        seen_as(tmp_path, lambda time, value: (time, np.clip(value, -0.3, 0.3)), loss={"kind": "huber", "delta": 2.0})
    )
    assert find(fit, "misfit").verdict != "passed"


def test_few_samples_are_no_proof_of_less_noise_and_leave_errors_unknown(tmp_path: Path) -> None:
    """Of 4 samples and 3 unknowns, RMSE / sigma 0.5 is expected; t of one degree of freedom is 12.7."""
    few = seen_as(tmp_path, lambda time, value: (time[[0, 30, 60, 90]], value[[0, 30, 60, 90]]))
    fit = simphys.identify(few)
    assert find(fit, "misfit").verdict == "passed"
    assert find(fit, "samples").verdict == fit.verdict == "doubtful"
    assert "12.7 standard errors" in find(fit, "samples").found


@pytest.mark.parametrize(("sigma", "believed"), [(0.01, False), (0.06, True)])
def test_correlated_residuals_beyond_the_stated_noise_are_no_noise(
    sigma: float, believed: bool, tmp_path: Path
) -> None:
    """A baseline that drifts by 3 cm: the misfit passes, but errors that allow for correlation do not cover it."""
    channel = {**CHANNEL, "sigma": sigma}
    drift = seen_as(
        tmp_path, lambda time, value: (time, value + 0.03 * np.sin(2.2 * time)), observations={"channels": [channel]}
    )
    fit = simphys.identify(drift)
    remedy = find(fit, "white residuals").remedy
    assert ("Believe the errors that allow for correlation" in remedy) is believed
    assert ("neither column of errors" in remedy) is not believed


def test_a_noise_stated_too_large_does_not_call_the_misfit_too_large(tmp_path: Path) -> None:
    channel = {**CHANNEL, "sigma": 0.2}
    fit = simphys.identify(
        seen_as(
            tmp_path,
            lambda time, value: (time, value + 0.03 * np.sin(2.2 * time)),
            observations={"channels": [channel]},
        )
    )
    assert find(fit, "misfit").verdict == "doubtful" and "Lower observations" in find(fit, "misfit").remedy
    assert "too large" not in find(fit, "white residuals").remedy


def test_an_angle_that_jumps_by_a_full_turn_names_its_modulo(tmp_path: Path) -> None:
    """A pendulum that turns over, by an encoder that starts anew at half a turn."""
    tables: dict[str, Any] = {
        "simulator": {"name": "pendulum"},
        "time": {"dt": 0.01},
        "geometry": {"length": [0.8]},
        "material": {"mass": [1.0], "damping": [0.05]},
        "state": {"angle": [0.5], "rate": [9.0]},
    }
    angle = build({**tables, "time": {"dt": 0.01, "steps": 200}}).rollout().angle.data[::2, 0]
    angle = angle + 0.005 * np.random.default_rng(0).standard_normal(angle.size)
    rows = np.column_stack([0.02 * np.arange(angle.size), (angle + np.pi) % (2 * np.pi) - np.pi])
    np.savetxt(tmp_path / "turns.txt", rows)
    channel = {"column": 1, "field": "angle", "node": 0, "sigma": 0.005}
    unknowns = {"damping": {"parameter": "damping", "bounds": [0.0, 1.0], "start": 0.04}}
    for modulo in (None, 2 * np.pi):
        channels = [channel if modulo is None else {**channel, "modulo": modulo}]
        observations = {"file": str(tmp_path / "turns.txt"), "channels": channels}
        fit = simphys.identify(build({**tables, "unknowns": unknowns, "observations": observations}))
        if modulo is None:
            assert "jumps by a full turn" in find(fit, "turns").found and "6.28318531" in find(fit, "turns").remedy
        else:
            assert fit.verdict == "passed"
