"""A scene of material points, from its tables to a run folder: recording, fit, pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import plot
from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene, build_scene
from simphys.scenefile import from_dict

from ...helpers.rounding import assert_equal_but_for_rounding

ELASTIC = {"density": 1.0, "young_modulus": 100.0, "poisson_ratio": 0.3, "per_cell": 2}


def thrown(folder: Path, **sections: Any) -> Scene:
    """Build two boxes, each of 10 x 10 particles, with a common velocity for the search to find."""
    boxes = [[[0.35, 0.4], [0.6, 0.65]], [[0.65, 0.4], [0.9, 0.65]]]
    tables = {
        "simulator": {"name": "mpm"},
        "time": {"dt": 1e-3, "steps": 40},
        "grid": {"cells": [26, 24], "spacing": 0.05},
        "bodies": [{"shape": "box", "lower": low, "upper": high, **ELASTIC} for low, high in boxes],
        "environment": {"gravity": [0.0, -9.8]},
        "unknowns": {"velocity": {"parameter": "velocity", "tied": "rows", "scale": 1.0, "unit": "m/s"}},
        "loss": {"terms": [{"kind": "final_mean", "target": [0.65, 0.6]}]},
        "optimizer": {"method": "lbfgs"},
        "output": {"folder": str(folder), "every": 4},
        **sections,
    }
    return build_scene(from_dict(tables))


def test_a_motion_is_recorded_except_for_empty_fields(tmp_path: Path) -> None:
    scene = thrown(tmp_path / "run")
    run = simphys.simulate(scene)
    motion = scene.rollout()
    recorded = run["particles/nodes/position/value"]  # by kernels without gradients, which are compiled apart
    assert_equal_but_for_rounding(recorded, motion.position.data[::4], ulps=40 * 20)
    assert run.keys("fields") == ["affine", "deformation"]
    np.testing.assert_array_equal(run["particles/nodes/group"], np.repeat([0, 1], 100))


def test_one_velocity_of_all_particles_is_found_and_drawn(tmp_path: Path) -> None:
    """The mean position in free flight moves by T v + g dt^2 T (T + 1) / 2 in T steps."""
    fit = simphys.identify(thrown(tmp_path / "run"))
    expected = [(0.65 - 0.625) / 0.04, (0.6 - 0.525 + 9.8 * 1e-6 * 40 * 41 / 2) / 0.04]
    np.testing.assert_allclose([row.value for row in fit.unknowns], expected, rtol=1e-6)
    run = fit.recording
    assert run["adjoint/velocity"].shape == (11, 200, 2) and run["adjoint/step"][-1] == 40
    assert set(run.keys("adjoint")) == {"step", "time", "position", "velocity", "affine", "deformation"}
    names = [path.name for path in plot.all_figures(run, tmp_path / "pictures")]
    assert names == ["convergence.png", "adjoint.png", "particles.png", "animation.gif"]


def test_a_time_step_that_is_too_long_is_refused_before_a_search(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the largest stable time step"):
        thrown(tmp_path / "run", time={"dt": 4e-3, "steps": 10})


def test_a_particle_that_leaves_the_grid_is_named(tmp_path: Path) -> None:
    scene = thrown(tmp_path / "run", grid={"cells": [26, 24], "spacing": 0.05, "margin": 1})
    fast = scene.state.replace(velocity=scene.state.velocity + np.array([0.0, 45.0]))
    with pytest.raises(InputError, match=r"Particle \d+ \(fixed_corotated\) leaves the grid"):
        scene.rollout(state=fast)
