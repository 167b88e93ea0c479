"""Recordings whose times are in another unit are doubted, and what was read is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.assess.before import judge_cheaply, judge_start, settle_starts
from simphys.assess.criteria import Criterion
from simphys.assess.resolution import find_band
from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import from_dict

from ..helpers.small_scenes import oscillator


def criteria(scene: Scene) -> dict[str, Criterion]:
    return {each.name: each for each in judge_start(scene.objective())}


def in_milliseconds(folder: Path, dt: float, **observations: Any) -> Scene:
    """The recording of two oscillations of 2.1 s, with times of a clock of milliseconds."""
    oscillator(folder / "seen.txt")
    time, value = np.loadtxt(folder / "seen.txt").T
    np.savetxt(folder / "slow.txt", np.column_stack([1e3 * time, value]))
    return oscillator(
        folder / "seen.txt",
        observations={"file": str(folder / "slow.txt"), **observations},
        time={"dt": dt, "duration": None},
    )


@pytest.mark.parametrize("dt", [0.5, 0.1])
def test_a_recording_in_milliseconds_is_doubted_whatever_the_time_step(dt: float, tmp_path: Path) -> None:
    """Steps in a sample and in a period of the recording are as many as in a good fit: only the motion tells."""
    found = criteria(in_milliseconds(tmp_path, dt))
    assert "100 samples from " in found["resolution"].found and "e+03 s" in found["resolution"].found
    pace = found["pace"]
    assert pace.verdict == "doubtful" and pace.value > 100 and "time_unit = 0.001" in pace.remedy


def test_the_unit_of_time_that_the_doubt_names_puts_it_right(tmp_path: Path) -> None:
    found = criteria(in_milliseconds(tmp_path, 0.01, time_unit=0.001))
    assert "to 3.98 s, read in units of 0.001 s" in found["resolution"].found
    assert found["pace"].verdict == "passed" and found["pace"].value == pytest.approx(1, abs=0.4)


def test_a_recording_that_begins_before_the_motion_is_doubted_until_it_begins_with_it(tmp_path: Path) -> None:
    oscillator(tmp_path / "seen.txt")
    time, value = np.loadtxt(tmp_path / "seen.txt").T
    held = np.arange(0.0, 1.0, 0.05)
    late = np.column_stack([np.concatenate([held, 1.0 + time]), np.concatenate([np.full(held.size, value[0]), value])])
    np.savetxt(tmp_path / "late.txt", late)
    observations = {"file": str(tmp_path / "late.txt")}
    time_section = {"dt": 0.01, "duration": None}
    pace = criteria(oscillator(tmp_path / "seen.txt", observations=observations, time=time_section))["pace"]
    assert pace.verdict == "doubtful" and "at rest for the first" in pace.found
    assert "observations.begin" in pace.remedy
    begun = oscillator(tmp_path / "seen.txt", observations={**observations, "begin": 1.0}, time=time_section)
    assert criteria(begun)["pace"].verdict == "passed"


def test_steps_in_a_period_beyond_reason_are_doubted_before_anything_is_simulated(tmp_path: Path) -> None:
    cheap = judge_cheaply(in_milliseconds(tmp_path, 1e-3).objective())
    (found,) = [each for each in cheap if each.name == "resolution"]
    assert found.verdict == "doubtful" and found.value > 1e6 and "time_unit" in found.remedy


def test_a_start_at_rest_has_no_pace(tmp_path: Path) -> None:
    rest = oscillator(tmp_path / "seen.txt", unknowns={"start": {"start": 0.0}, "stiffness": None})
    assert "pace" not in criteria(rest)


def test_the_band_of_a_pulse_is_that_of_its_spectrum() -> None:
    """Of a sine in a Gaussian exp(-(t / a)^2), power falls as exp(-2 (pi a (f - f0))^2)."""
    times, width = np.arange(0, 4, 1e-3) - 2, 0.3
    pulse = np.sin(2 * np.pi * 10 * times) * np.exp(-((times / width) ** 2))
    peak, highest = find_band(pulse[:, None], 1e-3)
    assert peak == pytest.approx(10, abs=0.05)
    assert highest == pytest.approx(10 + np.sqrt(np.log(2) / 2) / (np.pi * width), abs=0.05)


def test_a_column_in_degrees_is_doubted_before_the_fit_and_named_after_one_that_failed(tmp_path: Path) -> None:
    """With length and damping unknown, the search runs away, so that no gain is found from its end."""
    pendulum: dict[str, Any] = {
        "simulator": {"name": "pendulum"},
        "time": {"dt": 0.01, "steps": 400},
        "geometry": {"length": [0.6]},
        "material": {"mass": 0.5, "damping": 0.02},
        "state": {"angle": [0.4]},
    }
    angle = build_scene(from_dict(pendulum)).rollout().states.angle.data[4::4, 0]
    noise = 0.1 * np.random.default_rng(0).standard_normal(100)
    np.savetxt(tmp_path / "seen.txt", np.column_stack([0.04 * np.arange(1, 101), np.degrees(angle) + noise]))
    channel = {"column": 1, "field": "angle", "node": 0, "unit": "rad", "sigma": 2e-3}
    seen = {"file": str(tmp_path / "seen.txt"), "channels": [channel]}
    starts = {"length": 0.54, "damping": 0.018}
    unknowns = {name: {"parameter": name, "start": start} for name, start in starts.items()}
    scene = build_scene(from_dict({**pendulum, "observations": seen, "unknowns": unknowns}))
    size = criteria(scene)["size"]
    assert size.verdict == "doubtful" and size.value == pytest.approx(57, rel=0.2)
    assert "Is the column in degrees? Then set the gain of the channel to 57.29578" in size.remedy
    fit = simphys.identify(scene)
    misfit = next(each for each in fit.criteria if each.name == "misfit")
    assert fit.verdict == "failed" and "gain of the channel to 57.29578" in misfit.remedy
    channel |= {"gain": 57.29578, "sigma": 0.1}
    right = build_scene(from_dict({**pendulum, "observations": seen, "unknowns": unknowns}))
    assert "size" not in criteria(right) and simphys.identify(right).verdict == "passed"


def test_a_trial_whose_clock_ran_on_is_doubted_until_it_begins_with_its_motion(tmp_path: Path) -> None:
    oscillator(tmp_path / "seen.txt")
    time, value = np.loadtxt(tmp_path / "seen.txt").T
    np.savetxt(tmp_path / "second.txt", np.column_stack([time + 10.0, value]))
    observations = {"file": str(tmp_path / "second.txt")}
    without_end = {"dt": 0.01, "duration": None}
    late = oscillator(tmp_path / "seen.txt", observations=observations, time=without_end)
    found = criteria(late)["first sample"]
    assert found.verdict == "doubtful" and "set its observations.begin = 10.02" in found.remedy
    misfit = next(each for each in simphys.identify(late).criteria if each.name == "misfit")
    assert misfit.verdict != "passed" and "observations.begin = 10.02" in misfit.remedy
    begun = oscillator(tmp_path / "seen.txt", observations={**observations, "begin": 10.0}, time=without_end)
    assert "first sample" not in criteria(begun)


def test_a_recording_that_begins_late_and_is_described_settles_its_doubt(tmp_path: Path) -> None:
    long = oscillator(tmp_path / "seen.txt", time={"dt": 0.01, "duration": 4.0})
    time, value = np.loadtxt(tmp_path / "seen.txt").T
    np.savetxt(tmp_path / "end.txt", np.column_stack([time, value])[70:])
    scene = oscillator(tmp_path / "seen.txt", observations={"file": str(tmp_path / "end.txt")})
    before = judge_start(scene.objective())
    assert long.steps == scene.steps and "first sample" in {each.name for each in before}
    settled = {each.name: each for each in settle_starts(before, described=True)}
    assert settled["first sample"].verdict == "passed" and "the fit describes it" in settled["first sample"].found
    assert settle_starts(before, described=False) == before
