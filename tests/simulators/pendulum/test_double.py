"""The chaotic double pendulum is identified on a growing horizon, but not on the full horizon at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import simphys
from simphys import optimize
from simphys.autograd import tensor
from simphys.diagnose.health import health

from .recordings import load, rmse, script

COARSE = "time.dt=0.0066666666666666667"
"""Override that halves the number of steps; the fit ends at the same values."""


def test_its_neighbouring_motions_part_at_some_1_2_per_second() -> None:
    true, scene = script().DOUBLE, load("double", COARSE)
    params = scene.params.replace(mass=tensor(true["mass"]), damping=tensor(true["damping"]))
    state = scene.state.replace(angle=tensor(true["angle"]), rate=tensor(true["rate"]))
    found = health(scene.model, params, state, steps=scene.steps)
    assert found.tangent_rate is not None and found.tangent_rate.exponential
    assert found.tangent_rate.value == pytest.approx(1.2, abs=0.3)
    assert found.tangent_rate.value * scene.steps * scene.dt > 8  # Lyapunov times


def test_the_growing_horizon_finds_the_mass_the_damping_and_the_start(tmp_path: Path) -> None:
    true = script().DOUBLE
    fit = simphys.identify(load("double", COARSE), folder=tmp_path / "run")
    assert fit.result.success
    expected = {"mass": true["mass"][1]}
    expected |= {f"{name}[{i}]": true[name][i] for name in ("damping", "angle", "rate") for i in (0, 1)}
    assert {row.label for row in fit.unknowns} == set(expected)
    for row in fit.unknowns:
        assert abs(row.value - expected[row.label]) < 3 * row.standard_error, row
    assert fit.unknowns[0].standard_error < 1e-3
    assert list(fit.rmse.values())[-1] == pytest.approx(0.01, rel=0.05)  # noise of the recording


def test_the_full_horizon_at_once_ends_in_a_local_minimum() -> None:
    scene = load("double", COARSE)
    result = optimize.minimize(scene.objective(), horizon="full", iterations=40)
    assert rmse(scene, result.loss, 0.01) > 1  # rad
