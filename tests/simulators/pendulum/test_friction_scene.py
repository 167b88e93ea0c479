"""A rod on a motor whose torque is measured: the fit recovers the truth, and judges the recording of a real bench."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import simphys

from .recordings import DATA, load, rmse, script

REAL = DATA.parent / "torque_pendulum" / "measured.csv"
needs_data = pytest.mark.skipif(not REAL.is_file(), reason=f"the real recording is not at {REAL} (SIMPHYS_DATA)")
SIGMA = 0.003
"""Resolution of the encoder [rad]."""

BENCH = (
    f"observations.file={REAL}",
    "observations.channels.0.column=position",
    f"observations.channels.0.sigma={SIGMA}",
    "time.dt=0.0033338069915771484",
    "geometry.length=[0.3]",
    "material.centre=[1.0]",
    "material.transition_rate=[0.01]",
)
"""Overrides that turn the scene into the real bench."""

ARM, GRAVITY = 0.3, 9.81


def test_the_fit_recovers_the_friction_behind_the_recording(tmp_path: Path) -> None:
    fit = simphys.identify(load("friction"), folder=tmp_path / "run")
    assert fit.verdict == "passed"
    true = script().BENCH
    for row in fit.unknowns:
        assert abs(row.value - true[row.label]) < 3 * row.standard_error and row.note == "", row


def start_rmse(*material: str) -> float:
    """Root mean square error [rad] at the start values of the unknowns, for the measured angle at the beginning."""
    objective = load("friction", *BENCH, "state.angle=[-0.001457]", *material).objective()
    loss = objective.value_and_gradient(objective.start)[0]
    return rmse(load("friction", *BENCH), loss, SIGMA)


@needs_data
def test_a_fit_of_the_motion_of_a_real_bench_is_better_than_a_regression_and_is_doubted(tmp_path: Path) -> None:
    """Noise in the accelerations of a regression makes the inertia too small; friction is not what is left over."""
    fit = simphys.identify(
        load("friction", *BENCH, "material.mass=[0.34]", "material.inertia=[0.03]"), folder=tmp_path / "run"
    )
    found = {row.label: row.value for row in fit.unknowns}
    assert found["inertia"] + found["mass"] * ARM**2 == pytest.approx(0.160, abs=0.002)  # kg m^2
    assert found["mass"] * ARM * GRAVITY == pytest.approx(3.16, abs=0.03)  # N m
    assert found["offset"] == pytest.approx(0.096, abs=0.003)  # N m
    assert list(fit.rmse.values())[-1] == pytest.approx(0.0316, abs=2e-4)  # rad
    assert fit.verdict == "failed"
    published = start_rmse(
        f"material.mass=[{0.1022 / ARM}]",
        f"material.inertia=[{0.06259 - 0.1022 * ARM}]",
        "material.damping=[0.04707]",
        f"material.dry_friction=[{0.1839 * np.pi / 2}]",
        "control.offset=0.0759",
    )
    assert published == pytest.approx(0.65, abs=0.01)
