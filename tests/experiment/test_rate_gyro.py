"""A wheel on a torsion rod before a rate gyro with a bias: inertia, damping and bias from the angular velocity alone.

A turning wheel is a mass on a spring in one dimension: the angle for the position, the inertia for the mass.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys.experiment.scene import build_scene
from simphys.scenefile import from_dict

ROOT = Path(__file__).parents[2]
REAL = Path(os.environ.get("SIMPHYS_DATA", ROOT.parent / "shared" / "data")) / "bicycle_wheel" / "radial.csv"
needs_data = pytest.mark.skipif(not REAL.is_file(), reason=f"the real recording is not at {REAL} (SIMPHYS_DATA)")

ROD = 11.706
"""Stiffness of the rod [N m/rad], from its dimensions."""

FREQUENCY, DECAY, BIAS = 14.9109, 0.2273, -0.0137
"""Of exp(-decay t) (a cos(frequency t) + b sin(frequency t)) + bias: [1/s], [1/s], [rad/s]."""


def scene(file: Path, folder: Path) -> Any:
    seen = {"column": "angular_velocity", "field": "velocity", "node": 0, "unit": "rad/s", "sigma": 0.01}
    unknowns: dict[str, Any] = {
        "inertia": {"parameter": "mass", "entries": [0], "start": 0.07},
        "drag": {"parameter": "drag", "entries": [0], "scale": 0.3},
        "angle": {"parameter": "position", "entries": [0], "scale": 0.1},
        "rate": {"parameter": "velocity", "entries": [0], "scale": 1.0},
        "bias": {"parameter": "channel_offset", "scale": 0.1},
    }
    return build_scene(
        from_dict(
            {
                "simulator": {"name": "mass_spring", "integrator": "velocity_verlet"},
                "time": {"dt": 0.001},
                "geometry": {
                    "position": [[0.0]],
                    "anchors": [{"node": 0, "point": [0.0], "stiffness": ROD}],
                },
                "material": {"mass": [0.07], "drag": [0.3]},
                "state": {"velocity": [[3.0]]},
                "unknowns": unknowns,
                "optimizer": {"method": "least_squares", "horizon": "growing"},
                "observations": {"file": str(file), "time": "time", "channels": [seen]},
                "output": {"folder": str(folder)},
            }
        )
    )


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A recording of the same kind, from the closed form."""
    time = np.arange(0, 1001) / 500
    wave = 3.2 * np.cos(FREQUENCY * time) - 0.4 * np.sin(FREQUENCY * time)
    seen = np.exp(-DECAY * time) * wave + BIAS + 0.01 * np.random.default_rng(7).standard_normal(time.size)
    np.savetxt(tmp_path / "made.csv", np.column_stack([time, seen]), delimiter=",", header="time,angular_velocity")
    (tmp_path / "made.csv").write_text((tmp_path / "made.csv").read_text().removeprefix("# "))
    return tmp_path / "made.csv"


def require_truth(fit: Any, *, bias: float, decay: float) -> None:
    found = {row.label: row.value for row in fit.unknowns}
    inertia = ROD / (FREQUENCY**2 + DECAY**2)
    assert found["inertia"] == pytest.approx(inertia, rel=1e-3)
    assert found["drag"] / 2 == pytest.approx(DECAY, abs=decay)
    assert found["bias"] == pytest.approx(BIAS, abs=bias)


def test_a_bias_is_told_from_the_motion(made: Path, tmp_path: Path) -> None:
    fit = simphys.identify(scene(made, tmp_path / "run"))
    require_truth(fit, bias=0.0015, decay=0.002)
    assert fit.verdict == "passed"


@needs_data
def test_the_inertia_of_a_real_wheel_is_found(tmp_path: Path) -> None:
    fit = simphys.identify(scene(REAL, tmp_path / "run"))
    require_truth(fit, bias=2e-4, decay=2e-4)
    assert list(fit.rmse.values())[-1] == pytest.approx(0.010, abs=5e-4)
