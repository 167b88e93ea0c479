"""`simphys assess`: checks before, the fit, other starts, recovery, one verdict; rivals' failures do not pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app.assessment import assess, load_scene_or_run
from simphys.app.identification import Identification
from simphys.assess.before import judge_start, settle_starts
from simphys.assess.draws import draw_starts
from simphys.assess.recovery import Recovery, judge_recovery
from simphys.assess.resolution import find_period
from simphys.assess.starts import Starts, judge_starts
from simphys.autograd.errors import InputError
from simphys.record import Recording

from ..helpers import oscillator as command
from ..helpers.small_scenes import oscillator, soft_square

SECOND_SPRING = {
    "geometry": {
        "position": [[1.0]],
        "anchors": [{"node": 0, "point": [0.0], "stiffness": 4.0}, {"node": 0, "point": [0.0], "stiffness": 5.0}],
    },
    "unknowns": {
        "stiffness": {"parameter": "stiffness", "entries": [0], "start": 3.0, "transform": "log"},
        "other": {"parameter": "stiffness", "entries": [1], "start": 4.0, "transform": "log"},
    },
}


def verdicts(fit: Identification) -> dict[str, str]:
    return {each.name: each.verdict for each in fit.criteria}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Identification:
    folder = tmp_path_factory.mktemp("clean")
    return assess(oscillator(folder / "seen.txt"), folder=folder / "run", seconds=600)


def test_a_clean_fit_passes_every_criterion(clean: Identification) -> None:
    assert set(verdicts(clean).values()) == {"passed"} and clean.verdict == "passed"
    assert {"starts", "resolution", "expected errors", "holdout", "starts tried", "recovery"} <= set(verdicts(clean))


def test_all_of_it_is_recorded_and_drawn(clean: Identification, tmp_path: Path) -> None:
    from simphys.plot import assessment

    assert clean.folder is not None
    run = Recording(clean.folder)
    assert list(run["judgement/name"]) == [each.name for each in clean.criteria]
    assert run["assessment/starts/same"].all() and len(run["assessment/starts/loss"]) == 8
    error = run["assessment/recovery/error"]
    assert error.shape == (20, 3) and np.abs(error.mean(axis=0)).max() < 4 / np.sqrt(20)
    np.testing.assert_allclose(error.std(axis=0), 1, atol=0.5)
    assessment(run, tmp_path / "assessment.png")
    assert (tmp_path / "assessment.png").stat().st_size > 10_000


def test_springs_that_act_together_fail_before_the_fit(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", **SECOND_SPRING)
    found = {each.name: each for each in judge_start(scene.objective())}
    assert found["expected errors"].verdict == "failed"
    assert "stiffness, other act together" in found["expected errors"].found
    assert "[unknowns]" in found["expected errors"].remedy


@pytest.mark.parametrize(
    ("changes", "criterion", "words", "remedy"),
    [
        ({"unknowns": {"stiffness": {"start": 7e6}}}, "sound start", "largest stable time step", "time.dt"),
        (SECOND_SPRING, "expected errors", "stiffness, other act together", "Tie some of"),
    ],
)
def test_a_failed_check_ends_the_assessment_before_the_fit(
    changes: Any, criterion: str, words: str, remedy: str, tmp_path: Path
) -> None:
    fit = assess(oscillator(tmp_path / "seen.txt", **changes), folder=tmp_path / "run")
    found = {each.name: each for each in fit.criteria}
    assert fit.verdict == found[criterion].verdict == "failed" and "search" not in found
    assert words in found[criterion].found and remedy in found[criterion].remedy
    assert Recording(tmp_path / "run").attrs("judgement")["verdict"] == "failed"
    assert [row.value for row in fit.unknowns] == [row.start for row in fit.unknowns]


def test_a_start_that_blows_up_fails_within_the_stability_limit_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simphys.experiment.scene.Scene.require_stable", lambda scene: None)
    fit = assess(oscillator(tmp_path / "seen.txt", unknowns={"stiffness": {"start": 7e6}}), folder=tmp_path / "run")
    found = next(each for each in fit.criteria if each.name == "sound start")
    assert found.verdict == "failed" and "blow-up at step" in found.found and "Other start values" in found.remedy


def test_a_failed_check_prints_a_page_and_bad_input_an_error(tmp_path: Path) -> None:
    scene, folder = command.write(tmp_path), f"output.folder={tmp_path / 'run'}"
    assert command.simphys("assess", scene, folder, "time.dt=-1").exit_code == 2
    result = command.simphys("assess", scene, folder, "unknowns.rate.start=7e6", "--report")
    assert result.exit_code == 1 and "\nverdict: failed\n" in result.stdout
    assert "failed    sound start" in result.stdout and "-> Set time.dt to" in result.stdout
    assert (tmp_path / "run_assessed" / "report.html").exists()


def test_what_a_start_at_rest_hides_is_doubtful_where_the_horizon_grows(tmp_path: Path) -> None:
    rest: Any = {"unknowns": {"start": {"start": 0.0}}}
    for horizon, verdict in (("full", "failed"), ("growing", "doubtful")):
        scene = oscillator(tmp_path / "seen.txt", **rest, optimizer={"horizon": horizon})
        found = {each.name: each for each in judge_start(scene.objective())}["expected errors"]
        assert found.verdict == verdict and "give state.velocity another start" in found.remedy


def test_an_unknown_that_is_not_connected_fails_before_the_fit(tmp_path: Path) -> None:
    changes: Any = {
        "geometry": {"position": [[1.0], [5.0]]},
        "unknowns": {"lonely": {"parameter": "position", "entries": [1]}},
    }
    changes["geometry"]["anchors"] = [{"node": 0, "point": [0.0], "stiffness": 9.0}]
    found = {each.name: each for each in judge_start(oscillator(tmp_path / "seen.txt", **changes).objective())}
    assert "lonely changes no observation" in found["expected errors"].found


def test_a_start_at_a_bound_is_doubtful(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", unknowns={"drag": {"start": 0.0}})
    found = {each.name: each for each in judge_start(scene.objective())}
    assert found["starts"].verdict == "doubtful" and "drag" in found["starts"].found
    (settled,) = settle_starts([found["starts"]], described=False)
    assert settled.verdict == "passed" and settled.remedy == "" and "the fit left it" in settled.found


def test_few_steps_in_a_period_are_doubtful(tmp_path: Path) -> None:
    oscillator(tmp_path / "seen.txt")
    coarse = {each.name: each for each in judge_start(oscillator(tmp_path / "seen.txt", time={"dt": 0.15}).objective())}
    assert coarse["resolution"].verdict == "doubtful" and coarse["resolution"].value == pytest.approx(14, abs=2)
    assert "time.dt" in coarse["resolution"].remedy


def test_the_period_of_an_oscillation_is_found_and_of_a_ramp_there_is_none() -> None:
    times = np.linspace(0, 10, 300)
    assert find_period(times, 3 + np.cos(4 * times)) == pytest.approx(2 * np.pi / 4, rel=0.02)
    assert find_period(times, times) == np.inf


def test_noise_that_crosses_the_mean_is_no_oscillation() -> None:
    times = np.linspace(0, 10, 300)
    noisy = times + 0.3 * np.random.default_rng(0).normal(size=times.size)
    assert find_period(times, noisy, noise=0.3) == np.inf
    assert find_period(times, 4 * np.cos(4 * times) + noisy - times, noise=0.3) == pytest.approx(np.pi / 2, rel=0.02)


def test_starts_fill_finite_bounds_and_stay_near_without(tmp_path: Path) -> None:
    objective = oscillator(tmp_path / "seen.txt").objective()
    drawn = draw_starts(objective, 8, 0)
    assert (drawn >= objective.lower).all() and (drawn <= objective.upper).all()
    assert np.ptp(drawn[:, 1]) > 0.7 * (objective.upper[1] - objective.lower[1])  # the drag has bounds
    assert np.abs(drawn[:, 0] - objective.start[0]).max() <= 0.3


@pytest.mark.parametrize(
    ("loss", "same", "verdict", "words"),
    [
        ([50.0, 50.0, 50.0, 90.0], [1, 1, 1, 0], "passed", "3 of 4 starts end at the fit"),
        ([50.0, 50.0, 50.0, 30.0], [1, 1, 1, 0], "failed", "one ends better, by 40 in chi^2"),
        ([50.0, 50.0, 50.0, 50.1], [1, 1, 1, 0], "doubtful", "1 as well with other values"),
        ([50.0, 90.0, np.inf, 90.0], [1, 0, 0, 0], "doubtful", "the others at worse optima"),
    ],
)
def test_starts_are_judged_by_the_best_by_rivals_and_by_those_that_are_lost(
    loss: list[float], same: list[int], verdict: str, words: str, clean: Identification
) -> None:
    assert clean.uncertainty is not None
    ends = np.tile(clean.uncertainty.theta, (len(loss), 1))
    tried = Starts(ends, ends, np.array(loss), np.array(same, bool))
    found = judge_starts(tried, replace(clean.result, loss=50.0), clean.uncertainty)
    assert found.verdict == verdict and words in found.found and bool(found.remedy) == (verdict != "passed")


def test_recovery_is_judged_by_coverage_and_bias() -> None:
    random = np.random.default_rng(0).standard_normal((20, 2))
    assert judge_recovery(Recovery(random), ("a", "b")).verdict == "passed"
    assert judge_recovery(Recovery(3 * random), ("a", "b")).verdict == "doubtful"
    biased = judge_recovery(Recovery(0.5 * random + [0.0, 1.0]), ("a", "b"))
    assert biased.verdict == "doubtful" and "b is biased" in biased.found


def test_a_scene_without_a_measurement_is_refused(tmp_path: Path) -> None:
    scene = soft_square(unknowns={"k": {"parameter": "stiffness", "tied": True}})
    with pytest.raises(InputError, match=r"assess: needs a measurement to compare with; found no \[observations\]"):
        assess(scene, folder=tmp_path / "run")


def test_the_command_prints_a_page_and_takes_a_run(tmp_path: Path) -> None:
    scene = command.write(tmp_path)
    result = command.simphys("assess", str(scene), f"output.folder={tmp_path / 'run'}", "--seconds", "600")
    assert result.exit_code == 0 and "\nverdict: passed\n" in result.stdout
    assert "passed    recovery" in result.stdout and "assessment.png" in result.stdout
    again = load_scene_or_run(tmp_path / "run_assessed")
    assert again.config.title == "A mass on a spring"
    with pytest.raises(InputError, match="the scene of a run takes no overrides"):
        load_scene_or_run(tmp_path / "run_assessed", ("time.dt=1",))


def test_samples_too_few_to_hold_some_out_are_doubtful_but_do_not_fail(tmp_path: Path) -> None:
    """Of 4 samples, 3 are left for 3 unknowns: they predict nothing, and tell no noise."""
    oscillator(tmp_path / "seen.txt")
    np.savetxt(tmp_path / "few.txt", np.loadtxt(tmp_path / "seen.txt")[[0, 30, 60, 90]])
    scene = oscillator(tmp_path / "seen.txt", observations={"file": str(tmp_path / "few.txt")})
    judged = assess(scene, folder=tmp_path / "assessed", seconds=1)
    assert judged.verdict == "doubtful" and "holdout" not in [each.name for each in judged.criteria]
