"""The chaotic double pendulum is identified on a growing horizon, but not on the full horizon at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simphys
from simphys import optimize
from simphys.autograd import tensor
from simphys.diagnose.health import health

from .recordings import load, rmse, script

COARSE = "time.dt=0.0066666666666666667"
"""Override that halves the number of steps; the fit ends at the same values."""


def test_its_neighbouring_motions_part_at_some_1_per_second() -> None:
    true, scene = script().DOUBLE, load("double", COARSE)
    params = scene.params.replace(**{name: tensor(true[name]) for name in ("mass", "inertia", "damping")})
    state = scene.state.replace(angle=tensor(true["angle"]), rate=tensor(true["rate"]))
    found = health(scene.model, params, state, steps=scene.steps)
    assert found.tangent_rate is not None and found.tangent_rate.exponential
    assert found.tangent_rate.value == pytest.approx(1.05, abs=0.3)
    assert found.tangent_rate.value * scene.steps * scene.dt > 8  # Lyapunov times


def test_the_growing_horizon_finds_mass_inertia_damping_and_the_start(tmp_path: Path) -> None:
    true = script().DOUBLE
    fit = simphys.identify(load("double", COARSE), folder=tmp_path / "run")
    assert fit.result.success
    expected = {name: true[name][1] for name in ("mass", "inertia")}
    expected |= {f"{name}[{i}]": true[name][i] for name in ("damping", "angle", "rate") for i in (0, 1)}
    assert {row.label for row in fit.unknowns} == set(expected)
    for row in fit.unknowns:
        assert abs(row.value - expected[row.label]) < 3 * row.standard_error, row
    assert fit.unknowns[0].standard_error < 1e-3
    assert list(fit.rmse.values())[-1] == pytest.approx(0.01, rel=0.05)  # noise of the recording


def test_the_full_horizon_at_once_ends_in_a_local_minimum() -> None:
    scene = load("double", COARSE)
    result = optimize.minimize(scene.objective(), horizon="full", iterations=40)
    assert rmse(scene, result.loss, 0.01) > 0.2  # rad, twenty times the noise


INVERTED = (
    *("geometry.length=[0.14, 0.1]", "time.dt=0.0025", "unknowns.damping.scale=1e-4"),
    *("observations.channels.0.sigma=1e-3", "observations.channels.1.sigma=1e-3"),
)
"""A double pendulum of short bars, released upside down; its angles are measured to 1 mrad."""
INERTIA = 5e-4
"""That of the second bar [kg m^2]."""


def test_an_inverted_release_is_found_from_30_percent_off_over_11_lyapunov_times(tmp_path: Path) -> None:
    times, file = 0.01 * np.arange(1, 301), tmp_path / "seen.txt"
    recording = [f"observations.file={file}", *INVERTED]
    np.savetxt(file, np.column_stack([0 * times, times, 0 * times, 0 * times]))
    angle, damping = np.array([3.0, -3.0]), np.array([2e-4, 1e-4])
    bars = ["material.mass=[1.0, 0.62]", f"material.inertia=[1.6e-3, {INERTIA}]", "material.damping=[2e-4, 1e-4]"]
    true = load("double", *recording, *bars, "state.angle=[3.0, -3.0]", "state.rate=[0.0, 0.0]")
    motion = true.rollout()
    near = true.rollout(state=true.state.replace(angle=angle + np.array([1e-8, 0.0])))
    parted = np.linalg.norm(near.angle.data - motion.angle.data, axis=1)[-1] / 1e-8
    assert np.log(parted) > 9.5  # Lyapunov times
    clean = true.predict(motion).data
    for seed in range(20):
        random = np.random.default_rng(seed)
        np.savetxt(file, np.column_stack([0 * times, times, clean + 1e-3 * random.standard_normal(clean.shape)]))
        mass, inertia, *others = 1 + 0.3 * random.choice([-1, 1], 4)
        begin, friction = angle + 0.1 * random.choice([-1, 1], 2), damping * others
        start = [
            f"material.mass=[1.0, {0.62 * mass}]",
            f"material.inertia=[1.6e-3, {INERTIA * inertia}]",
            f"material.damping={friction.tolist()}",
            f"state.angle={begin.tolist()}",
            "state.rate=[0.3, -0.3]",
        ]
        objective = load("double", *recording, *start).objective()
        found = optimize.minimize(objective, horizon="growing", iterations=50, tolerance=1e-8)
        assert found.success and np.sqrt(2 * found.loss / clean.size) < 1.1, f"seed {seed}: {found}"
        assert objective.unknowns.natural(found.theta)[:2] == pytest.approx([0.62, INERTIA], rel=1e-3)
