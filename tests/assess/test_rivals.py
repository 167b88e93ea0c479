"""Failures of other programs: small residuals of values without a meaning, starts that stall, loose unknowns.

Four conductivities that others find from low starts only are in tests/simulators/heat/test_quadrants.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simphys
from simphys import optimize
from simphys.app.fit_check import check_fit
from simphys.autograd.errors import InputError
from simphys.experiment.scene import Scene
from simphys.runs.estimates import UndeterminedStart

from ..helpers.small_scenes import TRUTH, build, oscillator


def double_rod(folder: Path, *, horizon: str = "full") -> Scene:
    """Two rods that swing freely, recorded without noise; only ratios of their masses and inertias show in a motion."""
    tables: dict[str, Any] = {
        "simulator": {"name": "pendulum"},
        "time": {"dt": 0.01, "steps": 150},
        "geometry": {"length": [0.4, 0.3]},
        "material": {"mass": [0.5, 0.2], "centre": [0.5, 0.5], "inertia": [0.007, 0.0015]},
        "state": {"angle": [1.0, -0.5]},
    }
    angles = build(tables).rollout().angle.data
    np.savetxt(folder / "exact.txt", np.column_stack([0.01 * np.arange(len(angles)), angles]), fmt="%.17g")
    channel = {"field": "angle", "unit": "rad", "sigma": 1e-3}
    tables["time"] = {"dt": 0.01}
    tables["material"] |= {"mass": [0.9, 0.3], "inertia": [0.004, 0.003]}
    tables["observations"] = {
        "file": str(folder / "exact.txt"),
        "channels": [{"column": 1 + node, "node": node, **channel} for node in (0, 1)],
    }
    tables["unknowns"] = {name: {"parameter": name, "transform": "log"} for name in ("mass", "inertia")}
    tables["optimizer"] = {"horizon": horizon}
    return build(tables)


def test_inertias_without_a_meaning_do_not_pass_however_small_their_residuals(tmp_path: Path) -> None:
    scene = double_rod(tmp_path)
    objective = scene.objective()
    found = optimize.minimize(objective, iterations=60, tolerance=1e-15)
    assert np.sqrt(2 * found.loss / objective.residuals(found.theta).size) * 1e-3 < 1e-9  # rad
    natural = objective.unknowns.natural(found.theta)
    assert np.abs(natural / [0.5, 0.2, 0.007, 0.0015] - 1).max() > 0.1
    with pytest.raises(InputError, match=r"found rank 3: mass\[0\], mass\[1\].* can change together"):
        simphys.identify(scene)
    with pytest.warns(UndeterminedStart, match="can change together"):
        fit = simphys.identify(double_rod(tmp_path, horizon="growing"))
    assert fit.verdict == "failed" and "do not determine all unknowns" in fit.result.message


@pytest.mark.parametrize(
    "starts",
    [
        {"drag": {"start": 0.0, "bounds": [0.0, 5.0]}},
        {"drag": {"start": 5.0, "bounds": [0.0, 5.0]}},
        {"stiffness": {"start": 5.0, "bounds": [5.0, 50.0]}, "drag": {"start": 0.0, "bounds": [0.0, 5.0]}},
    ],
)
def test_a_start_at_a_bound_does_not_stall(starts: Any, tmp_path: Path) -> None:
    fit = simphys.identify(oscillator(tmp_path / "seen.txt", unknowns=starts))
    assert fit.verdict == "passed"
    for row in fit.unknowns:
        assert abs(row.value - TRUTH[row.label]) < 4 * row.standard_error, row


def test_an_unknown_of_a_fixed_node_is_named_as_such(tmp_path: Path) -> None:
    scene = oscillator(tmp_path / "seen.txt", unknowns={"drag": {"parameter": "drag", "entries": None}})
    with pytest.raises(InputError, match=r"drag\[1\] is of a node that is fixed, .* others in unknowns\.drag\.entries"):
        simphys.identify(scene)


def test_an_unknown_that_is_not_connected_is_refused_by_name(tmp_path: Path) -> None:
    changes: Any = {
        "geometry": {"position": [[1.0], [5.0]], "anchors": [{"node": 0, "point": [0.0], "stiffness": 9.0}]},
        "unknowns": {"lonely": {"parameter": "position", "entries": [1]}},
    }
    scene = oscillator(tmp_path / "seen.txt", **changes)
    with pytest.raises(InputError, match="lonely changes no observation"):
        simphys.identify(scene)
    failed = [each for each in check_fit(scene).criteria if each.verdict == "failed"]
    assert [each.name for each in failed] == ["expected errors"] and "lonely" in failed[0].found
