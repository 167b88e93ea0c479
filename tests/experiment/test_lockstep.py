"""Many values of the unknowns at once: the batch gives what each gives alone, and finds all optima."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simphys.app.many_starts import cluster_rows, fit_from_many
from simphys.assess.clusters import judge_clusters, sort_ends
from simphys.assess.draws import draw_starts
from simphys.autograd.errors import InputError
from simphys.experiment.lockstep import Lockstep
from simphys.optimize.lockstep import minimize_from_many
from simphys.plot.fit.waterfall import waterfall

from ..helpers.small_scenes import build
from .test_several import STIFFNESS, tables


def caught(tmp_path: Path, **changes: Any) -> Any:
    """An oscillator whose stiffness has several optima over the whole horizon, between wide bounds."""
    unknowns = {
        "spring": {"parameter": "stiffness", "entries": [0], "bounds": [2.0, 40.0], "start": 25.0},
        "start": {"parameter": "position", "entries": [0], "start": 0.8, "bounds": [0.2, 2.0]},
    }
    given = tables(tmp_path, time={"dt": 0.02}, unknowns=unknowns, **changes)
    first = given.pop("experiments")[0]
    given["observations"] |= first["observations"]
    return build(given | {"values": first["values"]})


@pytest.mark.parametrize("several", [False, True])
def test_a_batch_gives_what_each_value_gives_alone(tmp_path: Path, several: bool) -> None:
    scene = build(tables(tmp_path)) if several else caught(tmp_path)
    objective = scene.objective()
    together, thetas = Lockstep(objective), draw_starts(objective, 4, 0)
    residuals, jacobians = together.residuals(thetas), together.jacobians(thetas)
    for place, theta in enumerate(thetas):
        # The steps' rounding counts a hundredfold in units of the noise.
        np.testing.assert_allclose(residuals[place], objective.residuals(theta), rtol=1e-10, atol=1e-10)
        alone = objective.jacobian(theta)
        np.testing.assert_allclose(jacobians[place], alone, rtol=1e-9, atol=1e-9 * np.abs(alone).max())


def test_a_motion_that_blows_up_fails_alone(tmp_path: Path) -> None:
    objective = caught(tmp_path).objective()
    thetas = draw_starts(objective, 3, 0)
    thetas[1, 0] = 1e9
    found = Lockstep(objective).residuals(thetas)
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2]]).all()
    assert Lockstep(objective).jacobians(thetas[1:2]).shape == (1, 1)


def test_many_starts_find_the_optimum_that_one_start_misses(tmp_path: Path) -> None:
    scene = caught(tmp_path)
    fit, found = fit_from_many(scene, folder=tmp_path / "run", starts=16)
    assert fit.unknowns[0].value == pytest.approx(STIFFNESS, rel=0.01)
    assert found.cluster[0] > 0 and len(found.clusters[0]) > 1  # the first start, the scene's own, is caught
    (line,) = [each for each in fit.criteria if each.name == "many starts"]
    assert line.verdict == "passed" and f"{len(found.clusters[0])} of 16 starts" in line.found
    rows = cluster_rows(scene.objective(), found)
    assert sum(int(row[1]) for row in rows) == 16 and [float(row[2]) for row in rows] == sorted(
        float(row[2]) for row in rows
    )
    assert len(waterfall(fit.recording).axes) == 2
    assert found.loss[0] > 100 * found.loss.min()


def test_differential_evolution_finds_it_too(tmp_path: Path) -> None:
    fit, _ = fit_from_many(caught(tmp_path), folder=tmp_path / "run", starts=12, search="differential_evolution")
    assert fit.unknowns[0].value == pytest.approx(STIFFNESS, rel=0.01)


class Parabola:
    """Residuals (x - 3, 2 (y + 1)): the bound on x is in the way."""

    def residuals(self, thetas: np.ndarray) -> np.ndarray:
        return np.stack([thetas[:, 0] - 3, 2 * (thetas[:, 1] + 1)], axis=1)

    def jacobians(self, thetas: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.array([[1.0, 0.0], [0.0, 2.0]]), (len(thetas), 2, 2))


def test_bounds_hold_and_merged_starts_keep_their_places() -> None:
    starts = np.array([[0.0, 0.0], [1.0, 5.0], [2.0, -4.0]])
    stages = [Parabola(), Parabola()]
    found = minimize_from_many(stages, starts, np.array([-9.0, -9.0]), np.array([2.0, 9.0]))
    np.testing.assert_allclose(found.theta, [[2.0, -1.0]] * 3, atol=1e-5)
    assert found.converged.all() and np.allclose(found.loss, 0.5)


def test_clusters_tell_rivals_and_optima_found_only_once() -> None:
    theta, loss = np.array([[1.0], [1.0001], [5.0], [3.0]]), np.array([10.0, 10.1, 10.2, np.inf])
    found = sort_ends(theta, theta, loss, np.array([0.01]))
    assert found.cluster.tolist() == [0, 0, 1, -1]
    assert judge_clusters(found).verdict == "doubtful" and "1 more fit as well" in judge_clusters(found).found
    alone = sort_ends(theta[[0, 2]], theta[[0, 2]], np.array([10.0, 90.0]), np.array([0.01]))
    assert "found only once" in judge_clusters(alone).found


def test_a_scene_without_a_measurement_is_refused(tmp_path: Path) -> None:
    given = tables(tmp_path, time={"dt": 0.02, "steps": 5})
    for name in ("observations", "experiments"):
        del given[name]
    del given["unknowns"]["start"]
    target = {"kind": "final_state", "field": "position", "nodes": [0], "target": [0.3]}
    with pytest.raises(InputError, match="multistart: needs residuals of a measurement"):
        fit_from_many(build(given | {"loss": {"terms": [target]}}), folder=tmp_path / "run")
