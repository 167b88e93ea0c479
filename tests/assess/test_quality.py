"""A fit that converged is passed only if one can believe it: each rival's silence is a test here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.identification import Identification
from simphys.assess import judge
from simphys.assess.criteria import grade
from simphys.assess.time_step import _find_smooth as find_smooth
from simphys.autograd import tensor
from simphys.experiment.scene import Scene

from ..helpers.small_scenes import TRUTH, build, oscillator, oscillator_with_memory

CHANNEL = {"column": 1, "field": "position", "node": 0, "unit": "m", "sigma": 0.01}


def rewrite(tmp_path: Path, change: Any, **changes: Any) -> Scene:
    """The oscillator with another recording: `change` makes its values of times and values."""
    oscillator(tmp_path / "seen.txt")
    time, value = np.loadtxt(tmp_path / "seen.txt").T
    np.savetxt(tmp_path / "other.txt", np.column_stack([time, change(time, value)]))
    observations = {"file": str(tmp_path / "other.txt"), **changes.pop("observations", {})}
    return oscillator(tmp_path / "seen.txt", observations=observations, **changes)


def verdicts(fit: Identification) -> dict[str, str]:
    return {each.name: each.verdict for each in fit.criteria}


def remedies(fit: Identification) -> dict[str, str]:
    return {each.name: each.remedy for each in fit.criteria}


def test_a_clean_fit_passes_and_is_recorded_as_passed(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt"))
    assert fit.verdict == "passed" and set(verdicts(fit).values()) == {"passed"}
    assert all(each.remedy == "" for each in fit.criteria)
    assert fit.recording.attrs("judgement")["verdict"] == "passed"
    assert list(fit.recording["judgement/name"]) == list(verdicts(fit))
    errors = np.sqrt(np.diag(fit.recording["covariance/standard"]))
    np.testing.assert_allclose(errors, [row.standard_error for row in fit.unknowns])
    robust = np.sqrt(np.diag(fit.recording["covariance/robust"]))
    np.testing.assert_allclose(robust, errors, rtol=0.5)
    np.testing.assert_allclose(np.diag(fit.recording["covariance/correlation"]), 1)
    tests = fit.recording.attrs("residual_tests")
    assert tests["chi_square_per_degree_of_freedom"] == pytest.approx(1, abs=0.3)
    assert fit.recording["residual_tests/rmse_per_sigma"][0] == pytest.approx(1, abs=0.15)


def test_a_recording_of_zeros_cannot_pass(tmp_path: Path) -> None:
    fit = simphys.identify(rewrite(tmp_path, lambda time, value: 0 * value))
    assert fit.verdict == "failed" and verdicts(fit)["recording"] == "failed"
    found = next(each for each in fit.criteria if each.name == "recording")
    assert "position of node 0 is 0 throughout" in found.found and "observations.channels" in found.remedy


@pytest.mark.parametrize("stated", [0.01, None])
def test_a_column_that_is_time_cannot_pass(stated: float | None, tmp_path: Path) -> None:
    channel = {**CHANNEL, "column": 0}
    channel = {key: value for key, value in channel.items() if key != "sigma" or stated}
    if stated:
        channel["sigma"] = stated
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", observations={"channels": [channel]}))
    assert fit.verdict == "failed"
    assert verdicts(fit)["recording"] == verdicts(fit)["misfit"] == "failed"


def test_bounds_that_exclude_the_truth_cannot_pass(tmp_path: Path) -> None:
    unknowns = {"stiffness": {"bounds": [5.0, 8.0]}}
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", unknowns=unknowns))
    assert fit.result.status == "converged" and fit.verdict != "passed"
    assert verdicts(fit)["bounds"] == "doubtful"
    found = next(each for each in fit.criteria if each.name == "bounds")
    assert "stiffness at its upper bound" in found.found and "Widen these bounds" in found.remedy


def test_a_bound_that_holds_nothing_back_passes(tmp_path: Path) -> None:
    """The truth lies on it."""
    unknowns = {"drag": {"bounds": [TRUTH["drag"], 5.0]}}
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", unknowns=unknowns))
    assert verdicts(fit)["bounds"] == "passed"


def test_noise_with_a_memory_is_doubtful_and_its_errors_are_larger(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator_with_memory(tmp_path))
    assert fit.verdict == "doubtful" and verdicts(fit)["white residuals"] == "doubtful"
    assert max(row.robust_error / row.standard_error for row in fit.unknowns) > 1.3
    assert "Believe the errors that allow for correlation" in remedies(fit)["white residuals"]


def test_neither_errors_are_believed_where_the_model_does_not_fit(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", unknowns={"stiffness": {"bounds": [5.0, 8.0]}}))
    assert verdicts(fit)["misfit"] != "passed" and "believe neither" in remedies(fit)["white residuals"]


def coulomb_pendulum(folder: Path, **material: Any) -> Scene:
    """A pendulum with Coulomb's friction, by steps of 0.1 ms, seen with noise; damping and friction are unknown."""
    dt, length, mass, damping, friction = 1e-4, 0.6, 0.5, 0.006, 0.012
    angle, rate, seen = 0.7, 0.0, []
    for step in range(120_000):
        if step % 300 == 0:
            seen.append((step * dt, angle))
        torque = -mass * 9.81 * length * np.sin(angle) - damping * rate
        rate += dt * torque / (mass * length**2)
        rate -= np.copysign(min(dt * friction / (mass * length**2), abs(rate)), rate)
        angle += dt * rate
    values = np.array(seen) + [0.0, 5e-4] * np.random.default_rng(0).normal(size=(len(seen), 2))
    np.savetxt(folder / "pendulum.txt", values)
    tables: dict[str, Any] = {
        "simulator": {"name": "pendulum"},
        "time": {"dt": 0.01},
        "geometry": {"length": [length]},
        "material": {"mass": [mass], "damping": [0.01], "dry_friction": [0.02], **material},
        "state": {"angle": [0.7]},
        "unknowns": {
            "length": {"parameter": "length"},
            "damping": {"parameter": "damping"},
            "friction": {"parameter": "dry_friction"},
        },
        "observations": {
            "file": str(folder / "pendulum.txt"),
            "channels": [{"column": 1, "field": "angle", "node": 0, "unit": "rad", "sigma": 5e-4}],
        },
    }
    return build(tables)


def test_friction_whose_sign_is_too_smooth_is_doubtful_and_its_values_are_wrong(tmp_path: Path) -> None:
    """It fits to the noise: a smooth sign loses some of the friction, which the damping takes over."""
    smooth = simphys.identify(coulomb_pendulum(tmp_path, dry_friction=[0.0]))  # the start
    assert verdicts(smooth)["misfit"] == "passed" and verdicts(smooth)["sign of friction"] == "doubtful"
    assert "transition_rate" in remedies(smooth)["sign of friction"]
    sharp = simphys.identify(coulomb_pendulum(tmp_path, transition_rate=0.002))
    assert "sign of friction" not in verdicts(sharp)  # it is stated
    for fit, far in ((smooth, True), (sharp, False)):
        (friction,) = [row for row in fit.unknowns if row.label == "friction"]
        assert (abs(friction.value - 0.012) > 3 * friction.standard_error) is far


def test_friction_is_sharpened_where_it_acts_and_its_rate_is_not_stated() -> None:
    joints = [SimpleNamespace(transition_rate=rate) for rate in (None, 0.01, None)]
    friction = SimpleNamespace(joint_dry_friction=tensor([0.2, 0.2, 0.0]))
    part = SimpleNamespace(params=friction, config={"bodies": [], "joints": joints})
    assert find_smooth(part, set())["joint_transition_rate"].tolist() == [True, False, False]
    assert find_smooth(part, {"joint_transition_rate"}) == {}  # it is sought
    friction.joint_dry_friction = tensor([0.0, 0.2, 0.0])
    assert find_smooth(part, set()) == {}


def test_a_noise_that_is_not_stated_leaves_the_judgement_to_what_the_model_explains(tmp_path: Path) -> None:
    channel = {key: value for key, value in CHANNEL.items() if key != "sigma"}
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", observations={"channels": [channel]}))
    misfit = next(each for each in fit.criteria if each.name == "misfit")
    assert misfit.verdict == "passed" and "no sigma is stated" in misfit.found and misfit.value > 0.99


def test_a_noise_stated_too_large_is_doubtful(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", observations={"channels": [{**CHANNEL, "sigma": 0.1}]}))
    assert verdicts(fit)["misfit"] == "doubtful"


def test_a_coarse_time_step_is_doubtful_and_its_change_is_that_of_a_fit_with_half_of_it(tmp_path: Path) -> None:
    first_order = {"simulator": {"integrator": "semi_implicit_euler"}}
    scene = oscillator(tmp_path / "seen.txt", **first_order)
    fit = simphys.identify(scene)
    assert verdicts(fit)["time step"] != "passed"
    finer = simphys.identify(oscillator(tmp_path / "seen.txt", **first_order, time={"dt": 0.005}))
    for row, other in zip(fit.unknowns, finer.unknowns, strict=True):
        assert row.half_step_change == pytest.approx(other.value - row.value, abs=0.2 * row.standard_error)


def test_a_motion_that_half_the_time_step_blows_up_is_doubtful(tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt"))
    assert fit.uncertainty is not None
    lost = replace(fit.uncertainty, half_step=np.full(3, np.nan))
    (found,) = [each for each in judge(fit.scene, lost) if each.name == "time step"]
    assert found.verdict == "doubtful" and "not finite" in found.found and "time.dt" in found.remedy


def test_a_number_that_is_not_known_does_not_pass() -> None:
    assert grade(float("nan"), doubtful=1.5, failed=5.0) == "failed"
    assert [grade(x, doubtful=1.5, failed=5.0) for x in (1.5, 1.6, 5.1)] == ["passed", "doubtful", "failed"]


def test_an_outlier_hardly_changes_values_and_errors_of_a_robust_fit(tmp_path: Path) -> None:
    def spoil(time: np.ndarray, value: np.ndarray) -> np.ndarray:
        return np.where(np.arange(time.size) == 40, 1000.0, value)

    clean = simphys.identify(oscillator(tmp_path / "seen.txt"))
    loss = {"kind": "huber", "delta": 1.5}
    spoiled = simphys.identify(rewrite(tmp_path, spoil, loss=loss))
    for one, other in zip(clean.unknowns, spoiled.unknowns, strict=True):
        assert abs(one.value - other.value) < one.standard_error
        assert one.standard_error == pytest.approx(other.standard_error, rel=0.15)
        assert one.robust_error == pytest.approx(other.robust_error, rel=0.3)


@pytest.mark.parametrize(("error", "verdict"), [(0.1, "doubtful"), (1e-3, "passed")])
def test_linked_unknowns_are_doubtful_unless_both_are_known(error: float, verdict: str, tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt"))
    assert fit.uncertainty is not None
    errors = error * np.abs(fit.uncertainty.natural / fit.uncertainty.natural_derivative)
    together = np.diag(errors**2)
    together[0, 1] = together[1, 0] = 0.9995 * errors[0] * errors[1]
    standard = replace(fit.uncertainty.standard, values=errors, spread=together, sigma=1.0)
    changed = replace(fit.uncertainty, standard=standard, robust_covariance=together)
    found = next(each for each in judge(fit.scene, changed) if each.name == "determined unknowns")
    assert found.verdict == verdict and "largest correlation 0.9995, of stiffness and drag" in found.found


@pytest.mark.parametrize(("error", "verdict"), [(0.5, "passed"), (3.0, "doubtful"), (3e5, "failed")])
def test_a_value_smaller_than_its_error_is_hardly_determined(error: float, verdict: str, tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt"))
    assert fit.uncertainty is not None
    errors = fit.uncertainty.standard.values.copy()
    errors[1] = error * max(1.0, abs(float(fit.uncertainty.natural[1] / fit.uncertainty.natural_derivative[1])))
    changed = replace(fit.uncertainty, standard=replace(fit.uncertainty.standard, values=errors))
    found = next(each for each in judge(fit.scene, changed) if each.name == "determined unknowns")
    assert found.verdict == verdict and ("the error of drag is" in found.found) == (verdict != "passed")
