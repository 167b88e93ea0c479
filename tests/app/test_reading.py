"""A fit that fails says what it has read, so that a wrong unit shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys.app.report import print_identification
from simphys.autograd import tensor
from simphys.runs.reading import describe_readings

from ..helpers.small_scenes import oscillator


def printed(capsys: pytest.CaptureFixture[str], **changes: object) -> str:
    print_identification(simphys.identify(oscillator(Path("seen.txt"), **changes)))
    return capsys.readouterr().out


def test_a_recording_in_another_unit_shows_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    good = printed(capsys)
    assert "samples" not in good and "verdict: passed" in good
    seen = np.loadtxt("seen.txt")
    np.savetxt("seen.txt", seen * np.array([1.0, 1e6]))  # in um
    text = printed(capsys, optimizer={"iterations": 3})
    last = f"{seen[0, 0]:.4g} to {seen[-1, 0]:.4g} s, 400 steps"
    assert f"100 samples, {last}; first sample {1e6 * seen[0, 1]:.4g} m, the model starts at 0.8 m\n" in text
    assert "iteration limit" in text and "Raise optimizer.iterations" not in text
    np.savetxt("seen.txt", seen * np.array([1000.0, 1.0]))  # in ms
    text = printed(capsys, optimizer={"iterations": 2}, time={"duration": None})
    assert f"100 samples, {1e3 * seen[0, 0]:.4g} to {1e3 * seen[-1, 0]:.4g} s, " in text
    assert "iteration limit" in text and "Raise optimizer.iterations" not in text


def test_a_fit_that_was_stopped_too_early_is_told_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = printed(capsys, optimizer={"iterations": 1})
    assert "100 samples, " in text and "Raise optimizer.iterations; with --resume it goes on from here." in text


def test_a_value_whose_logarithm_has_run_away_is_no_obstacle(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", unknowns={"stiffness": {"start": None}})
    assert len(list(describe_readings(scene))) == 1
    gone = replace(scene, params=scene.params.replace(stiffness=tensor([0.0])))
    assert list(describe_readings(gone)) == []
