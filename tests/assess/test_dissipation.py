"""Friction that gives energy is doubted, however well it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys

from ..helpers.small_scenes import oscillator


def with_gain(folder: Path, growth: float, bounds: list[Any]) -> simphys.Scene:
    """The oscillator, by a sensor whose gain grows at this rate [1/s]."""
    oscillator(folder / "seen.txt")
    time, value = np.loadtxt(folder / "seen.txt").T
    np.savetxt(folder / "grown.txt", np.column_stack([time, value * np.exp(growth * time)]))
    observations = {"file": str(folder / "grown.txt"), "channels": [CHANNEL]}
    sought = {"drag": {"bounds": bounds}, "speed": {"parameter": "velocity", "entries": [0], "scale": 1.0}}
    return oscillator(folder / "seen.txt", unknowns=sought, observations=observations)


CHANNEL = {"column": 1, "field": "position", "node": 0, "unit": "m", "sigma": 0.015}


def test_a_gain_that_grows_feigns_a_drag_that_gives_energy(tmp_path: Path) -> None:
    """The amplitude decays with half of the drag, 0.05/s: a gain that grows by 0.1/s leaves a drag of -0.1/s."""
    fit = simphys.identify(with_gain(tmp_path, 0.1, ["-inf", "inf"]))
    assert fit.unknowns[1].value == pytest.approx(-0.1, abs=0.02)
    (found,) = [each for each in fit.criteria if each.verdict != "passed"]
    assert found.name == "dissipation" and "drag is -0.1" in found.found and "gain drifts" in found.remedy


def test_a_drag_below_zero_within_its_error_is_chance(tmp_path: Path) -> None:
    fit = simphys.identify(with_gain(tmp_path, 0.0505, ["-inf", "inf"]))
    row = fit.unknowns[1]
    assert abs(row.value) < 3 * row.standard_error and fit.verdict == "passed"
