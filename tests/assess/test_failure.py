"""A fit that failed: its other criteria say nothing that holds for good fits alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.assessment import assess
from simphys.app.identification import Identification
from simphys.assess import Criterion, heed_failure
from simphys.experiment.scene import Scene

from ..helpers.small_scenes import build, oscillator

LENGTH, DAMPING, NOISE = 0.8, 0.02, 0.01


def swinging(folder: Path, length: float, bounds: list[float], **more: Any) -> Scene:
    """A pendulum of 0.8 m that swings eleven times; its length is unknown, and starts far off."""
    tables: dict[str, Any] = {
        "simulator": {"name": "pendulum"},
        "time": {"dt": 0.02, "steps": 1000},
        "geometry": {"length": [LENGTH]},
        "material": {"mass": 1.0, "damping": DAMPING},
        "state": {"angle": [1.0]},
    }
    angle = build(tables).rollout().angle.data[::2, 0]
    seen = angle + NOISE * np.random.default_rng(1).standard_normal(angle.size)
    np.savetxt(folder / "seen.txt", np.column_stack([0.04 * np.arange(angle.size), seen]))
    channel = {"column": 1, "field": "angle", "node": 0, "unit": "rad", "sigma": NOISE}
    tables["geometry"] = {"length": [length]}
    tables["time"] = {"dt": 0.02}
    tables["observations"] = {"file": str(folder / "seen.txt"), "channels": [channel], **more}
    tables["unknowns"] = {
        "length": {"parameter": "length", "bounds": [0.05, 2.0]},
        "damping": {"parameter": "damping", "bounds": bounds},
    }
    return build(tables)


def rows(fit: Identification) -> dict[str, Criterion]:
    return {each.name: each for each in fit.criteria}


def test_a_local_optimum_at_a_bound_names_the_better_one_within(tmp_path: Path) -> None:
    scene = swinging(tmp_path, 0.5, [0.0, 0.05], validation={"kind": "time"})
    fit = simphys.identify(scene)
    found = rows(fit)
    assert fit.verdict == found["misfit"].verdict == "failed" and found["bounds"].verdict == "doubtful"
    assert "Widen" not in found["bounds"].remedy and "Keep these bounds" in found["bounds"].remedy
    assert "local optimum: start [unknowns] from" in found["misfit"].remedy and "0.800" in found["misfit"].remedy
    assert found["holdout"].verdict == "failed" and "misses those that it has seen" in found["holdout"].found


def test_bounds_that_exclude_the_truth_are_to_be_widened(tmp_path: Path) -> None:
    unknowns = {"stiffness": {"bounds": [5.0, 7.0], "start": 6.0}}
    found = rows(simphys.identify(oscillator(tmp_path / "seen.txt", unknowns=unknowns)))
    assert "Widen these bounds" in found["bounds"].remedy and "stiffness 7 -> 9." in found["bounds"].remedy
    assert "see bounds" in found["misfit"].remedy


def test_bounds_that_explain_nothing_are_not_to_be_widened(tmp_path: Path) -> None:
    """The recording is of another thing, which no value of the unknowns describes."""
    oscillator(tmp_path / "seen.txt")
    time = np.loadtxt(tmp_path / "seen.txt")[:, 0]
    np.savetxt(tmp_path / "other.txt", np.column_stack([time, np.sign(np.sin(5 * time**1.5))]))
    scene = oscillator(
        tmp_path / "seen.txt",
        observations={"file": str(tmp_path / "other.txt")},
        unknowns={"stiffness": {"bounds": [8.0, 8.5], "start": 8.2}},
    )
    found = rows(simphys.identify(scene))
    assert found["bounds"].verdict == "doubtful" and "Bounds are not what is wrong" in found["bounds"].remedy


def test_an_assessment_of_a_fit_that_failed_names_the_start_of_a_better_one(tmp_path: Path) -> None:
    judged = assess(swinging(tmp_path, 0.5, [0.0, 0.05]), folder=tmp_path / "run", seconds=20)
    found = rows(judged)
    assert "recovery" not in found and found["holdout"].verdict == "failed"
    if found["starts tried"].verdict == "failed":  # one of the starts within the bounds reaches the truth
        assert "Start [unknowns] from the better one: " in found["starts tried"].remedy
        assert "Keep these bounds" in found["bounds"].remedy


def test_a_coarse_time_step_is_to_be_mended_before_a_misfit_that_failed() -> None:
    misfit = Criterion("misfit", 30.0, "failed", "RMSE / sigma 30", "Look.")
    coarse = Criterion("time step", 150.0, "doubtful", "half of it changes k", "Lower time.dt.")
    changed = heed_failure(heed_failure([misfit, coarse]))
    assert [each.remedy for each in changed] == ["The time step may be the cause: mend it first. Look.", coarse.remedy]


@pytest.mark.parametrize(
    ("name", "verdict", "remedy", "after", "words"),
    [
        ("recovery", "passed", "", "doubtful", "errors mean nothing"),
        ("alias", "doubtful", "Record more often.", "doubtful", "plausible all the same. Record more often."),
        ("recording", "doubtful", "Look at the file.", "doubtful", "Look at the file."),
        ("white residuals", "passed", "", "passed", ""),
    ],
)
def test_only_what_builds_on_the_fit_is_reworded(name: str, verdict: Any, remedy: str, after: str, words: str) -> None:
    misfit = Criterion("misfit", 30.0, "failed", "RMSE / sigma 30", "Look.")
    own = Criterion(name, 1.0, verdict, "found", remedy)
    (_, changed) = heed_failure([misfit, own])
    assert changed.verdict == after and words in changed.remedy
    assert heed_failure(heed_failure([misfit, own])) == heed_failure([misfit, own])
    passed = Criterion("misfit", 1.0, "passed", "RMSE / sigma 1")
    assert heed_failure([passed, own]) == [passed, own]


def test_a_column_of_zeros_is_the_only_thing_to_mend(tmp_path: Path) -> None:
    oscillator(tmp_path / "seen.txt")
    time = np.loadtxt(tmp_path / "seen.txt")[:, 0]
    np.savetxt(tmp_path / "zeros.txt", np.column_stack([time, 0 * time]))
    scene = oscillator(tmp_path / "seen.txt", observations={"file": str(tmp_path / "zeros.txt")})
    found = rows(simphys.identify(scene))
    assert found["recording"].verdict == "failed" and "Look at the file" in found["recording"].remedy
    others = {each.remedy for name, each in found.items() if name not in ("recording", "search", "bounds")} - {""}
    assert others == {"See recording: nothing was measured by which this could be judged."}


def test_a_search_without_an_end_says_nothing_of_bounds_and_of_what_is_missing(tmp_path: Path) -> None:
    scene = swinging(tmp_path, 1.9, [0.0, 0.05])
    scene = build({**scene.config.model_dump(exclude_unset=True), "optimizer": {"iterations": 2}})
    found = rows(simphys.identify(scene))
    assert found["search"].verdict == "failed" and "what explains it" not in found["misfit"].remedy
