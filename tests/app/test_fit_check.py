"""What is known about a fit before it, and whether it finds what simulated recordings were made with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.fit_check import check_fit, recover_scene, recovery_rows
from simphys.app.intervals import find_intervals
from simphys.app.next_experiment import design_scene
from simphys.app.report import print_intervals
from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene
from simphys.record import Recording
from simphys.runs.digits import format_estimate

from ..helpers import oscillator as command
from ..helpers.small_scenes import oscillator, oscillator_with_memory, soft_square


def verdicts(scene: Scene) -> dict[str, tuple[str, str]]:
    return {each.name: (each.verdict, each.found) for each in check_fit(scene).criteria}


def test_a_sound_fit_passes_and_its_errors_are_those_that_it_gets(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt")
    found = check_fit(scene)
    assert {each.verdict for each in found.criteria} == {"passed"}
    assert {"starts", "resolution", "pace", "scales", "expected errors", "cost"} == {
        each.name for each in found.criteria
    }
    fit = simphys.identify(scene)
    for row, expected in zip(fit.unknowns, found.expectations, strict=True):
        assert (row.label, row.unit) == (expected.label, expected.unit)
        assert row.standard_error == pytest.approx(expected.error, rel=0.4)  # at the start, not at the end


def test_an_unknown_without_effect_has_no_error_to_expect(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", unknowns={"gravity_y": {"parameter": "rest_length", "entries": [0]}})
    pinned = oscillator(tmp_path / "seen.txt", unknowns={"far": {"parameter": "ground_height"}})
    assert scene.objective().labels
    found = check_fit(pinned)
    criterion = next(each for each in found.criteria if each.name == "expected errors")
    assert criterion.verdict == "failed" and "far changes no observation" in criterion.found and criterion.remedy
    assert np.isnan(next(each.error for each in found.expectations if each.label == "far"))


def test_a_recording_in_milliseconds_is_told_before_anything_is_simulated(tmp_path: Path) -> None:
    oscillator(tmp_path / "seen.txt")
    time, value = np.loadtxt(tmp_path / "seen.txt").T
    np.savetxt(tmp_path / "slow.txt", np.column_stack([1e3 * time, value]))
    scene = oscillator(
        tmp_path / "seen.txt",
        observations={"file": str(tmp_path / "slow.txt")},
        time={"dt": 1e-4, "duration": None},
    )
    verdict, found = verdicts(scene)["resolution"]
    assert verdict == "doubtful" and "steps" in found and "cost" not in verdicts(scene)


def test_a_fit_without_a_measurement_is_refused() -> None:
    with pytest.raises(InputError, match="needs a measurement"):
        check_fit(soft_square(unknowns={"stiffness": {"parameter": "stiffness", "tied": True}}))


@pytest.mark.parametrize("job", [check_fit, design_scene])
def test_a_start_from_which_the_motion_blows_up_is_refused_in_the_same_words(
    job: Callable[[Scene], Any], tmp_path: Path
) -> None:
    words = r"start of the unknowns: the motion must stay finite; found a blow-up at step \d+ .*unknowns.NAME.start"
    with pytest.raises(InputError, match=words):
        job(oscillator(tmp_path / "seen.txt", unknowns={"stiffness": {"start": 7e6}}))


def test_the_commands_print_tables_and_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("simphys.plot.all_figures", lambda recording, folder: [])
    scene = command.write(tmp_path)
    checked = command.simphys("check-fit", scene)
    assert checked.exit_code == 0, checked.output
    assert "error to expect" in checked.stdout and "if all iterations are used" in checked.stdout
    recovered = command.simphys("recover", scene, "--times", "5", "output.folder=run")
    assert "5 recoveries" in recovered.stdout and "bias" in recovered.stdout, recovered.output
    assert Recording("run_recovered")["assessment/recovery/error"].shape[0] == 5


def test_recovery_is_recorded_with_its_coverage(tmp_path: Path) -> None:
    fit, found = recover_scene(oscillator(tmp_path / "seen.txt"), folder=tmp_path / "run", times=12)
    assert fit.criteria[-1].name == "recovery" and fit.verdict == "passed"
    assert found.error.shape == (12, 3) and found.coverage > 0.8
    rows = recovery_rows(fit, found)
    assert [row[0] for row in rows] == ["stiffness", "drag", "start"] and all("±" in row[3] for row in rows)
    assert [row[2] for row in rows] == [format_estimate(row.value, row.larger_error)[0] for row in fit.unknowns]
    assert fit.recording.attrs("judgement")["verdict"] == "passed"


def test_intervals_of_a_nearly_linear_fit_are_the_standard_errors(tmp_path: Path) -> None:
    fit, rows = find_intervals(oscillator(tmp_path / "seen.txt"), folder=tmp_path / "run")
    for row in rows:
        assert -row.below == pytest.approx(row.standard_error, rel=0.05)
        assert row.above == pytest.approx(row.standard_error, rel=0.05)
        assert row.factor == 1
    assert "intervals" not in {each.name for each in fit.criteria}
    np.testing.assert_array_equal(fit.recording["intervals/above"], [row.above for row in rows])


def test_intervals_are_doubtful_where_residuals_are_correlated_and_those_that_allow_for_it_stand_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit, rows = find_intervals(oscillator_with_memory(tmp_path), folder=tmp_path / "run")
    line = fit.criteria[-1]
    assert (line.name, line.verdict) == ("intervals", "doubtful") and "residuals are correlated" in line.found
    assert fit.recording["judgement/name"][-1] == "intervals"
    factors = [max(row.robust_error / row.standard_error, 1.0) for row in fit.unknowns]
    assert max(factors) > 1.3 and f"{max(factors):.2g} times as large" in line.found
    np.testing.assert_allclose([row.factor for row in rows], factors)
    print_intervals(rows)
    printed = capsys.readouterr().out
    for row in rows:
        assert f" {format_estimate(row.value, row.standard_error)[0]} " in printed
        assert f"{row.factor * row.below:+.3g} to {row.factor * row.above:.3g}" in printed
