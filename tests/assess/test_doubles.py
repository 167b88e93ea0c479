"""Fits that have a double are doubted: an oscillation seen too rarely, and charges whose signs no force tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.app.identification import Identification
from simphys.assess.criteria import Criterion
from simphys.assess.doubles import _find_interval as find_interval
from simphys.experiment.scene import Scene

from ..helpers.small_scenes import TRUTH, build, oscillator

ROOT = np.sqrt(TRUTH["stiffness"] - TRUTH["drag"] ** 2 / 4)
"""Angular frequency of the oscillator [1/s]; its period is 2.1 s."""


def find(fit: Identification, name: str) -> list[Criterion]:
    return [each for each in fit.criteria if each.name == name]


def sampled(folder: Path, times: Any, stiffness: float) -> Scene:
    """The oscillator, by its closed form, at these times; the search begins with this stiffness."""
    decay = np.exp(-0.5 * TRUTH["drag"] * times)
    seen = decay * (np.cos(ROOT * times) + 0.5 * TRUTH["drag"] / ROOT * np.sin(ROOT * times))
    seen += 0.01 * np.random.default_rng(3).standard_normal(times.size)
    np.savetxt(folder / "sampled.txt", np.column_stack([times, seen]))
    return oscillator(
        folder / "seen.txt",
        time={"dt": 0.01, "duration": None},
        unknowns={"stiffness": {"start": stiffness}},
        observations={"file": str(folder / "sampled.txt")},
    )


@pytest.mark.parametrize("turns", [0, 1])
def test_an_oscillation_seen_less_than_twice_a_period_is_doubted(turns: int, tmp_path: Path) -> None:
    """Samples each 1.3 s fit 9 N/m and 61 N/m, a whole turn more between samples, down to the noise."""
    double = (ROOT + 2 * np.pi / 1.3 * turns) ** 2
    fit = simphys.identify(sampled(tmp_path, 1.3 * np.arange(20), double))
    assert fit.unknowns[0].value == pytest.approx(double, rel=0.01)
    assert find(fit, "misfit")[0].verdict == "passed" and fit.verdict == "doubtful"
    (alias,) = find(fit, "alias")
    assert "has a sample every 1.3 s" in alias.found
    assert alias.value == pytest.approx(2 * np.pi / np.sqrt(double) / 1.3, rel=0.02)


def test_samples_enough_have_no_alias(tmp_path: Path) -> None:
    fit = simphys.identify(sampled(tmp_path, 0.9 * np.arange(20), TRUTH["stiffness"]))
    assert fit.verdict == "passed"


def test_intervals_that_differ_tell_one_frequency_from_another() -> None:
    even = 1.3 * np.arange(20)
    assert find_interval(even) == find_interval(np.delete(even, [4, 9])) == pytest.approx(1.3)
    assert np.isnan(find_interval(even + np.random.default_rng(0).uniform(0, 0.6, 20)))


def charges(folder: Path, charge: list[float], entries: list[int]) -> Scene:
    """Charges of +2, -1 and +1.5, whose motion is seen; some of them are sought."""
    tables: dict[str, Any] = {
        "simulator": {"name": "charges"},
        "time": {"dt": 0.01},
        "geometry": {"position": [[0.0, 0.0], [3.0, 1.0], [-2.0, 2.0]]},
        "material": {"charge": [2.0, -1.0, 1.5], "mass": [1.0, 2.0, 1.0], "coupling": 3.0, "softening": 0.2},
    }
    motion = build({**tables, "time": {"dt": 0.01, "steps": 100}}).rollout().position.data[::5].reshape(21, 6)
    noise = 0.003 * np.random.default_rng(1).standard_normal(motion.shape)
    np.savetxt(folder / "charges.txt", np.column_stack([0.05 * np.arange(21), motion + noise]))
    shown = [{"field": "position", "node": i // 2, "axis": i % 2, "sigma": 0.003} for i in range(6)]
    channels = [{"column": i + 1, **each} for i, each in enumerate(shown)]
    return build(
        {
            **tables,
            "material": {**tables["material"], "charge": charge},
            "unknowns": {"charge": {"parameter": "charge", "entries": entries, "scale": 1.0}},
            "observations": {"file": str(folder / "charges.txt"), "channels": channels},
        }
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_signs_that_no_force_tells_are_doubted(sign: int, tmp_path: Path) -> None:
    fit = simphys.identify(charges(tmp_path, [1.5 * sign, -0.8 * sign, 1.2 * sign], [0, 1, 2]))
    assert [row.value for row in fit.unknowns] == pytest.approx([2 * sign, -sign, 1.5 * sign], abs=0.1)
    (found,) = find(fit, "mirror image")
    assert found.verdict == "doubtful" and found.found == "charge with the opposite sign fit as well"
    assert all(each.verdict == "passed" for each in fit.criteria if each is not found)


def test_charges_beside_a_known_one_have_their_signs(tmp_path: Path) -> None:
    fit = simphys.identify(charges(tmp_path, [2.0, -0.8, 1.2], [1, 2]))
    assert fit.verdict == "passed" and not find(fit, "mirror image")
